"""The verbs of operators: who owns the shards, where symbols are, and what is asked of their owners."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Collection, Coroutine
from datetime import UTC, datetime
from typing import Any

from roost.api.limits import MAX_TEXT
from roost.api.orders import (
    AdviceView,
    BookView,
    HaltReply,
    IdView,
    OrderView,
    PlacedReply,
    PlacementConflict,
    PlacementView,
    PlaceView,
    ShardList,
    ShardUnowned,
    SymbolMoving,
    UnknownOrder,
    decode_book,
)
from roost.core.errors import InvalidInput
from roost.lanes import views
from roost.lanes.advice import advise
from roost.lanes.asking import REPLAY_MS, Owners
from roost.lanes.commands import (
    Halt,
    Method,
    Query,
    Reason,
    ReplayTo,
    Standing,
    State,
    check_account,
    decode_outcome,
    decode_standing,
    encode,
)
from roost.lanes.ids import LANES, SHARDS, extract_shard, is_plausible
from roost.lanes.index import OrderIndex
from roost.lanes.metrics import LaneMetrics
from roost.lanes.placement import Moving, Place, Table
from roost.lanes.placing import Changed, Conflict, Placements, Unchanged
from roost.lanes.scripts import Shard, ShardScripts
from roost.lanes.selector import SELECTORS, Spot, normalise
from roost.lanes.settings import LaneSettings
from roost.store.scopes import shard as shard_scope
from roost.store.store import Store

MAX_SEQ = 2**53
SILENT_MS = 600_000
"""How far the time since an owner's last renewal counts against its lease, for those who look."""
ELSEWHERE = frozenset({Reason.MOVED, Reason.UNKNOWN_ORDER})
"""What a shard says of an order that another one may have."""


class Lanes:
    """Looks at the store; what only an owner knows is asked of it by wire."""

    def __init__(self, store: Store, settings: LaneSettings, owners: Owners) -> None:
        self.metrics = LaneMetrics(self)
        self._owners = owners
        self._placements = Placements(store, settings.selector)
        self._index = OrderIndex(store, ttl_s=settings.index_seconds)
        self._launched_ms = _day_ms(settings.launched)
        self._scripts = [
            ShardScripts(store.library, store.keys, shard_scope(number)) for number in range(SHARDS)
        ]

    def loops(self, roles: Collection[str]) -> list[Coroutine[Any, Any, None]]:
        """None: order servers have their own."""
        return []

    async def close(self) -> None:
        await self._owners.close()

    # -- looking

    async def owners(self) -> dict[int, Shard]:
        """Every shard as the store has it."""
        found = await asyncio.gather(*(scripts.shards(max_step_ms=SILENT_MS) for scripts in self._scripts))
        return dict(enumerate(found))

    async def table(self) -> Table:
        return await self._placements.look()

    async def shards(self) -> ShardList:
        return ShardList([views.shard_view(n, shard) for n, shard in (await self.owners()).items()])

    async def placement(self) -> PlacementView:
        return views.placement_view(await self.table())

    async def place_of(self, symbol: str) -> PlaceView:
        symbol = normalise(symbol)
        table, owners = await asyncio.gather(self.table(), self.owners())
        return views.place_view(table, symbol, owners)

    async def advise(self) -> AdviceView:
        """Which symbols to move, by the rates that the owners told last."""
        table, owners = await asyncio.gather(self.table(), self.owners())
        rates: dict[str, float] = {}
        rest: dict[int, float] = {}
        for number, shard in owners.items():
            if views.is_owned(shard):
                status = views.status_of(shard.status)
                rates |= status.hot
                rest[number] = status.rate - sum(status.hot.values())
        unowned = [number for number, shard in owners.items() if not views.is_owned(shard)]
        return views.advice_view(advise(rates, table, rest=rest), unowned)

    def explain_id(self, text: str) -> IdView:
        return views.id_view(views.parse_id(text), _now_ms(), self._launched_ms)

    # -- placing

    async def move(
        self, symbol: str, shard: int, lane: int | None = None, expected: int | None = None
    ) -> PlacedReply:
        """Serve a symbol there; it leaves at its next quiet point, with its book."""
        symbol, table = normalise(symbol), await self._placements.read()
        if lane is None and _shard_of(table, symbol) == shard:
            return PlacedReply(False, await self.place_of(symbol))
        target = Spot(shard, SELECTORS[table.selector].spot(symbol).lane if lane is None else lane)
        if not (0 <= target.shard < SHARDS and 0 <= target.lane < LANES):
            raise InvalidInput(
                f"no lane {target.shard}:{target.lane}", hint=f"{SHARDS} shards with {LANES} lanes each"
            )
        return await self._move(table, symbol, target, expected)

    async def unpin(self, symbol: str, expected: int | None = None) -> PlacedReply:
        """Serve a symbol where its hash puts it; a pin that says just that is forgotten."""
        symbol, table = normalise(symbol), await self._placements.read()
        home = SELECTORS[table.selector].spot(symbol)
        if symbol not in table.pins or symbol in table.moving or table.pins[symbol] != home:
            return await self._move(table, symbol, home, expected)
        return await self._placed(symbol, await self._placements.unpin(symbol, expected))

    async def _move(self, table: Table, symbol: str, target: Spot, expected: int | None) -> PlacedReply:
        place = table.of(symbol)
        if isinstance(place, Moving):
            if place.target != target:
                raise SymbolMoving(f"{symbol} is on its way to {place.target.shard}:{place.target.lane}")
            return PlacedReply(False, await self.place_of(symbol))
        if not isinstance(place, Place):
            raise PlacementConflict(f"the record of {symbol} cannot be read: {place.record[:40]!r}")
        source = Spot(place.shard, place.lane)
        if source == target:
            return PlacedReply(False, await self.place_of(symbol))
        answer = await self._placements.begin(symbol, source, target, secrets.token_hex(8), expected)
        return await self._placed(symbol, answer)

    async def _placed(self, symbol: str, answer: Changed | Unchanged | Conflict) -> PlacedReply:
        if isinstance(answer, Conflict):
            raise PlacementConflict(f"the placement is of version {answer.version} by now")
        return PlacedReply(isinstance(answer, Changed), await self.place_of(symbol))

    # -- asking owners

    async def halt(self, symbol: str, why: str = "") -> HaltReply:
        """Take no new orders for a symbol; cancels go on."""
        if len(why) > MAX_TEXT or not (why.isprintable() or not why):
            raise InvalidInput(f"a reason has at most {MAX_TEXT} characters, in one line")
        return await self._halt(Method.HALT, symbol, why)

    async def resume(self, symbol: str) -> HaltReply:
        return await self._halt(Method.RESUME, symbol, "")

    async def replay(self, symbol: str, to: int = 0, shard: int | None = None) -> BookView:
        """The book as it stood at command `to` of its shard; 0: now. `shard`: one where it was before."""
        symbol = normalise(symbol)
        if not 0 <= to <= MAX_SEQ:
            raise InvalidInput(f"to is {to}, must be the number of a command")
        if shard is None:
            shard = _shard_of(await self.table(), symbol)
        elif not 0 <= shard < SHARDS:
            raise InvalidInput(f"no shard {shard}", hint=f"there are {SHARDS}")
        payload = encode(ReplayTo(shard, symbol, to))
        return decode_book(await self._ask(shard, Method.REPLAY, payload, REPLAY_MS))

    async def order(self, text: str, account: str) -> OrderView:
        """An order of an account, wherever it is by now; `UnknownOrder` if no shard has it, nor its end."""
        order_id = views.parse_id(text)
        check_account(account)
        found = None
        if is_plausible(order_id, _now_ms(), self._launched_ms):
            found = await self._query(extract_shard(order_id), Query(account, order_id))
        if found is not None and found.reason == Reason.MOVED and found.symbol:
            found = await self._query_by_symbol(order_id, account, found.symbol)
        elif found is None or found.reason in ELSEWHERE:
            found = await self._query_by_index(order_id, account)
        if found is None or found.state == State.REFUSED:
            raise UnknownOrder(f"order {order_id} of account {account[:40]!r} is not known")
        return views.order_view(found, account)

    async def _query_by_index(self, order_id: int, account: str) -> Standing | None:
        where = await self._index.find(order_id)
        return None if where is None else await self._query_by_symbol(order_id, account, where[2])

    async def _query_by_symbol(self, order_id: int, account: str, symbol: str) -> Standing | None:
        shard = _shard_of(await self.table(), symbol)
        return await self._query(shard, Query(account, order_id, symbol=symbol))

    async def _query(self, shard: int, query: Query) -> Standing | None:
        try:
            return decode_standing(await self._ask(shard, Method.QUERY, encode(query)))
        except UnknownOrder:
            return None

    async def _halt(self, method: Method, symbol: str, why: str) -> HaltReply:
        symbol = normalise(symbol)
        place = (await self.table()).of(symbol)
        if isinstance(place, Moving):
            raise SymbolMoving(f"{symbol} is on its way to shard {place.target.shard}")
        shard = _shard_of(self._placements.table, symbol)
        outcome = decode_outcome(await self._ask(shard, method, encode(Halt(symbol, why))))
        if outcome.state == State.REFUSED:
            raise PlacementConflict(f"shard {outcome.shard} refuses: {outcome.reason}")
        return views.halt_view(symbol, method is Method.HALT, why, outcome)

    async def _ask(self, number: int, method: Method, payload: bytes, budget_ms: int = 0) -> bytes:
        found = await self._scripts[number].shards(max_step_ms=SILENT_MS)
        if not views.is_owned(found):
            raise ShardUnowned(f"no order server owns shard {number} at the moment")
        return await self._owners.call(found.address, method, payload, *([budget_ms] if budget_ms else ()))


def _shard_of(table: Table, symbol: str) -> int:
    """The shard whose log has the symbol's commands now; of one that moves, where it comes from."""
    spot = table.spot_of(symbol)
    if spot is None:
        raise PlacementConflict(f"the record of {symbol} cannot be read: {table.unreadable[symbol][:40]!r}")
    return spot.shard


def _now_ms() -> int:
    return int(time.time() * 1000)


def _day_ms(day: str) -> int:
    return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1000)
