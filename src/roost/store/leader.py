"""One leader per scope, by a lease with a fencing token.

A leader acts only inside the work given to `lead()`, only while `Tenure.holds()`, and sends its name and its
epoch with every write; the script that receives the write takes it only if both are those of the present
grant (`store/lua/leads.lua`). So a leader that was stopped for an hour and wakes up in the middle of a loop
can do no harm, two never act at once, and a store that was wiped takes orders from nobody until it has
granted anew.

A tenure ends with the connection over which it was granted: another primary may have granted another one.
What remains: where a primary was replaced and still answers us (it was cut off from its sentinels, not from
us), we act until our own look at the sentinels (every second) or at the cluster map tells us. What is written
meanwhile goes to the old primary and is lost with it; what reaches the new one is refused.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from roost.core.backoff import jittered
from roost.core.clock import Clock, SystemClock
from roost.core.errors import InvalidInput, StoreError
from roost.core.lease import MAX_STEP_MS, MIN_TTL_MS, Tenure, renew_interval_s
from roost.core.loops import Loops
from roost.store.connection import Connection
from roost.store.keys import Key
from roost.store.scripts import Library, Script

log = logging.getLogger("roost.store.leader")

LOOK_INTERVAL_S = 1.0
"""How often a candidate looks; each look also moves the lease clock."""

RETRY_S = 0.1
"""The least time between two attempts of a leader to renew."""


@dataclass(frozen=True, slots=True)
class Leading:
    epoch: int


@dataclass(frozen=True, slots=True)
class Held:
    holder: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Resigned:
    pass


@dataclass(frozen=True, slots=True)
class NotLeading:
    pass


class LeaderLease:
    """One candidate for the leadership of one scope. Its name is made unique: two lives never share it."""

    def __init__(
        self,
        library: Library,
        key: Key,
        name: str,
        ttl_ms: int = 10_000,
        clock: Clock | None = None,
        loops: Loops | None = None,
        on_lost: Callable[[], None] = lambda: None,
        job: str = "",
        connection: Callable[[], Connection | None] | None = None,
    ) -> None:
        """`connection`: the present one to the primary that grants."""
        if ttl_ms < MIN_TTL_MS:
            raise InvalidInput(
                f"a leader lease of {ttl_ms} ms is too short, at least {MIN_TTL_MS} are needed"
            )
        self.holder = f"{name}-{secrets.token_hex(6)}"
        self._campaign: Script[Leading | Held] = library.script("store", "leader_campaign", Leading, Held)
        self._resign: Script[Resigned | NotLeading] = library.script(
            "store", "leader_resign", Resigned, NotLeading
        )
        self._key = key
        self._ttl_ms = ttl_ms
        self._clock = clock or SystemClock()
        self._loops = loops or Loops(self._clock)
        self._on_lost = on_lost
        self._loop_name = f"leader {job or key.decode()}"
        self._job: asyncio.Task[None] | None = None
        self._connection = connection
        self._granted_over: Connection | None = None
        self._tenure: Tenure | None = None
        self._last_epoch = 0
        """Of the last grant: whoever granted it may have lost it, a new one must be larger."""

    @property
    def tenure(self) -> Tenure | None:
        """The present tenure while it holds by our own clock, else None. Ask before every step."""
        if self._tenure is not None and not self._tenure.holds(self._clock.monotonic()):
            return None
        if self._granted_over is not None and self._granted_over.lost.done():
            return None
        return self._tenure

    async def campaign(self) -> Tenure | Held:
        """Take or renew the leadership once."""
        asked_at = self._clock.monotonic()
        epoch = str(self._last_epoch or "")
        answer = await self._campaign(
            leader=self._key, holder=self.holder, epoch=epoch, ttl_ms=self._ttl_ms, max_step_ms=MAX_STEP_MS
        )
        if isinstance(answer, Held):
            self._tenure = None
            return answer
        self._granted_over = self._connection() if self._connection is not None else None
        self._last_epoch = max(self._last_epoch, answer.epoch)
        self._tenure = Tenure(self.holder, answer.epoch, asked_at, self._ttl_ms)
        return self._tenure

    async def resign(self) -> None:
        tenure, self._tenure = self._tenure, None
        if tenure is not None:
            await self._resign(leader=self._key, holder=self.holder, epoch=str(tenure.epoch))

    async def lead(self, work: Callable[[Tenure], Awaitable[None]]) -> None:
        """Campaign for ever; while leading run `work`, and cancel it before the lease can be another's."""
        try:
            await self._loops.keep_running(self._loop_name, lambda: self._turn(work))
        finally:
            job, self._job = self._job, None
            await _stop(job)
            try:
                await self.resign()
            except StoreError as error:
                log.info("leadership left to expire", extra={"reason": error.message})

    async def _turn(self, work: Callable[[Tenure], Awaitable[None]]) -> None:
        await self._step(work)
        await self._unless_lost(
            self._clock.sleep(self._pause_s() if self._job else jittered(LOOK_INTERVAL_S))
        )

    async def _unless_lost(self, awaited: Coroutine[Any, Any, Any]) -> None:
        """Wait, but while leading no longer than the connection lasts over which we lead."""
        if self._job is None or self._granted_over is None:
            await awaited
            return
        waiting = asyncio.ensure_future(awaited)
        try:
            await asyncio.wait({waiting, self._granted_over.lost}, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                waiting.result()
        finally:
            waiting.cancel()

    async def _step(self, work: Callable[[Tenure], Awaitable[None]]) -> None:
        if self._job is not None and self.tenure is None:
            await self._end()  # its time is over, whatever the store is about to say
        before = self._tenure.epoch if self._tenure else None
        try:
            async with asyncio.timeout(self._time_left_s()):
                await self._unless_lost(self.campaign())
        except (StoreError, TimeoutError) as error:
            log.debug("campaign failed", extra={"reason": str(error)})
        tenure, job = self.tenure, self._job
        if job is not None and (tenure is None or tenure.epoch != before or job.done()):
            await self._end()
        if self._job is None and tenure is not None:
            log.info("leading", extra={"holder": self.holder, "epoch": tenure.epoch})
            self._job = asyncio.ensure_future(work(tenure))

    async def _end(self) -> None:
        """Stop the work; if it had failed by itself, raise why, to be counted; it begins again later."""
        log.info("leadership ended", extra={"holder": self.holder})
        self._on_lost()
        job, self._job = self._job, None
        if (error := await _stop(job)) is not None:
            log.warning("leader's work failed", extra={"holder": self.holder})
            raise error

    def _pause_s(self) -> float:
        """Until the next renewal: sooner the less time is left, and never beyond it."""
        left = self._time_left_s()
        return min(jittered(renew_interval_s(self._ttl_ms)), max(left / 2, RETRY_S), left)

    def _time_left_s(self) -> float:
        """How long we may wait before looking at our own clock again."""
        if self._tenure is None or not self._tenure.holds(self._clock.monotonic()):
            return LOOK_INTERVAL_S
        return self._tenure.ends_at - self._clock.monotonic()


async def _stop(job: asyncio.Task[None] | None) -> Exception | None:
    """End the work; returns what it had failed with."""
    if job is None:
        return None
    job.cancel()
    (result,) = await asyncio.gather(job, return_exceptions=True)
    return result if isinstance(result, Exception) else None
