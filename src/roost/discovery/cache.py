"""Lists that many ask for, read from the store once.

A list is served from memory for at most a second, and only while the feed proves that nothing was
added, changed or removed since it was read: what a second can hide is the time of the last beat. The cache
follows the feed itself, and hears of every write of this process at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import aclosing

import msgspec

from roost.core.events import Gap
from roost.core.loops import Loops
from roost.discovery.service import Discovery

MAX_AGE_S = 1.0
MAX_LISTS = 256

_Wanted = tuple[str, str, tuple[str, ...]]


class ListCache:
    """Encoded lists by what was asked for. While nobody follows the feed it reads through.

    A write of our own begins a new generation: nothing that was read before it, or is still being read,
    is served afterwards. So a writer sees its write. Readers that ask for the same list at once share a read.
    """

    def __init__(self, discovery: Discovery, loops: Loops | None = None) -> None:
        self._discovery = discovery
        self._loop = (loops or Loops()).loop("list cache")
        discovery.on_write(self.forget)
        self._kept: dict[_Wanted, tuple[float, int, bytes]] = {}
        self._reading: dict[_Wanted, asyncio.Task[bytes]] = {}
        self._encode = msgspec.json.Encoder().encode

    async def run(self) -> None:
        """Follow the feed for ever, so that lists may be served from memory."""
        await self._loop.keep_running(self._follow, pause_s=MAX_AGE_S)

    async def _follow(self) -> None:
        feed = self._discovery.feed
        async with aclosing(feed.follow(await feed.head())) as entries:
            self._loop.good()
            async for entry in entries:
                if isinstance(entry, Gap):
                    return

    async def encoded(self, type_: str, group: str, labels: Sequence[str]) -> bytes:
        wanted = (type_, group, tuple(labels))
        head = self._discovery.feed.seen
        if head is None:
            return self._encode(await self._discovery.discover(*wanted))
        kept = self._kept.get(wanted)
        if kept is not None:
            until, revision, body = kept
            if head.rev <= revision and time.monotonic() < until:
                return body
        reading = self._reading.get(wanted)
        if reading is None:
            reading = self._reading[wanted] = asyncio.create_task(self._read(wanted))
            reading.add_done_callback(
                lambda task: task.cancelled() or task.exception()
            )  # seen by its readers
        return await asyncio.shield(reading)

    def forget(self) -> None:
        """After a write of our own, which its writer expects to see."""
        if self._kept or self._reading:
            self._kept = {}
            self._reading = {}

    async def _read(self, wanted: _Wanted) -> bytes:
        generation = self._kept
        try:
            found = await self._discovery.discover(*wanted)
        finally:
            if self._kept is generation:
                self._reading.pop(wanted, None)
        body = self._encode(found)
        if len(generation) >= MAX_LISTS:
            generation.clear()
        generation[wanted] = (time.monotonic() + MAX_AGE_S, found.revision, body)
        return body
