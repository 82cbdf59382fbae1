"""The board of a world: what everybody may know of it, read once a second and shared by all who ask."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from roost.waitingroom.model import WorldBoard

FRESH_S = 1.0


class BoardCache:
    """One read a second, however many ask."""

    def __init__(self, read: Callable[[], Awaitable[WorldBoard]], fresh_s: float = FRESH_S) -> None:
        self._read = read
        self._fresh_s = fresh_s
        self._kept: WorldBoard | None = None
        self._at = 0.0
        self._reading = asyncio.Lock()

    def fresh(self) -> WorldBoard | None:
        """The board if it need not be read now: `fresh() or await get()` spares most callers the wait."""
        return self._kept if time.monotonic() - self._at < self._fresh_s else None

    async def get(self) -> WorldBoard:
        kept = self.fresh()
        if kept is not None:
            return kept
        async with self._reading:
            if self._kept is None or time.monotonic() - self._at >= self._fresh_s:
                asked = time.monotonic()
                self._kept = await self._read()
                self._at = asked
            return self._kept

    def kept(self, most_s: float) -> WorldBoard | None:
        """The board as it was read last, unless that is longer ago."""
        return self._kept if self._kept is not None and time.monotonic() - self._at <= most_s else None

    def forget(self) -> None:
        self._at = 0.0
