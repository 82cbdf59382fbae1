"""Ordered work over HTTP: its shards, the places of symbols, and what operators ask of the owners."""

from __future__ import annotations

from typing import Annotated

from roost.api import Message
from roost.api.limits import shown
from roost.api.orders import (
    AdviceView,
    BookView,
    HaltInput,
    HaltReply,
    IdView,
    LogCut,
    MoveInput,
    OrderView,
    PlacedReply,
    PlacementConflict,
    PlacementView,
    PlaceView,
    Seq,
    ShardList,
    ShardNumber,
    ShardUnowned,
    SymbolMoving,
    UnknownOrder,
)
from roost.core.errors import NotSent, Unavailable
from roost.gateway import recording
from roost.gateway.context import Gateway
from roost.web.acts import Act
from roost.web.route import Request, Route

ASKED = (ShardUnowned, NotSent, Unavailable)
"""Whoever owns the shard may not answer."""


class AccountQuery(Message):
    account: Annotated[str, shown(minLength=1, maxLength=128)]
    """Whose order it is."""


class ExpectedQuery(Message):
    expected: Seq | None = None
    """The version of the placement that you have seen; nothing: whatever it is."""


class ReplayQuery(Message):
    to: Seq = 0
    """The last command of the shard that counts; 0: the newest."""
    shard: ShardNumber | None = None
    """One where the symbol was before; nothing: where it is."""


def routes(gateway: Gateway) -> list[Route]:
    on = OrderRoutes(gateway)
    return [*_of_shards(on), *_of_places(on, "/orders/v1/placement"), *_of_symbols(on, "/orders/v1/symbols")]


def _of_shards(on: OrderRoutes) -> list[Route]:
    return [
        Route(
            "GET",
            "/orders/v1/shards",
            on.list_shards,
            "Who owns each of the shards, until when, and how it is doing",
            scope="read",
            reply=ShardList,
        ),
        Route(
            "GET",
            "/orders/v1/advice",
            on.get_advice,
            "Which symbols to move so that the shards share the load, by what was measured",
            scope="read",
            reply=AdviceView,
        ),
        Route(
            "GET",
            "/orders/v1/ids/{id}",
            on.explain_id,
            "What a number looks like, read as an order id",
            scope="read",
            reply=IdView,
        ),
        Route(
            "GET",
            "/orders/v1/orders/{id}",
            on.get_order,
            "An order as its last command left it",
            scope="read",
            query=AccountQuery,
            reply=OrderView,
            errors=(UnknownOrder, PlacementConflict, *ASKED),
        ),
    ]


def _of_places(on: OrderRoutes, placement: str) -> list[Route]:
    symbol = f"{placement}/{{symbol}}"
    return [
        Route(
            "GET",
            placement,
            on.get_placement,
            "The symbols that are not where their hash puts them, or on their way",
            scope="read",
            reply=PlacementView,
        ),
        Route(
            "GET",
            symbol,
            on.get_symbol,
            "Where a symbol is served, and by whom",
            scope="read",
            reply=PlaceView,
        ),
        Route(
            "PUT",
            symbol,
            on.move_symbol,
            "Serve a symbol elsewhere: it moves with its open orders while it trades",
            scope="admin",
            act=Act("orders.place", "symbol/{symbol}", on.place_before, recording.of_placed),
            body=MoveInput,
            reply=PlacedReply,
            errors=(PlacementConflict, SymbolMoving),
        ),
        Route(
            "DELETE",
            symbol,
            on.unpin_symbol,
            "Serve a symbol where its hash puts it; it moves back if it is elsewhere",
            scope="admin",
            act=Act("orders.unpin", "symbol/{symbol}", on.place_before, recording.of_placed),
            query=ExpectedQuery,
            reply=PlacedReply,
            errors=(PlacementConflict, SymbolMoving),
        ),
    ]


def _of_symbols(on: OrderRoutes, symbols: str) -> list[Route]:
    symbol = f"{symbols}/{{symbol}}"
    errors = (PlacementConflict, SymbolMoving, *ASKED)
    return [
        Route(
            "POST",
            f"{symbol}/halt",
            on.halt_symbol,
            "Take no new orders for a symbol; cancels go on",
            scope="admin",
            act=Act("orders.halt", "symbol/{symbol}", after=recording.of_halt),
            body=HaltInput,
            reply=HaltReply,
            errors=errors,
            may_lack_body=True,
        ),
        Route(
            "POST",
            f"{symbol}/resume",
            on.resume_symbol,
            "Take orders for a symbol again",
            scope="admin",
            act=Act("orders.resume", "symbol/{symbol}", after=recording.of_halt),
            reply=HaltReply,
            errors=errors,
        ),
        Route(
            "GET",
            f"{symbol}/replay",
            on.replay_symbol,
            "The book of a symbol as it stood at a command of its shard, rebuilt from the log",
            scope="read",
            query=ReplayQuery,
            reply=BookView,
            errors=(LogCut, *errors),
        ),
    ]


class OrderRoutes:
    def __init__(self, gateway: Gateway) -> None:
        self._lanes = gateway.platform.lanes

    async def place_before(self, request: Request) -> object:
        return recording.of_place(await self._lanes.place_of(request.path["symbol"]))

    async def list_shards(self, request: Request) -> ShardList:
        return await self._lanes.shards()

    async def get_advice(self, request: Request) -> AdviceView:
        return await self._lanes.advise()

    async def explain_id(self, request: Request) -> IdView:
        return self._lanes.explain_id(request.path["id"])

    async def get_order(self, request: Request) -> OrderView:
        return await self._lanes.order(request.path["id"], request.query.account)

    async def get_placement(self, request: Request) -> PlacementView:
        return await self._lanes.placement()

    async def get_symbol(self, request: Request) -> PlaceView:
        return await self._lanes.place_of(request.path["symbol"])

    async def move_symbol(self, request: Request) -> PlacedReply:
        wanted: MoveInput = request.body
        return await self._lanes.move(request.path["symbol"], wanted.shard, wanted.lane, wanted.expected)

    async def unpin_symbol(self, request: Request) -> PlacedReply:
        return await self._lanes.unpin(request.path["symbol"], request.query.expected)

    async def halt_symbol(self, request: Request) -> HaltReply:
        wanted: HaltInput = request.body
        return await self._lanes.halt(request.path["symbol"], wanted.why)

    async def resume_symbol(self, request: Request) -> HaltReply:
        return await self._lanes.resume(request.path["symbol"])

    async def replay_symbol(self, request: Request) -> BookView:
        query: ReplayQuery = request.query
        return await self._lanes.replay(request.path["symbol"], query.to, query.shard)
