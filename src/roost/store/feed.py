"""The feed of a scope: every change, in order, or a `Gap` that says "take a new snapshot".

One follower per process and scope reads the stream when its doorbell rings (or, should a bell be
missed, every five seconds) and keeps the newest entries in memory. Any number of local readers is
served from there, each from its own mark: a slow one costs nothing but its own delay, and one that
fell out of memory reads the store once. A follower that ends for whatever reason while somebody reads is
replaced, and one that gets no answer asks again: nothing that it waits for may last.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, Protocol

from roost.core.backoff import jittered
from roost.core.errors import StoreError
from roost.core.events import START, Entry, Gap, Mark, news
from roost.core.loops import Loops, up_to_date
from roost.store.keys import Key

log = logging.getLogger("roost.store.feed")

LOOK_INTERVAL_S = 5.0
LOOK_GAP_S = 0.01
"""At least so long between two looks: a feed that grows by thousands a second is read in parts of dozens."""
READ_COUNT = 500
KEPT_ENTRIES = 1024
READ_TIMEOUT_S = 15.0
"""Longer than any call may take: a read that lasts so long was lost, and is begun again."""


class Reader(Protocol):
    """What a feed needs of the store."""

    def call(self, *args: Any, key: bytes | None = None, idempotent: bool = False) -> asyncio.Future[Any]: ...

    def listen(self, channel: bytes, ring: Callable[[bytes], None]) -> Callable[[], None]: ...


class Feed:
    """The local end of one scope's feed."""

    def __init__(
        self, store: Reader, feed: Key, bell: Key, loops: Loops | None = None, name: str = ""
    ) -> None:
        self._store = store
        self._loop_name = f"feed {name or feed.decode()}"
        self._loops = loops or Loops()
        self._feed = feed
        self._bell = bell
        self._kept: list[Entry] = []
        self._mark: Mark | None = None
        self._news = asyncio.Event()
        self._rung = asyncio.Event()
        self._readers = 0
        self._follower: asyncio.Task[None] | None = None
        self._looks = 0

    @property
    def seen(self) -> Mark | None:
        """How far the follower has read; None while nobody follows."""
        return self._mark if self._readers else None

    async def head(self) -> Mark:
        """The newest point of the history; a snapshot script that reads it itself is atomic, this is not."""
        reply = await self._store.call(
            "XREVRANGE", self._feed, "+", "-", "COUNT", 1, key=self._feed, idempotent=True
        )
        return parse_entry(reply[0]).mark if reply else START

    async def newest(self, count: int) -> list[Entry]:
        """The last entries that are there, oldest first; nothing is proved of them."""
        reply = await self._store.call(
            "XREVRANGE", self._feed, "+", "-", "COUNT", count, key=self._feed, idempotent=True
        )
        return [parse_entry(raw) for raw in reversed(reply)]

    async def follow(self, after: Mark) -> AsyncGenerator[Entry | Gap, None]:
        """Every entry after the mark, as it comes; ends with the first `Gap`.

        While the store is away nothing comes, and nothing is missed either: it goes on from its mark.
        """
        self._start()
        try:
            while True:
                seen = self._looks
                fresh = await self._since(after)
                if isinstance(fresh, Gap):
                    yield fresh
                    return
                for entry in fresh:
                    yield entry
                if fresh:
                    after = fresh[-1].mark
                else:
                    if after == self._mark:
                        up_to_date()
                    await self._wait_for_look(seen)
        finally:
            self._stop()

    async def close(self) -> None:
        follower, self._follower = self._follower, None
        if follower is not None:
            follower.cancel()
            await asyncio.gather(follower, return_exceptions=True)

    # -- readers

    async def _since(self, after: Mark) -> Sequence[Entry] | Gap:
        """From memory where memory reaches back far enough, else from the store."""
        if after == self._mark:
            return ()
        kept = self._kept
        if kept and kept[0].rev <= after.rev + 1 and after.rev <= kept[-1].rev:
            return news(after, kept[max(0, after.rev - kept[0].rev) :])
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                return await self._read(after)
        except (StoreError, TimeoutError) as error:
            log.debug("feed not read", extra={"reason": str(error)})
            return ()

    async def _wait_for_look(self, seen: int) -> None:
        while self._looks == seen:
            await self._news.wait()

    # -- the follower

    def _start(self) -> None:
        self._readers += 1
        self._have_follower()

    def _have_follower(self) -> None:
        if self._follower is None or self._follower.done():
            self._follower = asyncio.create_task(self._follow_store())
            self._follower.add_done_callback(self._replace)

    def _replace(self, ended: asyncio.Task[None]) -> None:
        """Readers wait for a follower: one that ended under them, whatever ended it, gets a successor."""
        if ended is self._follower and self._readers:
            log.error("follower replaced", extra={"loop": self._loop_name, "reason": _end_of(ended)})
            self._have_follower()

    def _stop(self) -> None:
        self._readers -= 1
        if not self._readers and self._follower is not None:
            self._follower.cancel()
            self._follower = None

    async def _follow_store(self) -> None:
        self._forget()
        stop_listening = self._store.listen(self._bell, lambda _: self._rung.set())
        try:
            await self._loops.keep_running(self._loop_name, self._turn, essential=True)
        finally:
            stop_listening()

    async def _turn(self) -> None:
        """Look, and unless there may be more wait for the bell."""
        self._rung.clear()
        loop = asyncio.get_running_loop()
        began = loop.time()
        if await self._look():
            return
        try:
            async with asyncio.timeout(jittered(LOOK_INTERVAL_S, 0.2)):
                await self._rung.wait()
                await asyncio.sleep(began + LOOK_GAP_S - loop.time())
        except TimeoutError:
            pass

    async def _look(self) -> bool:
        """Read once and wake the readers; True if there may be more to read at once."""
        found: Sequence[Entry] | Gap = ()
        async with asyncio.timeout(READ_TIMEOUT_S):
            if self._mark is None:
                self._mark = await self.head()
            else:
                found = await self._read(self._mark)
        if isinstance(found, Gap):
            # Readers find the gap themselves: what was kept no longer joins what they have seen.
            self._forget()
        elif found:
            self._keep(found)
        self._wake()
        is_behind = isinstance(found, Gap) or len(found) >= READ_COUNT - 1
        if not is_behind:
            up_to_date()
        return is_behind

    def _keep(self, found: Sequence[Entry]) -> None:
        self._kept.extend(found)
        if len(self._kept) > 2 * KEPT_ENTRIES:
            del self._kept[:-KEPT_ENTRIES]
        self._mark = found[-1].mark

    def _forget(self) -> None:
        self._kept = []
        self._mark = None

    def _wake(self) -> None:
        self._looks += 1
        self._news.set()
        self._news = asyncio.Event()

    async def _read(self, after: Mark) -> Sequence[Entry] | Gap:
        first = f"{after.rev}-0" if after.rev else "-"
        reply = await self._store.call(
            "XRANGE", self._feed, first, "+", "COUNT", READ_COUNT, key=self._feed, idempotent=True
        )
        try:
            return news(after, [parse_entry(raw) for raw in reply])
        except (ValueError, IndexError) as error:  # not one of ours: go round it, with a snapshot
            log.error("unreadable feed entry", extra={"loop": self._loop_name, "reason": str(error)})
            return Gap(after)


def _end_of(task: asyncio.Task[None]) -> str:
    return "cancelled" if task.cancelled() else repr(task.exception())


def parse_entry(raw: Any) -> Entry:
    """An entry as XRANGE returns it: [id, [b"at", at, b"prevAt", prev_at, name, value, …]]."""
    entry_id, flat = raw
    if flat[0] != b"at" or flat[2] != b"prevAt":
        raise ValueError("an entry begins with its times")
    return Entry(int(entry_id.partition(b"-")[0]), int(flat[1]), int(flat[3]), flat=flat[4:])
