"""Telling other systems: from the feed, in order, at least once.

    mark ─► feed ─► meaning ─► batch ─► sender ─► mark

The mark moves only when the receiver has taken the batch. A process that dies in between leaves the mark
where it was, and whoever leads next sends the same again under the same ids. A receiver that does not take a
batch holds up its source and no other: the turn of that source fails, and begins again at its mark.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from functools import partial
from typing import Protocol

from roost.core.events import Entry, Gap, Mark
from roost.core.lease import Tenure
from roost.core.loops import Loops
from roost.forward.event import ForwardedEvent, begin, event_of, gap
from roost.forward.marks import Marks
from roost.gateway.live.following import Source, meaning_of
from roost.store.leader import LeaderLease

PAUSE_S = 0.5
SILENT_MARK_S = 1.0
"""How often the mark follows entries that mean nothing to anybody else."""


class Sender(Protocol):
    async def send(self, events: Sequence[ForwardedEvent]) -> None:
        """Returns when the receiver has all of them; raises why it does not."""


class Forwarder:
    """`sent` counts events by scope, `gaps` how often some were missed."""

    def __init__(
        self,
        sources: Sequence[Source],
        sender: Sender,
        marks: Marks,
        lease: LeaderLease,
        batch: int,
        loops: Loops,
    ) -> None:
        self.sent: Counter[str] = Counter()
        self.gaps = 0
        self._sources = sources
        self._sender = sender
        self._marks = marks
        self._lease = lease
        self._batch = batch
        self._loops = loops

    @property
    def leads(self) -> bool:
        return self._lease.tenure is not None

    async def run(self) -> None:
        """Wait for the lease and forward while it lasts, for ever."""
        await self._lease.lead(self._lead)

    async def _lead(self, tenure: Tenure) -> None:
        async with asyncio.TaskGroup() as all_:
            for source in self._sources:
                turn = partial(self._follow, source, tenure)
                all_.create_task(self._loops.keep_running(f"forward {source.name}", turn, pause_s=PAUSE_S))

    async def _follow(self, source: Source, tenure: Tenure) -> None:
        """Until there is a gap, which is told."""
        mark = await self._marks.of(source.name)
        if mark is None:
            mark = await self._begin(source, tenure)
        loop, kept_at = self._loops.loop(f"forward {source.name}"), time.monotonic()
        async with _gathered(source.feed.follow(mark), self._batch) as batches:
            async for found in batches:
                entries = [entry for entry in found if isinstance(entry, Entry)]
                events = _events(source, entries)
                if events:
                    await self._send(events)
                if entries and (events or time.monotonic() - kept_at > SILENT_MARK_S):
                    kept_at = time.monotonic()
                    await self._marks.keep(tenure, source.name, entries[-1].mark)
                if isinstance(found[-1], Gap):
                    await self._tell_gap(source, tenure, found[-1].after)
                    return
                loop.good()

    async def _begin(self, source: Source, tenure: Tenure) -> Mark:
        head = await source.feed.head()
        await self._send([begin(source.name, source.scope, head)])
        await self._marks.keep(tenure, source.name, head)
        return head

    async def _tell_gap(self, source: Source, tenure: Tenure, after: Mark) -> None:
        head = await source.feed.head()
        await self._send([gap(source.name, source.scope, after, head)])
        self.gaps += 1
        await self._marks.keep(tenure, source.name, head)

    async def _send(self, events: Sequence[ForwardedEvent]) -> None:
        await self._sender.send(events)
        self.sent.update(event.scope for event in events)


def _events(source: Source, entries: Sequence[Entry]) -> list[ForwardedEvent]:
    told = ((entry, meaning_of(source, entry)) for entry in entries)
    return [event_of(source.name, entry.mark, what) for entry, what in told if what is not None]


@contextlib.asynccontextmanager
async def _gathered(
    entries: AsyncGenerator[Entry | Gap, None], most: int
) -> AsyncIterator[AsyncIterator[list[Entry | Gap]]]:
    """What came while the batch before was on its way, at most `most` at once; the last ends with a `Gap`."""
    queue: asyncio.Queue[Entry | Gap] = asyncio.Queue(most)

    async def pump() -> None:
        async with contextlib.aclosing(entries):
            async for entry in entries:
                await queue.put(entry)

    async def batches() -> AsyncIterator[list[Entry | Gap]]:
        found = list[Entry | Gap]()
        while not found or not isinstance(found[-1], Gap):
            found = [await _next(queue, pumping)]
            found += [queue.get_nowait() for _ in range(min(queue.qsize(), most - 1))]
            yield found

    pumping = asyncio.create_task(pump())
    try:
        yield batches()
    finally:
        pumping.cancel()
        await asyncio.gather(pumping, return_exceptions=True)


async def _next(queue: asyncio.Queue[Entry | Gap], pumping: asyncio.Task[None]) -> Entry | Gap:
    """The next one; what ended the pump, if nothing more will come."""
    getting = asyncio.create_task(queue.get())
    try:
        await asyncio.wait({getting, pumping}, return_when=asyncio.FIRST_COMPLETED)
        if not getting.done() and pumping.done() and queue.empty():
            pumping.result()
            raise RuntimeError("a feed ended without a gap")
        return await getting
    finally:
        getting.cancel()
