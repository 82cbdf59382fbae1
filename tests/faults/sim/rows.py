"""The database in memory, with the rules of `db/verbs.py`; calls are lost before or after they are done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from roost.core.owner import Owner
from roost.db.errors import DatabaseUnavailable
from roost.db.model import Claimed, Fenced, Flush, Flushed, FlushResult, Refused, Row
from roost.db.verbs import is_in
from tests.faults.sim.loop import NODE, Node

T = TypeVar("T")


class SimDatabase:
    healthy = True
    is_fenced = True
    """A flush needs the row's epoch."""
    judges = True
    """A claim needs the epoch that it judged (R5)."""

    def __init__(self, fault: Callable[[Node | None, str, str], str], latency: Callable[[], float]) -> None:
        self.rows: dict[str, Row] = {}
        self.epochs: dict[tuple[str, int], Owner] = {}
        """Who ever claimed a user under an epoch."""
        self.faults: list[str] = []
        self._fault = fault
        self._latency = latency

    async def read(self, type_: str, user: str) -> Row | None:
        return await self._do("read", lambda: self.rows.get(user))

    async def claim(
        self, type_: str, user: str, owner: Owner, epoch: int, *, judged: int, **_: Any
    ) -> Claimed | Refused:
        return await self._do("claim", lambda: self._claim(type_, user, owner, epoch, judged))

    async def flush_many(self, flushes: Sequence[Flush]) -> list[FlushResult | Exception]:
        return await self._do("flush", lambda: [self._flush(one) for one in flushes])

    async def release(self, type_: str, user: str, owner: Owner, epoch: int) -> bool:
        return await self._do("release", lambda: self._release(user, owner, epoch))

    async def _do(self, name: str, verb: Callable[[], T]) -> T:
        verdict = self._fault(NODE.get(), "database", name)
        if verdict == "unsent":
            await asyncio.sleep(0.1)
            raise DatabaseUnavailable("the database is away")
        await asyncio.sleep(self._latency())
        if verdict == "late":
            asyncio.get_running_loop().call_later(0.3 + 30 * self._latency(), verb)
            await asyncio.sleep(0.2)
            raise DatabaseUnavailable("no answer in time")
        result = verb()
        if verdict == "lost":
            await asyncio.sleep(0.2)
            raise DatabaseUnavailable("no answer in time")
        await asyncio.sleep(self._latency())
        return result

    # -- the rules

    def _claim(self, type_: str, user: str, owner: Owner, epoch: int, judged: int) -> Claimed | Refused:
        row = self.rows.get(user) or Row.absent(type_, user)
        if (row.epoch != judged and self.judges) or epoch <= row.epoch:
            return Refused(row)
        if self.epochs.setdefault((user, epoch), owner) != owner:
            self.faults.append(f"I2: {user} was claimed under {epoch} by two servers")
        self.rows[user] = replace(row, owner=owner, epoch=epoch)
        return Claimed(self.rows[user])

    def _flush(self, flush: Flush) -> FlushResult:
        row = self.rows.get(flush.user)
        if row is not None and is_in(flush, row):
            return Flushed()
        if row is None or (row.epoch != flush.epoch and self.is_fenced) or row.revision >= flush.revision:
            return Fenced(row)
        if row.epoch != flush.epoch:
            self.faults.append(f"I3: {flush.user} was written under {flush.epoch} in a row at {row.epoch}")
        self.rows[flush.user] = replace(
            row,
            revision=flush.revision,
            state=flush.state,
            last_sequence=flush.last_sequence,
            replies=flush.replies,
            schema_version=flush.schema_version,
            min_reader=flush.min_reader,
        )
        return Flushed()

    def _release(self, user: str, owner: Owner, epoch: int) -> bool:
        row = self.rows.get(user)
        if row is None or row.epoch != epoch or row.owner not in (owner, None):
            return False
        self.rows[user] = replace(row, owner=None)
        return True
