"""Following every feed of the store that people hear of, and telling what its entries mean.

Each feed has one follower, whatever the number of viewers. What befalls single users (tickets, moves) is
gathered for a second and told as one: a launch evening has thousands of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, NamedTuple

from roost.api.events import EventScope
from roost.app import Platform
from roost.audit.model import entry_of
from roost.core.errors import StoreError
from roost.core.events import Entry, Gap
from roost.gateway.live import sentences
from roost.gateway.live.fleet import FleetTable, of_discovery
from roost.gateway.live.sentences import Told
from roost.store import scopes
from roost.store.feed import Feed

log = logging.getLogger("roost.gateway.live")

RETRY_S = 1.0
READ_BACK = 50

Meaning = Callable[[Entry], Told | None]


class Source(NamedTuple):
    """A feed and what its entries mean."""

    name: str
    scope: EventScope
    feed: Feed
    meaning: Meaning


class Gathering:
    """What befell single users, until it is told: at most one event for each group and flush."""

    def __init__(self) -> None:
        self._firsts: dict[tuple[str, ...], Told] = {}
        self._counts: Counter[tuple[str, ...]] = Counter()

    def add(self, told: Told) -> None:
        self._firsts.setdefault(told.group, told)
        self._counts[told.group] += 1

    def flush(self) -> list[Told]:
        firsts, counts = self._firsts, self._counts
        self._firsts, self._counts = {}, Counter()
        return [sentences.together(first, counts[group]) for group, first in firsts.items()]


class Followers:
    """The followers of one gateway. `tell` hears of each event, `miss` of a scope where one was missed."""

    def __init__(
        self, platform: Platform, tell: Callable[[Told], None], miss: Callable[[EventScope], None]
    ) -> None:
        self.fleet = FleetTable()
        self._platform = platform
        self._tell = tell
        self._miss = miss
        self._gathering = Gathering()
        self._sources = sources(platform)
        self._to_begin = {"discovery", *(source.name for source in self._sources)}
        self.begun = asyncio.Event()
        """Set once nothing that happens is missed any more."""

    def loops(self) -> list[Coroutine[Any, Any, None]]:
        loops = self._platform.store.loops
        return [
            loops.keep_running("live discovery", self._follow_discovery, pause_s=RETRY_S),
            *map(self._loop_of, self._sources),
        ]

    def newcomers(self) -> list[Coroutine[Any, Any, None]]:
        """The loops of worlds that began since: the world of the demo does while somebody looks."""
        known = {source.name for source in self._sources}
        new = [source for source in _of_worlds(self._platform) if source.name not in known]
        self._sources += new
        return [*map(self._loop_of, new)]

    def _loop_of(self, source: Source) -> Coroutine[Any, Any, None]:
        follow = partial(self._follow, source)
        return self._platform.store.loops.keep_running(f"live {source.name}", follow, pause_s=RETRY_S)

    def flush(self) -> None:
        """Tell what was gathered."""
        for told in self._gathering.flush():
            self._tell(told)

    async def read_back(self) -> list[Told]:
        """What happened last, oldest first, before anybody followed; nothing where it cannot be read."""
        discovery = Source("discovery", "discovery", self._platform.discovery.feed, of_discovery)
        read = await asyncio.gather(*(_read_back(source) for source in (discovery, *self._sources)))
        return sorted((told for one in read for told in one), key=lambda told: told.at_us)

    def _begins(self, name: str) -> None:
        self._to_begin.discard(name)
        if not self._to_begin:
            self.begun.set()

    async def _follow_discovery(self) -> None:
        is_first = True
        async with aclosing(self._platform.discovery.watch()) as changes:  # type: ignore[type-var]
            async for change in changes:
                if change.event == "snapshot" and not is_first:
                    self._miss("discovery")
                is_first = False
                for told in self.fleet.take(change):
                    self._tell(told)
                self._begins("discovery")

    async def _follow(self, source: Source) -> None:
        """Until there is a gap; then, as where somebody looks already, it begins with one that is told."""
        head = await source.feed.head()
        if source.name not in self._to_begin:
            self._miss(source.scope)
        self._begins(source.name)
        async with aclosing(source.feed.follow(head)) as entries:
            async for entry in entries:
                if isinstance(entry, Gap):
                    return
                told = meaning_of(source, entry)
                if told is None:
                    continue
                if told.group:
                    self._gathering.add(told)
                else:
                    self._tell(told)


def sources(platform: Platform) -> list[Source]:
    """Every feed but discovery's, which viewers follow by its watch."""
    store, partitions = platform.store, platform.bindings.partitions
    return [
        *_of_worlds(platform),
        *(
            Source(f"bindings {p.number}", "binding", p.feed, lambda e: sentences.of_binding(e.at, e.fields))
            for p in partitions
        ),
        Source("drains", "drain", store.feed(scopes.drain()), lambda e: sentences.of_job(e.at, e.fields)),
        Source(
            "placement",
            "orders",
            store.feed(scopes.lanes()),
            lambda e: sentences.of_placement(e.at, e.fields),
        ),
        Source("acts", "audit", platform.audit.feed, of_act),
    ]


def _of_worlds(platform: Platform) -> list[Source]:
    return [
        Source(f"world {world.name}", "queue", world.room.feed, partial(_of_world, world.name))
        for world in platform.worlds.all()
    ]


def of_act(entry: Entry) -> Told:
    act = entry_of(entry)
    return sentences.of_act(entry.at, act)


def _of_world(world: str, entry: Entry) -> Told | None:
    return sentences.of_world(world, entry.at, entry.fields)


def meaning_of(source: Source, entry: Entry) -> Told | None:
    """None also of an entry that nobody can read: one bad one must not end the stream."""
    try:
        return source.meaning(entry)
    except (KeyError, ValueError) as error:
        log.warning("unreadable feed entry", extra={"loop": f"live {source.name}", "reason": repr(error)})
        return None


async def _read_back(source: Source) -> Sequence[Told]:
    try:
        entries = await source.feed.newest(READ_BACK)
    except (StoreError, ValueError, IndexError):
        return ()
    found = (meaning_of(source, entry) for entry in entries)
    return together_by_second(told for told in found if told is not None)


def together_by_second(found: Iterable[Told]) -> list[Told]:
    """As it would have been told while it happened."""
    alone, seconds = list[Told](), defaultdict[int, Gathering](Gathering)
    for told in found:
        if told.group:
            seconds[told.at_us // 1_000_000].add(told)
        else:
            alone.append(told)
    return alone + [told for second in seconds.values() for told in second.flush()]
