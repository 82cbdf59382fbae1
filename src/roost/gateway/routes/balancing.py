"""Balancing over HTTP, for servers in other languages."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated

from roost.api import Message
from roost.api.balancing import (
    Considered,
    Explained,
    Move,
    Preview,
    PreviewInput,
    Ring,
    RingNode,
    Selected,
    SelectedList,
    SelectInput,
)
from roost.api.limits import (
    MAX_CANDIDATES,
    MAX_COMPARISONS,
    MAX_KEYS,
    MAX_PREVIEW_NODES,
    MAX_RING_POINTS,
    MAX_WEIGHT,
    Name,
    SlowStart,
    Strategy,
    Text,
    shown,
)
from roost.balancing import ConsistentHash, LoadBalancer, Refusal
from roost.balancing.ring import check_node
from roost.balancing.strategies.consistent_hash import ConsistentHashing
from roost.core.errors import InvalidInput
from roost.gateway.context import Gateway
from roost.web.route import Request, Route

DEFAULT_STRATEGY = "consistent_hash"
SLICE_S = 0.01
"""How long one request works before others have their turn."""


class ServiceQuery(Message):
    type: Name
    group: Name = "*"


class RingQuery(ServiceQuery):
    points: Annotated[int, shown(minimum=0, maximum=MAX_RING_POINTS)] = 0
    """At how many places the circle is told; 0: not at all."""


class ExplainQuery(Message):
    type: Name
    key: str
    group: Name = "*"
    strategy: Strategy = DEFAULT_STRATEGY
    zone: Text = ""
    """Servers of this zone first; those of others where none of it takes users."""
    slow_start_seconds: SlowStart = 0
    """The weight of a server in a new life grows over so many seconds."""


class SelectQuery(ExplainQuery):
    n: Annotated[int, shown(minimum=0, maximum=MAX_CANDIDATES)] = 0
    """How many candidates the answer names: who was chosen, then who else could be, best first."""


class BalancingRoutes:
    def __init__(self, gateway: Gateway) -> None:
        self._balancers = gateway.platform.balancers
        self._previews = asyncio.Semaphore(1)

    async def select_server(self, request: Request) -> Selected:
        query: SelectQuery = request.query
        balancer = await self._of(query)
        n = min(query.n, MAX_CANDIDATES)
        candidates = [server.server_id for server in balancer.candidates(query.key, n)] if n > 0 else []
        selected = _select(balancer, query.key)
        if n > 0 and selected.server_id is not None:
            others = [server_id for server_id in candidates if server_id != selected.server_id]
            selected.candidates = [selected.server_id, *others][:n]
        return selected

    async def select_servers(self, request: Request) -> SelectedList:
        given: SelectInput = request.body
        if len(given.keys) > MAX_KEYS:
            raise InvalidInput(f"{len(given.keys)} keys at once, at most {MAX_KEYS} are allowed")
        balancer = await self._of(given)
        _check_work(balancer, len(given.keys))
        selections: list[Selected] = []
        until = time.perf_counter() + SLICE_S
        for key in given.keys:
            selections.append(_select(balancer, key))
            if time.perf_counter() > until:
                await asyncio.sleep(0)
                until = time.perf_counter() + SLICE_S
        return SelectedList(selections)

    async def get_ring(self, request: Request) -> Ring:
        query: RingQuery = request.query
        if not 0 <= query.points <= MAX_RING_POINTS:
            raise InvalidInput(f"points is {query.points}, must be 0 to {MAX_RING_POINTS}")
        balancer = await self._balancers.of(query.type, query.group, DEFAULT_STRATEGY)
        table = _hash(balancer)
        shares = table.shares()
        nodes = [
            RingNode(s.server_id, s.weight, round(shares.get(s.server_id, 0.0), 6), s.accepting, s.why_not)
            for s in sorted(balancer.all_servers, key=lambda s: s.server_id)
        ]
        place = {node.server_id: number for number, node in enumerate(nodes)}
        return Ring(nodes, [place.get(name, -1) for name in table.owners_at(query.points)])

    async def preview_ring(self, request: Request) -> Preview:
        given: PreviewInput = request.body
        _check_preview(given)
        balancer = await self._balancers.of(given.type, given.group, DEFAULT_STRATEGY)
        async with self._previews:  # beside the loop, and not all of the machine
            return await asyncio.to_thread(_preview, _hash(balancer).copy(), given)

    async def explain_selection(self, request: Request) -> Explained:
        query: ExplainQuery = request.query
        told = (await self._of(query)).explain(query.key)
        considered = [Considered(server_id, why) for server_id, why in told.considered]
        position = round(ConsistentHash.position_of(query.key), 6)
        return Explained(told.key, told.strategy, told.chosen, told.refusal, considered, position)

    async def _of(self, asked: ExplainQuery | SelectInput) -> LoadBalancer:
        return await self._balancers.of(
            asked.type, asked.group, asked.strategy, zone=asked.zone, slow_start_s=asked.slow_start_seconds
        )


def routes(gateway: Gateway) -> list[Route]:
    on = BalancingRoutes(gateway)
    return [*_selection_routes(on), *_ring_routes(on)]


def _selection_routes(on: BalancingRoutes) -> list[Route]:
    return [
        Route(
            "GET",
            "/lb/v1/select",
            on.select_server,
            "The server for a key",
            scope="read",
            query=SelectQuery,
            reply=Selected,
        ),
        Route(
            "POST",
            "/lb/v1/select",
            on.select_servers,
            "The servers for many keys at once",
            scope="read",
            body=SelectInput,
            reply=SelectedList,
        ),
    ]


def _ring_routes(on: BalancingRoutes) -> list[Route]:
    return [
        Route(
            "GET",
            "/lb/v1/ring",
            on.get_ring,
            "How keys spread over servers; points=720 also draws the circle",
            scope="read",
            query=RingQuery,
            reply=Ring,
        ),
        Route(
            "POST",
            "/lb/v1/preview",
            on.preview_ring,
            "Which share of keys a change of the fleet would move",
            scope="read",
            body=PreviewInput,
            reply=Preview,
        ),
        Route(
            "GET",
            "/lb/v1/explain",
            on.explain_selection,
            "Who was considered for a key, who was refused and why",
            scope="read",
            query=ExplainQuery,
            reply=Explained,
        ),
    ]


def _select(balancer: LoadBalancer, key: str) -> Selected:
    chosen = balancer.select_server(key)
    if isinstance(chosen, Refusal):
        return Selected(key, None, chosen.reason)
    return Selected(key, chosen.server_id, "", chosen.host, dict(chosen.ports), chosen.zone)


def _check_work(balancer: LoadBalancer, keys: int) -> None:
    servers = len(balancer.all_servers)
    if balancer.strategy.looks_at_all and keys * servers > MAX_COMPARISONS:
        raise InvalidInput(
            f"{keys} keys with {balancer.strategy.name} over {servers} servers at once are too many",
            hint=f"send at most {MAX_COMPARISONS // servers} keys, or use consistent_hash",
        )


def _check_preview(given: PreviewInput) -> None:
    """A preview is worked out point by point: its size is bounded before that."""
    for what, count in (("add", len(given.add)), ("remove", len(given.remove))):
        if count > MAX_PREVIEW_NODES:
            raise InvalidInput(f"{count} servers to {what}, at most {MAX_PREVIEW_NODES} are allowed")
    for node in given.add:
        if not 0 <= node.weight <= MAX_WEIGHT:
            raise InvalidInput(
                f"weight of {node.server_id[:40]!r} is {node.weight}, must be 0 to {MAX_WEIGHT}"
            )


def _preview(before: ConsistentHash, given: PreviewInput) -> Preview:
    after = before.copy()
    try:
        for server_id in given.remove:
            if not after.remove_node(server_id):
                raise InvalidInput(f"there is no server {server_id[:40]!r} to remove")
        for node in given.add:
            check_node(node.server_id, node.weight)
            after.add_node(node.server_id, node.weight)
    except ValueError as error:
        raise InvalidInput(str(error)) from None
    moves = [Move(source, target, round(share, 6)) for (source, target), share in before.diff(after).items()]
    moves.sort(key=lambda move: -move.share)
    return Preview(round(sum(move.share for move in moves), 6), moves)


def _hash(balancer: LoadBalancer) -> ConsistentHash:
    """The table by which a balancer of the default strategy chooses."""
    strategy = balancer.strategy
    assert isinstance(strategy, ConsistentHashing)
    assert isinstance(strategy.hash, ConsistentHash)
    return strategy.hash
