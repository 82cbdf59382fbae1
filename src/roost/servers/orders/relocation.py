"""Symbols that go to another shard while they trade: out of one log, into the other, then the table.

The owner of the old shard drives. MOVE_OUT takes the book out of it, between two commands of the symbol;
from then on nothing of the symbol is executed anywhere until MOVE_IN is in the other shard's log. Both are
known by the move's id, so whoever finds a move half done, after any crash, goes on: the book is in the
log of the old shard.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from heapq import nsmallest
from typing import cast

from roost.core.errors import RoostError, Unavailable
from roost.db.database import Database
from roost.db.orders import OPEN
from roost.lanes.commands import SERVICE, Method, MoveIn, MoveOut, Reason, State, decode_outcome, encode
from roost.lanes.owner import Ownership
from roost.lanes.placement import Table
from roost.lanes.placing import Placements
from roost.lanes.selector import Spot
from roost.lanes.shard import Shard
from roost.servers.orders.engine import Engine
from roost.servers.orders.host import Host
from roost.wire.answer import Answer
from roost.wire.pool import Pool

log = logging.getLogger("roost.orders")

CALL_MS = 5000
MAX_BOOK_BYTES = 768 * 1024
LOOKED_AT = 100
"""Orders of a shard that the database is asked for in one step."""
KEPT_MS = 3_600_000
"""For how long after its end an order that left is found by its id alone where it was made."""


class Relocation:
    """`max_book_bytes`: a larger book does not fit into one message, so its symbol stays."""

    def __init__(
        self,
        host: Host,
        ownership: Ownership,
        placements: Placements,
        peers: Pool,
        max_book_bytes: int = MAX_BOOK_BYTES,
    ) -> None:
        self._host = host
        self._ownership = ownership
        self._placements = placements
        self._peers = peers
        self._max_book_bytes = max_book_bytes
        self.moved = 0

    async def step(self) -> None:
        """Go on with every move whose old shard is owned here; one that fails holds up no other.

        It is tried again; what the first of them raised is raised when all had their turn.
        """
        faults: list[Exception] = []
        table = self._placements.table
        for symbol, (target, move_id) in table.moving.items():
            source = table.pins[symbol]
            if source.shard not in self._host.shards:
                continue
            try:
                await self._move(symbol, source, target, move_id)
            except Exception as error:
                log.warning("a move goes on later", extra={"symbol": symbol, "reason": str(error)})
                faults.append(error)
        await self._drop_arrived()
        if faults:
            raise faults[0]

    async def _move(self, symbol: str, source: Spot, target: Spot, move_id: str) -> None:
        shard = self._host.shards[source.shard]
        engine = cast(Engine, shard.machine)
        if not _has_left(engine, symbol, move_id):
            if (await self._placements.look()).moving.get(symbol) != (target, move_id):
                return  # it has arrived long ago, and may be here again
            if symbol in engine.departed():
                raise Unavailable(f"the book of {symbol} left by another move")
            is_small = engine.size_of(symbol) <= self._max_book_bytes
            if not is_small or not await self._out(symbol, source, target, move_id):
                await self._placements.finish(symbol, source, move_id)
                log.error("symbol stays: its book is too large", extra={"symbol": symbol})
                return
        await _committed(shard)
        if _has_left(engine, symbol, move_id):
            await self._in(MoveIn(symbol, move_id, engine.departed()[symbol].book), target)
        await self._placements.finish(symbol, target, move_id)
        engine.arrived(symbol)
        self.moved += 1
        log.info("symbol moved", extra={"symbol": symbol, "shard": target.shard, "lane": target.lane})

    async def _drop_arrived(self) -> None:
        """Books that a replay brought back, of moves that were over before the crash.

        Only by the store's table of now: an older one may show where a symbol was before it came here.
        """
        if not self._arrived(self._placements.table):
            return
        for engine, symbol in self._arrived(await self._placements.look()):
            engine.arrived(symbol)
            log.info("book had arrived before", extra={"symbol": symbol, "shard": engine.shard})

    def _arrived(self, table: Table) -> list[tuple[Engine, str]]:
        """Of what left the shards here, what is elsewhere by this table: until then it moves from here."""
        engines = [cast(Engine, shard.machine) for shard in self._host.shards.values()]
        return [
            (engine, symbol)
            for engine in engines
            for symbol in engine.departed()
            if (spot := table.spot_of(symbol)) is not None and spot.shard != engine.shard
        ]

    async def _out(self, symbol: str, source: Spot, target: Spot, move_id: str) -> bool:
        """False: what has to go with it is too large, and nothing has left."""
        leaving = MoveOut(symbol, move_id, target.shard, target.lane, self._max_book_bytes)
        answer = await self._command(Method.MOVE_OUT, leaving, source)
        return _check(answer, "it does not leave", but=(Reason.MOVED, Reason.TOO_LARGE)) != Reason.TOO_LARGE

    async def _in(self, coming: MoveIn, target: Spot) -> None:
        if target.shard in self._host.shards:
            _check(await self._command(Method.MOVE_IN, coming, target), "it is not taken")
            return
        owner = self._ownership.address_of(target.shard)
        if not owner:
            raise Unavailable(f"nobody owns shard {target.shard}")
        host, _, port = owner.rpartition(":")
        payload = encode((target.shard, target.lane, encode(coming)))
        peer = self._peers.at(host, int(port))
        _check(await peer.call(SERVICE, Method.MOVE_IN, payload, budget_ms=CALL_MS), "it is not taken")

    async def _command(self, method: Method, command: MoveOut | MoveIn, spot: Spot) -> Answer:
        """Through the lane, like any command of the symbol."""
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def reply(answer: Answer) -> None:
            if not answered.done():
                answered.set_result(answer)

        refused = self._host.command(method, command, reply, spot)
        if refused is not None:
            return refused
        async with asyncio.timeout(CALL_MS / 1000):
            return await answered


class Forgetting:
    """Forgets the way to orders that left with their symbol, once the database has them as closed.

    It is a hint that no reply of a shard depends on, so it stands in no log: whoever replays the move has it
    again, and asks again.
    """

    def __init__(self, host: Host, database: Database, clock_ms: Callable[[], int]) -> None:
        self._host = host
        self._database = database
        self._clock_ms = clock_ms
        self._asked: dict[int, int] = {}
        """By shard the last order id that was asked for: the next step goes on after it."""

    async def step(self) -> None:
        """Look at some orders of each shard that is owned here."""
        for number, shard in list(self._host.shards.items()):
            engine = cast(Engine, shard.machine)
            after = self._asked.get(number, 0)
            some = nsmallest(LOOKED_AT, (order_id for order_id in engine.left() if order_id > after))
            self._asked[number] = some[-1] if len(some) == LOOKED_AT else 0
            before_ms = self._clock_ms() - KEPT_MS
            rows = await asyncio.gather(*map(self._database.order, some))
            closed = (row for row in rows if row is not None and row.state != OPEN)
            engine.closed_elsewhere([row.order_id for row in closed if row.updated_ms <= before_ms])


def _has_left(engine: Engine, symbol: str, move_id: str) -> bool:
    """Whether its book waits here for this move: one of another move has another way."""
    departed = engine.departed().get(symbol)
    return departed is not None and departed.move_id == move_id


async def _committed(shard: Shard) -> None:
    """Returns when all that was executed is in the log: else the shard's next owner has the book too."""
    reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def reach() -> None:
        if not reached.done():
            reached.set_result(None)

    shard.commits.read(reach)
    async with asyncio.timeout(CALL_MS / 1000):
        await reached
    if not shard.serves:
        raise Unavailable(f"shard {shard.number} is another's")


def _check(answer: Answer, what: str, but: Collection[str] = ()) -> str:
    """The reason of a refusal that is all right here, or nothing; raise why a move cannot go on now."""
    if answer.code:
        raise Unavailable(f"{what}: {answer.message}")
    outcome = decode_outcome(answer.payload)
    if outcome.state == State.REFUSED and outcome.reason not in but:
        raise RoostError(f"{what}: {outcome.reason}")
    return outcome.reason
