"""Timers that belong to a user: they ring in a turn of that user, and end with the session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from roost.core.errors import InvalidInput

MOST = 64
LEAST_S = 0.001
LONGEST_S = 7 * 86_400.0
PUT_OFF_S = 0.5


class RunningTimer:
    """One timer. `ring` puts its turn into the user's line."""

    __slots__ = ("_handle", "_owner", "_repeats", "_ring", "_seconds")

    def __init__(self, owner: Timers, seconds: float, repeats: bool, ring: Callable[[], None]) -> None:
        self._owner = owner
        self._seconds = seconds
        self._repeats = repeats
        self._ring = ring
        self._handle: asyncio.TimerHandle | None = None
        self._start(seconds)

    def _start(self, seconds: float) -> None:
        self._handle = asyncio.get_running_loop().call_later(seconds, self._due)

    def _due(self) -> None:
        self._handle = None
        self._ring()

    def done(self) -> None:
        """Its turn is over; one that repeats begins anew, so that a slow call never meets itself."""
        if self in self._owner.running:
            if self._repeats:
                self._start(self._seconds)
            else:
                self._owner.running.discard(self)

    def put_off(self) -> None:
        """Its turn came at a bad time: the user may not be served just now."""
        if self in self._owner.running:
            self._start(PUT_OFF_S)

    @property
    def is_on(self) -> bool:
        return self in self._owner.running

    def cancel(self) -> None:
        self._owner.running.discard(self)
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None


class Timers:
    """Those of one user, a bounded number."""

    __slots__ = ("running",)

    def __init__(self) -> None:
        self.running: set[RunningTimer] = set()

    def add(self, seconds: float, ring: Callable[[RunningTimer], None], *, repeats: bool) -> RunningTimer:
        if not LEAST_S <= seconds <= LONGEST_S:
            raise InvalidInput(f"a timer rings after {LEAST_S:g} to {LONGEST_S:g} s, not {seconds!r}")
        if len(self.running) >= MOST:
            raise InvalidInput(f"a user has at most {MOST} timers")
        timer = RunningTimer(self, seconds, repeats, lambda: ring(timer))
        self.running.add(timer)
        return timer

    def cancel_all(self) -> None:
        for timer in list(self.running):
            timer.cancel()
