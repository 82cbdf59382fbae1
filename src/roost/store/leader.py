"""One leader per scope, by a lease with a fencing token.

A leader acts only inside the work given to `lead()`, only while `Tenure.holds()`, and sends its epoch
with every write; the script that receives the write refuses an older epoch. So a leader that was
stopped for an hour and wakes up in the middle of a loop can do no harm, and two never act at once.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from roost.core.backoff import jittered
from roost.core.clock import Clock, SystemClock
from roost.core.errors import InvalidInput, StoreError
from roost.core.lease import MAX_STEP_MS, MIN_TTL_MS, Tenure, renew_interval_s
from roost.core.loops import Loops
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
    ) -> None:
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
        self._tenure: Tenure | None = None

    @property
    def tenure(self) -> Tenure | None:
        """The present tenure while it holds by our own clock, else None. Ask before every step."""
        if self._tenure is not None and not self._tenure.holds(self._clock.monotonic()):
            return None
        return self._tenure

    async def campaign(self) -> Tenure | Held:
        """Take or renew the leadership once."""
        asked_at = self._clock.monotonic()
        epoch = str(self._tenure.epoch) if self._tenure else ""
        answer = await self._campaign(
            leader=self._key, holder=self.holder, epoch=epoch, ttl_ms=self._ttl_ms, max_step_ms=MAX_STEP_MS
        )
        if isinstance(answer, Held):
            self._tenure = None
            return answer
        self._tenure = Tenure(answer.epoch, asked_at, self._ttl_ms)
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
        await self._clock.sleep(self._pause_s() if self._job else jittered(LOOK_INTERVAL_S))

    async def _step(self, work: Callable[[Tenure], Awaitable[None]]) -> None:
        if self._job is not None and self.tenure is None:
            await self._end()  # its time is over, whatever the store is about to say
        before = self._tenure.epoch if self._tenure else None
        try:
            async with asyncio.timeout(self._time_left_s()):
                await self.campaign()
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
