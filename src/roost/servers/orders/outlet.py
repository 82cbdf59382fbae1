"""Where what happened in a shard goes once its log has it: to followers, to the index, to the database."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from roost.db.database import Database
from roost.db.orders import OrderRow
from roost.lanes.appending import after_writes
from roost.lanes.ids import EPOCH_MS, SHARD_SHIFT, SHARDS, TIME_SHIFT
from roost.lanes.index import OrderIndex
from roost.lanes.outbox import Outbox
from roost.servers.orders.sessions import Sessions


class Outlet:
    """All of it is written after the answer, in batches; the log is not cut before the database has it.

    Rows are put into index and outbox only when the answers have left: whoever waits for one need not wait
    for that too.
    """

    def __init__(self, sessions: Sessions, index: OrderIndex, outbox: Outbox, database: Database) -> None:
        self._sessions = sessions
        self._index = index
        self._outbox = outbox
        self._database = database
        self._loop = asyncio.get_running_loop()
        self._late: list[tuple[int, int, list[OrderRow]]] = []

    def happened(self, shard: int, seq: int, events: list[tuple[str, bytes]], rows: list[OrderRow]) -> None:
        if events:
            self._sessions.tell(events)
        if not self._late:
            after_writes(self._loop, self.catch_up)
        self._late.append((shard, seq, rows))

    def catch_up(self) -> None:
        """Put the rows where they belong; of each shard in the order of its commands."""
        late, self._late = self._late, []
        for shard, seq, rows in late:
            self._write(shard, seq, rows)

    def recovered(self, shard: int, seq: int, rows: Sequence[OrderRow]) -> None:
        """A shard was taken over: these rows may be missing in the database."""
        self.catch_up()
        self._outbox.forget(shard)
        self._write(shard, seq, rows)

    async def last_seq(self, shard: int) -> int:
        """The last command of a shard that the database has heard of."""
        return await self._database.last_seq(shard)

    async def newest_id(self, shard: int, at_ms: int) -> int:
        """The largest id of the shard from this millisecond on that the database has; 0: none."""
        first = max(0, at_ms - EPOCH_MS) << TIME_SHIFT
        return await self._database.newest_order_id(first, (SHARDS - 1) << SHARD_SHIFT, shard << SHARD_SHIFT)

    async def rows_between(self, shard: int, after: int, before: int) -> list[OrderRow]:
        """What the database has of commands of a shard between these two."""
        return await self._database.orders_between(shard, after, before)

    def written_seq(self, shard: int) -> int:
        return self._outbox.written_seq(shard)

    async def flush(self) -> None:
        """Have the database write what happened so far; raises what it says."""
        self.catch_up()
        await self._outbox.flush()

    def _write(self, shard: int, seq: int, rows: Sequence[OrderRow]) -> None:
        if rows:
            self._index.follow(shard, rows)
            self._outbox.add(rows)
        self._outbox.mark(shard, seq)
