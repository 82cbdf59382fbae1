"""Time as a thing that is passed in."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Monotonic time and the wish to wait. `roost.testing.FakeClock` is the other implementation."""

    def monotonic(self) -> float:
        """Seconds that never step; comparable only within this process."""

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
