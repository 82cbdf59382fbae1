"""One look for everybody: followers and sampler run while somebody looks, and for a while after the last."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress

import msgspec

from roost.api.events import EventScope
from roost.api.overview import Overview
from roost.app import Platform
from roost.gateway.live.attention import MOST
from roost.gateway.live.following import Followers
from roost.gateway.live.sampling import Sampler
from roost.gateway.live.sentences import Told, iso
from roost.gateway.live.viewers import Viewer, Viewers
from roost.web.stream import Event

SAMPLE_S = 1.0
SHOWN_AT_LEAST_S = 10.0
LINGER_S = 15.0
"""How long the work goes on after the last viewer: one that comes back has missed nothing."""
FIRST_LOOK_S = 3.0
"""How long somebody waits for a look where there is none, or only an old one."""

_encode = msgspec.json.Encoder().encode


class Live:
    """What a gateway shows to people. Costs nothing while nobody looks."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self.viewers = Viewers()
        self._followers: Followers | None = None
        self._sampler: Sampler | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._stop_at: asyncio.TimerHandle | None = None
        self._overview: Overview | None = None
        self._looked = asyncio.Event()
        self._looked_at = float("-inf")
        self._shown_at = float("-inf")
        self._asked_at = float("-inf")
        self._is_closed = False

    @property
    def running(self) -> bool:
        return bool(self._tasks)

    async def overview(self) -> Overview:
        """How things are, about a second ago; `TimeoutError` where that is not known in time."""
        self._asked_at = time.monotonic()
        self._keep_running()
        if not self._is_fresh():
            self._looked.clear()
            async with asyncio.timeout(FIRST_LOOK_S):
                await self._looked.wait()
        assert self._overview is not None
        return self._whole(self._overview)

    @asynccontextmanager
    async def viewing(self, scopes: Collection[str], after: str) -> AsyncIterator[Viewer]:
        """A viewer of these scopes, from the event `after` on: nothing that happens from here is missed."""
        self._keep_running()
        if self._followers is not None:
            with suppress(TimeoutError):  # a store that is away: it hears of things when that is back
                async with asyncio.timeout(FIRST_LOOK_S):
                    await self._followers.begun.wait()
        with self.viewers.joined(scopes, after, _now()) as viewer:
            if viewer.wants("overview"):
                self._show_first(viewer)
            try:
                yield viewer
            finally:
                self._keep_running()

    async def events(self, viewer: Viewer) -> AsyncIterator[Event]:
        """What the viewer hears, for ever."""
        while True:
            yield self.viewers.event_of(await viewer.next())

    async def close(self) -> None:
        self._is_closed = True
        if self._stop_at is not None:
            self._stop_at.cancel()
        tasks = self._stop()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- running

    def _keep_running(self) -> None:
        """Begin, unless it goes on; the end is put off."""
        if self._is_closed:
            return
        loop = asyncio.get_running_loop()
        if self._stop_at is not None:
            self._stop_at.cancel()
        self._stop_at = loop.call_later(LINGER_S, self._stop_if_alone)
        if self._tasks:
            return
        self.viewers.start_anew()
        self._followers = followers = Followers(self._platform, self._tell, self._miss)
        self._sampler = Sampler(self._platform, followers.fleet, self._tell)
        loops = self._platform.store.loops
        running = [*followers.loops(), loops.keep_running("live overview", self._turn, pause_s=SAMPLE_S)]
        self._tasks = [asyncio.create_task(one) for one in running]

    def _stop_if_alone(self) -> None:
        self._stop_at = None
        if not len(self.viewers):
            self._stop()
        else:
            self._keep_running()

    def _stop(self) -> list[asyncio.Task[None]]:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        self._followers = self._sampler = None
        self._overview = None
        return tasks

    # -- telling

    def _tell(self, told: Told) -> None:
        self.viewers.tell(told.kind, told.happening)

    def _miss(self, scope: EventScope) -> None:
        self.viewers.miss(scope, _now())

    async def _turn(self) -> None:
        followers, sampler = self._followers, self._sampler
        if followers is None or sampler is None:
            return
        followers.flush()
        self._tasks += [asyncio.create_task(one) for one in followers.newcomers()]
        if self._overview is None:
            self.viewers.remember([told.happening for told in await followers.read_back()])
        elif not self._is_wanted():
            return
        found = await sampler.look()
        found.attention = found.attention[:MOST]
        is_news = self._overview is None or not _is_same(found, self._overview)
        self._overview, self._looked_at = found, time.monotonic()
        self._looked.set()
        if is_news or time.monotonic() - self._shown_at >= SHOWN_AT_LEAST_S:
            self._show(found)

    def _is_wanted(self) -> bool:
        return self.viewers.anybody_wants("overview") or time.monotonic() - self._asked_at < LINGER_S

    def _is_fresh(self) -> bool:
        """Nobody looks while nobody wants an overview: the last one may be of any time ago."""
        return self._overview is not None and time.monotonic() - self._looked_at <= 2 * SAMPLE_S

    def _show_first(self, viewer: Viewer) -> None:
        if self._overview is not None and self._is_fresh():
            self.viewers.show(_encode(self._whole(self._overview)), _now(), viewer)
        else:
            self._shown_at = float("-inf")  # the next turn shows what it finds, news or not

    def _show(self, overview: Overview) -> None:
        self._shown_at = time.monotonic()
        if self.viewers.anybody_wants("overview"):
            self.viewers.show(_encode(self._whole(overview)), overview.at)

    def _whole(self, overview: Overview) -> Overview:
        viewers = self.viewers
        return msgspec.structs.replace(overview, recent=viewers.recent, event_id=viewers.last_id)


def _is_same(one: Overview, other: Overview) -> bool:
    return msgspec.structs.replace(one, at=other.at) == other


def _now() -> str:
    return iso(int(time.time() * 1e6))
