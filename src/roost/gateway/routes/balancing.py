"""Balancing over HTTP, for servers in other languages."""

from __future__ import annotations

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
    MAX_KEYS,
    MAX_PREVIEW_NODES,
    MAX_WEIGHT,
    Name,
    Strategy,
    shown,
)
from roost.balancing import ConsistentHash, LoadBalancer, Refusal
from roost.balancing.ring import check_node
from roost.core.errors import InvalidInput
from roost.gateway.context import Gateway
from roost.web.route import Request, Route

DEFAULT_STRATEGY = "consistent_hash"


class ServiceQuery(Message):
    type: Name
    group: Name = "*"


class ExplainQuery(Message):
    type: Name
    key: str
    group: Name = "*"
    strategy: Strategy = DEFAULT_STRATEGY


class SelectQuery(ExplainQuery):
    n: Annotated[int, shown(minimum=0, maximum=MAX_CANDIDATES)] = 0
    """How many candidates the answer names, best first."""


class BalancingRoutes:
    def __init__(self, gateway: Gateway) -> None:
        self._balancers = gateway.platform.balancers

    async def select_server(self, request: Request) -> Selected:
        query: SelectQuery = request.query
        balancer = await self._balancers.of(query.type, query.group, query.strategy)
        selected = _select(balancer, query.key)
        if query.n:
            selected.candidates = _table(balancer).get_nodes(query.key, min(query.n, MAX_CANDIDATES))
        return selected

    async def select_servers(self, request: Request) -> SelectedList:
        given: SelectInput = request.body
        if len(given.keys) > MAX_KEYS:
            raise InvalidInput(f"{len(given.keys)} keys at once, at most {MAX_KEYS} are allowed")
        balancer = await self._balancers.of(given.type, given.group, given.strategy)
        return SelectedList([_select(balancer, key) for key in given.keys])

    async def get_ring(self, request: Request) -> Ring:
        query: ServiceQuery = request.query
        balancer = await self._balancers.of(query.type, query.group, DEFAULT_STRATEGY)
        shares = _table(balancer).shares()
        return Ring(
            [
                RingNode(s.server_id, s.weight, round(shares[s.server_id], 6), s.accepting, s.why_not)
                for s in sorted(balancer.all_servers, key=lambda s: s.server_id)
            ]
        )

    async def preview_ring(self, request: Request) -> Preview:
        given: PreviewInput = request.body
        _check_preview(given)
        balancer = await self._balancers.of(given.type, given.group, DEFAULT_STRATEGY)
        before = _table(balancer)
        after = ConsistentHash(before.nodes)
        try:
            for server_id in given.remove:
                if not after.remove_node(server_id):
                    raise InvalidInput(f"there is no server {server_id[:40]!r} to remove")
            for node in given.add:
                check_node(node.server_id, node.weight)
                after.add_node(node.server_id, node.weight)
        except ValueError as error:
            raise InvalidInput(str(error)) from None
        moves = [
            Move(source, target, round(share, 6)) for (source, target), share in before.diff(after).items()
        ]
        moves.sort(key=lambda move: -move.share)
        return Preview(round(sum(move.share for move in moves), 6), moves)

    async def explain_selection(self, request: Request) -> Explained:
        query: ExplainQuery = request.query
        told = (await self._balancers.of(query.type, query.group, query.strategy)).explain(query.key)
        considered = [Considered(server_id, why) for server_id, why in told.considered]
        return Explained(told.key, told.strategy, told.chosen, told.refusal, considered)


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
            "How keys spread over servers",
            scope="read",
            query=ServiceQuery,
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


def _check_preview(given: PreviewInput) -> None:
    """A preview is worked out point by point: its size is bounded before that."""
    if len(given.add) > MAX_PREVIEW_NODES:
        raise InvalidInput(f"{len(given.add)} servers to add, at most {MAX_PREVIEW_NODES} are allowed")
    for node in given.add:
        if not 0 <= node.weight <= MAX_WEIGHT:
            raise InvalidInput(
                f"weight of {node.server_id[:40]!r} is {node.weight}, must be 0 to {MAX_WEIGHT}"
            )


def _table(balancer: LoadBalancer) -> ConsistentHash:
    """The default consistent hash over every server of the balancer, whatever its strategy."""
    return ConsistentHash({server.server_id: server.weight for server in balancer.all_servers})
