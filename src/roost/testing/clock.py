"""A clock that moves when it is told to."""

from __future__ import annotations

import asyncio
import heapq
import itertools


class FakeClock:
    """Implements `roost.core.clock.Clock`; sleepers wake when `advance` reaches their time."""

    def __init__(self, start: float = 1000.0) -> None:
        self._now = start
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + max(seconds, 0.0), next(self._order), future))
        await future

    async def advance(self, seconds: float) -> None:
        """Move time on, waking each sleeper at its own moment and letting it run."""
        until = self._now + seconds
        while self._sleepers and self._sleepers[0][0] <= until:
            self._now, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                future.set_result(None)
            await _let_others_run()
        self._now = until
        await _let_others_run()


async def _let_others_run() -> None:
    for _ in range(10):
        await asyncio.sleep(0)
