"""Orders on their way to the database: written after the reply, in batches, the newest row of each.

Nothing is lost by what waits here: the log of a shard is kept above `written_seq`, and a replay makes the
rows anew. A shard adds the rows of a batch of commands first, and then marks how far it came.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Iterable, Sequence
from typing import Protocol

from roost.core.errors import InvalidInput
from roost.core.loops import Loops
from roost.db.orders import OrderRow, is_newer

log = logging.getLogger("roost.lanes.outbox")

BATCH_LIMIT = 500
BATCHES_AT_ONCE = 8
"""SQLite commits batches that wait together at once; other databases take them in parallel."""

PAUSE_S = 2.0
"""An order that is made and closed within it is written once."""
MAX_ROWS = 200_000
"""Orders that wait for a database that is away, some 100 MB; then no new ones are accepted."""


class OrderTable(Protocol):
    """What is needed of `roost.db.database.Database`."""

    async def put_orders(self, rows: Sequence[OrderRow]) -> None: ...


class Outbox:
    def __init__(self, database: OrderTable, *, max_rows: int = MAX_ROWS, loops: Loops | None = None) -> None:
        self.refused = 0
        """Rows that no database takes: a fault of ours, logged, and dropped lest they hold up the others."""
        self.written = 0
        self._database, self._max_rows = database, max_rows
        self._loops = loops or Loops()
        self._waiting: dict[int, OrderRow] = {}
        self._marks: dict[int, int] = {}
        self._round: dict[int, OrderRow] = {}
        """What waited when the present round began, and is not written yet."""
        self._round_marks: dict[int, int] = {}
        """How far the shards had come then: all of it is in the round, or was written before."""
        self._done: dict[int, int] = {}
        self._writing = asyncio.Lock()

    @property
    def depth(self) -> int:
        """Rows that are not written yet."""
        return len(self._waiting) + len(self._round)

    @property
    def is_full(self) -> bool:
        """Whether the database is so far behind that no new orders should be accepted."""
        return not self.has_room()

    def has_room(self) -> bool:
        """Asked for every new order."""
        return len(self._waiting) + len(self._round) < self._max_rows

    def add(self, rows: Iterable[OrderRow]) -> None:
        """Take them, in any case: whether new orders come at all is for `is_full` to say."""
        waiting = self._waiting
        for row in rows:
            order_id = row[0]
            kept = waiting.get(order_id)
            if kept is None or is_newer(row, kept):
                waiting[order_id] = row

    def newest(self, order_id: int) -> OrderRow | None:
        """The row of an order that is not written yet."""
        return self._waiting.get(order_id) or self._round.get(order_id)

    def mark(self, shard: int, seq: int) -> None:
        """All rows of the shard's commands up to this one have been added."""
        self._marks[shard] = seq

    def written_seq(self, shard: int) -> int:
        """The last command of the shard up to which all rows are in the database; 0: nobody knows."""
        return self._done.get(shard, 0)

    def forget(self, shard: int) -> None:
        """Another owns the shard now: what was marked here says nothing of what it will do."""
        for marks in (self._marks, self._round_marks, self._done):
            marks.pop(shard, None)

    async def run(self) -> None:
        """For ever; what the database does not take stays for the next turn."""
        await self._loops.keep_running("order outbox", self.flush, pause_s=PAUSE_S)

    async def flush(self) -> None:
        """Write what waits now; raises what the database says, and keeps what may not be written."""
        async with self._writing:
            if self._round:
                await self._finish_round()  # one that a fault broke off
            self._round, self._waiting = self._waiting, {}
            self._round_marks = dict(self._marks)
            await self._finish_round()

    async def _finish_round(self) -> None:
        while self._round:
            rows = list(itertools.islice(self._round.values(), BATCH_LIMIT * BATCHES_AT_ONCE))
            batches = [rows[at : at + BATCH_LIMIT] for at in range(0, len(rows), BATCH_LIMIT)]
            results = await asyncio.gather(*map(self._write, batches), return_exceptions=True)
            for result in results:
                if isinstance(result, BaseException):
                    raise result
        self._done |= self._round_marks

    async def _write(self, rows: Sequence[OrderRow]) -> None:
        """One batch; a row that no database takes is found by halves and dropped."""
        try:
            await self._database.put_orders(rows)
        except InvalidInput as error:
            if len(rows) > 1:
                middle = len(rows) // 2
                await self._write(rows[:middle])
                await self._write(rows[middle:])
                return
            self.refused += 1
            log.error("an order is not kept", extra={"order": str(rows[0].order_id), "reason": error.message})
        else:
            self.written += len(rows)
        for row in rows:
            del self._round[row.order_id]
