"""Who is told at once that their turn has come: one follower of the world's feed for all open streams."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing, contextmanager

from roost.core.events import Entry, Gap
from roost.core.loops import Loops
from roost.store.feed import Feed

RETRY_S = 1.0
WAKING = frozenset({"promoted", "kicked"})
"""What one person must hear at once; the rest can wait until they would ask anyway."""


class Push:
    """Streams of one world in this process. Runs while somebody listens."""

    def __init__(self, feed: Feed, world: str, loops: Loops | None = None) -> None:
        self._feed = feed
        self._loop = (loops or Loops()).loop(f"push {world}")
        self._waiters: dict[str, set[_Waiter]] = {}
        self._follower: asyncio.Task[None] | None = None
        self.open = 0
        """Streams that are open now."""

    @contextmanager
    def listening(self, user: str) -> Iterator[_Waiter]:
        """`await waiter.wait(seconds)` ends when something happened to this user, or when time is over."""
        waiter = _Waiter()
        self.open += 1
        self._waiters.setdefault(user, set()).add(waiter)
        if self._follower is None or self._follower.done():
            self._follower = asyncio.create_task(
                self._loop.keep_running(self._follow, RETRY_S), name="waiting room push"
            )
        try:
            yield waiter
        finally:
            self.open -= 1
            self._waiters[user].discard(waiter)
            if not self._waiters[user]:
                del self._waiters[user]
            if not self._waiters:
                self._follower.cancel()
                self._follower = None

    async def _follow(self) -> None:
        """Wake whom the feed names, until there is a gap: waiters who missed something ask in a while."""
        async with aclosing(self._feed.follow(await self._feed.head())) as entries:
            self._loop.good()
            async for entry in entries:
                if isinstance(entry, Gap):
                    return
                self.hear(entry)

    def hear(self, entry: Entry) -> None:
        """An entry that names no event or nobody wakes nobody."""
        if entry.fields.get("event") in WAKING:
            for waiter in self._waiters.get(entry.fields.get("user", ""), ()):
                waiter.ring()


class _Waiter:
    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        self._rung.set()

    async def wait(self, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._rung.wait()
        except TimeoutError:
            return
        self._rung.clear()
