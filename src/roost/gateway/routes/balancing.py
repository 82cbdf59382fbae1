"""Balancing over HTTP, for servers in other languages."""

from __future__ import annotations

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
from roost.balancing import STRATEGIES, ConsistentHash, LoadBalancer, Refusal
from roost.balancing.ring import check_node
from roost.core.errors import InvalidInput
from roost.gateway.route import Request, Route

MAX_KEYS = 10_000
MAX_CANDIDATES = 100


class SelectQuery(Message):
    type: str
    key: str
    group: str = "*"
    strategy: str = "consistent_hash"
    n: int = 0


class PlaceQuery(Message):
    type: str
    group: str = "*"


class ExplainQuery(Message):
    type: str
    key: str
    group: str = "*"
    strategy: str = "consistent_hash"


async def select_server(request: Request) -> Selected:
    query: SelectQuery = request.query
    balancer = await _balancer_of(request, query.type, query.group, query.strategy)
    selected = _select(balancer, query.key)
    if query.n:
        selected.candidates = _table(balancer).get_nodes(query.key, min(query.n, MAX_CANDIDATES))
    return selected


async def select_servers(request: Request) -> SelectedList:
    given: SelectInput = request.body
    if len(given.keys) > MAX_KEYS:
        raise InvalidInput(f"{len(given.keys)} keys at once, at most {MAX_KEYS} are allowed")
    balancer = await _balancer_of(request, given.type, given.group, given.strategy)
    return SelectedList([_select(balancer, key) for key in given.keys])


async def show_ring(request: Request) -> Ring:
    query: PlaceQuery = request.query
    balancer = await _balancer_of(request, query.type, query.group)
    shares = _table(balancer).shares()
    return Ring(
        [
            RingNode(s.server_id, s.weight, round(shares[s.server_id], 6), s.accepting, s.why_not)
            for s in sorted(balancer.all_servers, key=lambda s: s.server_id)
        ]
    )


async def preview_ring(request: Request) -> Preview:
    given: PreviewInput = request.body
    balancer = await _balancer_of(request, given.type, given.group)
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
    moves = [Move(source, target, round(share, 6)) for (source, target), share in before.diff(after).items()]
    moves.sort(key=lambda move: -move.share)
    return Preview(round(sum(move.share for move in moves), 6), moves)


async def explain_selection(request: Request) -> Explained:
    query: ExplainQuery = request.query
    told = (await _balancer_of(request, query.type, query.group, query.strategy)).explain(query.key)
    considered = [Considered(server_id, why) for server_id, why in told.considered]
    return Explained(told.key, told.strategy, told.chosen, told.refusal, considered)


def balancing_routes() -> list[Route]:
    return [*_selection_routes(), *_ring_routes()]


def _selection_routes() -> list[Route]:
    return [
        Route(
            "GET",
            "/lb/v1/select",
            select_server,
            "The server for a key",
            scope="read",
            query=SelectQuery,
            reply=Selected,
        ),
        Route(
            "POST",
            "/lb/v1/select",
            select_servers,
            "The servers for many keys at once",
            scope="read",
            body=SelectInput,
            reply=SelectedList,
        ),
    ]


def _ring_routes() -> list[Route]:
    return [
        Route(
            "GET",
            "/lb/v1/ring",
            show_ring,
            "How keys spread over servers",
            scope="read",
            query=PlaceQuery,
            reply=Ring,
        ),
        Route(
            "POST",
            "/lb/v1/preview",
            preview_ring,
            "Which share of keys a change of the fleet would move",
            scope="read",
            body=PreviewInput,
            reply=Preview,
        ),
        Route(
            "GET",
            "/lb/v1/explain",
            explain_selection,
            "Who was considered for a key, who was refused and why",
            scope="read",
            query=ExplainQuery,
            reply=Explained,
        ),
    ]


async def _balancer_of(
    request: Request, type_: str, group: str, strategy: str = "consistent_hash"
) -> LoadBalancer:
    if strategy not in STRATEGIES:
        raise InvalidInput(f"no strategy {strategy[:40]!r}", hint=f"strategies: {', '.join(STRATEGIES)}")
    return await request.platform.balancers.of(type_, group, strategy)


def _select(balancer: LoadBalancer, key: str) -> Selected:
    chosen = balancer.select_server(key)
    if isinstance(chosen, Refusal):
        return Selected(key, None, chosen.reason)
    return Selected(key, chosen.server_id, "", chosen.host, dict(chosen.ports), chosen.zone)


def _table(balancer: LoadBalancer) -> ConsistentHash:
    """The default consistent hash over every server of the balancer, whatever its strategy."""
    return ConsistentHash({server.server_id: server.weight for server in balancer.all_servers})
