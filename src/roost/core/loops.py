"""Everything that repeats for ever is run here, so that nothing can end unseen.

    loops = Loops()                                            # one for each process
    asyncio.create_task(loops.keep_running("sweep", reaper.step, pause_s=1.0))

A turn that raises is counted, logged and tried again after a backoff, whatever it raised: also a cancellation
that was meant for something it waited for, and not for the loop. A step that itself lasts (it follows a feed
until there is a gap) says `good()` whenever it got somewhere; what it follows says `up_to_date()` for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Final

from roost.core.backoff import Backoff, jittered
from roost.core.clock import Clock, SystemClock
from roost.core.errors import RoostError
from roost.core.histogram import Histogram
from roost.core.requests import current_request

log = logging.getLogger("roost.loops")

END: Final = object()
"""What a step returns to end its loop; nothing else does, but a cancellation."""

BACKOFF_CAP_S = 2.0
JITTER = 0.1
FAILING_S = 10.0
"""An essential loop that has not had a good turn for so long, and fails, makes its process not ready."""

STALE_S = 20.0
"""So does one that follows something and has not known for so long that it is up to date."""

LAG_S = 1.0

Step = Callable[[], Awaitable[Any]]


class Run:
    """One run of a loop: loops of the same name share a `Loop`, each has its own run."""

    __slots__ = ("clock", "outer", "task", "up_to_date_at")

    def __init__(self, clock: Clock, outer: Run | None) -> None:
        self.clock = clock
        self.task = asyncio.current_task()
        self.outer = outer if outer is not None and outer.task is self.task else None
        """The run inside whose turn this one goes on."""
        self.up_to_date_at: float | None = None
        """Monotonic seconds when it last knew that it was; None of one that follows nothing."""


_running: ContextVar[Run | None] = ContextVar("roost_loop", default=None)


def up_to_date() -> None:
    """Said by what a loop follows: its reader has all that there is. Outside a loop nobody hears it."""
    run = _running.get()
    if run is not None and run.task is not asyncio.current_task():
        return  # a task that a turn began: it speaks for itself
    while run is not None:
        run.up_to_date_at, run = run.clock.monotonic(), run.outer


class Loop:
    """One loop and how it is doing. `failures` counts turns that raised."""

    def __init__(self, name: str, essential: bool, clock: Clock, lag: Histogram | None = None) -> None:
        self.name = name
        self.essential = essential
        """Whether requests depend on it: only then does its failing make the process not ready."""
        self.failures = 0
        self.last_good_at: float | None = None
        """Monotonic seconds of the last turn that ended well; None before the first."""
        self.failing_since: float | None = None
        self.reason = ""
        """Why the last turn failed; empty while it does well."""
        self._clock = clock
        self._lag = lag or Histogram()
        self._backoff = Backoff(cap_s=BACKOFF_CAP_S)
        self._runs: set[Run] = set()

    def good(self) -> None:
        """A turn, or a part of a long one, ended well."""
        self.last_good_at = self._clock.monotonic()
        if self.failing_since is not None:
            log.info("loop works again", extra={"loop": self.name})
            self.failing_since, self.reason = None, ""
            self._backoff.reset()

    @property
    def up_to_date_at(self) -> float | None:
        """Monotonic seconds when every run of it knew that it was up to date; None if it follows nothing."""
        return min((run.up_to_date_at for run in self._runs if run.up_to_date_at is not None), default=None)

    async def keep_running(self, step: Step, pause_s: float | Callable[[], float] = 0.0) -> None:
        """Take turn after turn, with a jittered pause between them, until `END` or a cancellation."""
        current_request.set("")
        run = Run(self._clock, _running.get())
        self._runs.add(run)
        _running.set(run)
        try:
            while await self._turn(step):
                await self._pause(pause_s() if callable(pause_s) else pause_s)
        finally:
            _running.set(run.outer)
            self._runs.discard(run)
            if not self._runs:  # what nobody runs any more does not fail: no request depends on it
                self.failing_since, self.reason = None, ""

    async def _turn(self, step: Step) -> bool:
        """One good turn, however many it takes; False: that was the last one."""
        while True:
            try:
                if await step() is END:
                    return False
            except asyncio.CancelledError as error:
                if _is_cancelled():
                    raise
                self._note(RuntimeError(f"what it waited for was cancelled {error}".rstrip()))
                await self._clock.sleep(self._backoff.next())
            except Exception as error:  # whatever it was: a loop that dies of it would be missed by nobody
                self._note(error)
                await self._clock.sleep(self._backoff.next())
            else:
                self.good()
                return True

    async def _pause(self, seconds: float) -> None:
        if seconds > 0:
            wanted = jittered(seconds, JITTER)
            due = self._clock.monotonic() + wanted
            await self._clock.sleep(wanted)
            self._lag.observe(max(0.0, self._clock.monotonic() - due))
        else:
            await asyncio.sleep(0)  # a step that never waits must not keep the others from running

    def _note(self, error: Exception) -> None:
        self.failures += 1
        reason = error.message if isinstance(error, RoostError) else f"{type(error).__name__}: {error}"
        if self.failing_since is None:
            self.failing_since = self._clock.monotonic()
        if reason != self.reason:  # a store that is away for an hour is one line, not a thousand
            expected = isinstance(error, RoostError)
            log.log(
                logging.INFO if expected else logging.ERROR,
                "loop failed",
                exc_info=None if expected else error,
                extra={"loop": self.name, "reason": reason},
            )
        self.reason = reason


def _is_cancelled() -> bool:
    """Whether somebody ends the task itself."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


class Loops:
    """The loops of one process by name; loops of the same name share their counts."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._loops: dict[str, Loop] = {}
        self.lag = Histogram()
        """How late pauses ended, in seconds: what else the event loop was busy with. It costs no timer."""

    def loop(self, name: str, *, essential: bool = False) -> Loop:
        if name not in self._loops:
            self._loops[name] = Loop(name, essential, self._clock, self.lag)
        return self._loops[name]

    def forget(self, name: str) -> None:
        """Nobody runs it any more, and nobody will under this name for a while."""
        self._loops.pop(name, None)

    def all(self) -> list[Loop]:
        return list(self._loops.values())

    async def keep_running(
        self, name: str, step: Step, *, pause_s: float | Callable[[], float] = 0.0, essential: bool = False
    ) -> None:
        """`Loop.keep_running` for a step that needs to know nothing of its loop."""
        await self.loop(name, essential=essential).keep_running(step, pause_s)

    async def watch_lag(self) -> None:
        """For a process none of whose loops pauses: without one that does nothing else, `lag` stays empty."""
        await self.keep_running("event loop", _nothing, pause_s=LAG_S)

    def fault(self, answering_since: float = float("-inf")) -> str:
        """Why requests should go elsewhere: an essential loop that fails or is stale; empty if there is none.

        `answering_since`: monotonic seconds since which the store answers. Only the time after it counts: an
        outage of the store befalls every process, and there is no elsewhere.
        """
        now = self._clock.monotonic()
        for loop in self._loops.values():
            if loop.essential and (fault := _fault_of(loop, now, answering_since)):
                return fault
        return ""


async def _nothing() -> None:
    pass


def _fault_of(loop: Loop, now: float, answering_since: float) -> str:
    if loop.failing_since is not None:
        failing_s = now - max(loop.failing_since, answering_since)
        if failing_s > FAILING_S:
            return f"{loop.name} has failed for {failing_s:.0f} s: {loop.reason}"
    if (at := loop.up_to_date_at) is not None:
        stale_s = now - max(at, answering_since)
        if stale_s > STALE_S:
            return f"{loop.name} has not been up to date for {stale_s:.0f} s"
    return ""
