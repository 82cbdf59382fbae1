"""Writing states: batched, within the window of the class, one write at a time for each user.

A state is taken between two turns, never during one; a user in a turn is asked for it by a turn of our own,
before all that wait. Every attempt has a revision of its own, so one that arrives late changes nothing (R4).
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import logging
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from roost.core.backoff import jittered
from roost.core.errors import RoostError
from roost.db.model import Fenced, Flush, Flushed
from roost.sdk.entity import Entity
from roost.servers.entity.ledger import wrap
from roost.servers.entity.session import Session
from roost.servers.entity.trading import Trading

log = logging.getLogger("roost.entity")

EARLY = 0.5
"""Share of the window after which a state is written: the rest is for the database."""
RETRY_S = 0.25
"""After a write that failed."""
LONGEST_WAIT_S = 0.5
BATCHES = 4
"""On their way at once: a user who waits for a write does not wait for the batch before it as well."""


class Database(Protocol):
    async def flush_many(self, flushes: list[Flush]) -> list[Flushed | Fenced | Exception]: ...


class Snapshot(NamedTuple):
    session: Session
    flush: Flush
    changes: int
    taken_at: float
    trade: tuple[int, int] | None
    """`Trading.mark` of a user who trades."""


class SaveTurn:
    """The state of a user who is in a turn just now, as soon as that is over."""

    __slots__ = ("_flusher", "_session", "taken")

    def __init__(self, flusher: Flusher, session: Session) -> None:
        self._flusher = flusher
        self._session = session
        self.taken = asyncio.Event()

    async def run(self) -> None:
        self._flusher.take(self._session)
        self.taken.set()

    def bounce(self) -> None:
        self.taken.set()


async def done_within(future: asyncio.Future[None], seconds: float) -> None:
    """Wait for what others wait for too: it goes on when the time is over, or the waiting is cancelled."""
    if future.done() or seconds <= 0:
        return
    woken: asyncio.Future[None] = future.get_loop().create_future()

    def wake(_: object = None) -> None:
        if not woken.done():
            woken.set_result(None)

    timer = future.get_loop().call_later(seconds, wake)
    future.add_done_callback(wake)
    try:
        await woken
    finally:
        timer.cancel()
        future.remove_done_callback(wake)


class Flusher:
    """`fenced` is told of each user whose row is somebody else's, `doubted` where it is ours under another
    epoch, `saved` of each who is up to date."""

    def __init__(
        self,
        database: Database,
        type_: str,
        entity: type[Entity],
        batch: int,
        *,
        fenced: Callable[[Session], None],
        doubted: Callable[[Session], None],
        saved: Callable[[Session, int], None],
    ) -> None:
        self._database = database
        self._type = type_
        self._entity = entity
        self._batch = batch
        self._fenced = fenced
        self._doubted = doubted
        self._saved = saved
        self._delay_s = entity.durability.ms / 1000 * EARLY
        self._due: list[tuple[float, int, Session]] = []
        self._numbers = itertools.count()
        self._taken: deque[Snapshot] = deque()
        self._kick = asyncio.Event()
        self._looking = asyncio.Lock()
        self.counts: Counter[str] = Counter()
        self.unsaved = 0.0
        """Seconds that the oldest unsaved change of anybody has waited, as of the last look."""

    def changed(self, session: Session) -> None:
        """The session has become dirty: write it within its window."""
        self._put(session.unsaved.since + self._delay_s, session)

    def _put(self, at: float, session: Session) -> None:
        if session.unsaved.is_queued:
            return
        session.unsaved.is_queued = True
        heapq.heappush(self._due, (at, next(self._numbers), session))
        if self._due[0][2] is session:
            self._kick.set()

    def take(self, session: Session) -> None:
        """Have the present state written; only between turns, or by the turn itself."""
        unsaved = session.unsaved
        if not session.is_open or not unsaved.is_dirty or session.writing is not None:
            return
        if session.in_doubt:
            self._again(session)
            return
        try:
            state = session.entity.save()
            if not isinstance(state, bytes):
                raise TypeError(f"save returned {type(state).__name__}, not bytes")
            trading = session.trading
            state = wrap(trading.ledger if trading is not None else None, state)
        except Exception as error:
            self._failed(session, f"save failed: {type(error).__name__}", error)
            return
        unsaved.revision += 1
        flush = Flush(
            self._type,
            session.user,
            session.epoch,
            unsaved.revision,
            state,
            session.last_sequence,
            session.replies.pack(),
            self._entity.schema_version,
            self._entity.min_reader,
        )
        session.writing = asyncio.get_running_loop().create_future()
        trade = trading.mark() if trading is not None else None
        self._taken.append(Snapshot(session, flush, unsaved.changes, time.monotonic(), trade))
        self._kick.set()

    def hasten(self, session: Session) -> None:
        """Have it written as soon as the turn under way is over, not only within its window."""
        if session.line.busy:
            session.line.add_first(SaveTurn(self, session))
        else:
            self.take(session)

    async def save_in_turn(self, session: Session, timeout_s: float) -> bool:
        """Write everything now, from a turn of this user; False: it could not be written in time."""
        until = time.monotonic() + timeout_s
        while session.unsaved.is_dirty and session.is_open and (left_s := until - time.monotonic()) > 0:
            self.take(session)
            if session.writing is not None:
                await done_within(session.writing, left_s)
            if session.unsaved.fault or session.in_doubt:
                await asyncio.sleep(min(RETRY_S, left_s))
        return not session.unsaved.is_dirty

    async def save_soon(self, session: Session, timeout_s: float) -> None:
        """Have the present state written while the user is served; whether it was is not said."""
        until = time.monotonic() + timeout_s
        if session.line.busy and session.unsaved.is_dirty:
            turn = SaveTurn(self, session)
            session.line.add_first(turn)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await turn.taken.wait()
        else:
            self.take(session)
        if session.writing is not None:
            await done_within(session.writing, until - time.monotonic())

    # -- the loop

    async def step(self) -> None:
        """Wait for something to write, and write what is due. `BATCHES` loops do it: one looks at a time."""
        async with self._looking:
            await self._wait()
            self._look(time.monotonic())
            batch = [self._taken.popleft() for _ in range(min(self._batch, len(self._taken)))]
        if batch:
            await self._write(batch)

    async def _wait(self) -> None:
        if not self._taken:
            wait_s = min(self._due[0][0] - time.monotonic() if self._due else LONGEST_WAIT_S, LONGEST_WAIT_S)
            if wait_s > 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._kick.wait()
        self._kick.clear()

    def _look(self, now: float) -> None:
        self.unsaved = now - self._due[0][2].unsaved.since if self._due else 0.0
        while self._due and self._due[0][0] <= now:
            session = heapq.heappop(self._due)[2]
            session.unsaved.is_queued = False
            if not session.is_open:
                continue
            if session.line.busy:
                session.line.add_first(SaveTurn(self, session))
            else:
                self.take(session)

    async def _write(self, batch: list[Snapshot]) -> None:
        results: list[Flushed | Fenced | Exception]
        try:
            results = await self._database.flush_many([snapshot.flush for snapshot in batch])
        except Exception as error:
            results = [error] * len(batch)
        finally:
            for snapshot in batch:
                self._over(snapshot.session)
        for snapshot, result in zip(batch, results, strict=True):
            self._apply(snapshot, result)

    def _over(self, session: Session) -> None:
        if session.writing is not None and not session.writing.done():
            session.writing.set_result(None)
        session.writing = None

    def _apply(self, snapshot: Snapshot, result: Flushed | Fenced | Exception) -> None:
        session, flush = snapshot.session, snapshot.flush
        match result:
            case Flushed():
                self.counts["saved"] += 1
                session.unsaved.save(snapshot.changes, flush.last_sequence, snapshot.taken_at, flush.state)
                session.flushed(flush.last_sequence)
                self._saved(session, flush.last_sequence)
                if session.unsaved.is_dirty:
                    self.changed(session)
                if session.trading is not None:
                    self._may_leave(session, session.trading, snapshot.trade)
            case Fenced(row) if row is not None and row.owner == session.owner and row.epoch > session.epoch:
                self.counts["doubted"] += 1  # a claim of our own whose answer was lost
                self._failed(session, "the row is ours under a later epoch", None)
                self._doubted(session)
            case Fenced(row) if flush.epoch == session.epoch and (row is None or row.epoch != session.epoch):
                self.counts["fenced"] += 1
                self._fenced(session)
            case Fenced(row):  # our own write of a later revision, or one under the epoch before a renewal
                session.unsaved.revision = max(session.unsaved.revision, row.revision if row else 0)
                self._again(session)
            case _:
                reason = result.message if isinstance(result, RoostError) else type(result).__name__
                expected = isinstance(result, RoostError)
                self._failed(session, reason, None if expected else result)

    def _may_leave(self, session: Session, trading: Trading, trade: tuple[int, int] | None) -> None:
        """Orders that the row holds now are sent; those that came since want to be written."""
        if trade is not None and session.is_open:
            trading.saved(*trade)
        if trading.has_unsent:
            self.hasten(session)

    def _failed(self, session: Session, reason: str, error: Exception | None) -> None:
        self.counts["failed"] += 1
        if session.unsaved.fault != reason:
            log.error("not saved", exc_info=error, extra={"userId": session.user, "reason": reason})
        session.unsaved.fault = reason
        self._again(session)

    def _again(self, session: Session) -> None:
        self._put(time.monotonic() + jittered(RETRY_S), session)
