"""Deadlines of many calls under one timer: it looks at the calls only when the earliest of them is due."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf

TICK_S = 0.02
"""A deadline may be noticed so much late."""


class Sweeper:
    """`sweep(now)` ends what is late and returns the earliest deadline that is left (`inf`: none).

    A call that ends in time costs nothing here: `earliest` is then only a lower bound.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, sweep: Callable[[float], float]) -> None:
        self._loop = loop
        self._sweep = sweep
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = inf
        self.earliest = inf

    def watch(self, deadline: float) -> None:
        if deadline < self.earliest:
            self.earliest = deadline
            if deadline < self._timer_at:
                self._arm()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_at, self.earliest = None, inf, inf

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = max(self.earliest, self._loop.time() + TICK_S)
        self._timer = self._loop.call_at(self._timer_at, self._tick)

    def _tick(self) -> None:
        self._timer, self._timer_at = None, inf
        now = self._loop.time()
        if now >= self.earliest:
            self.earliest = inf
            self.earliest = min(self._sweep(now), self.earliest)
        if self.earliest < inf and self._timer is None:
            self._arm()
