"""Finding a user's home: from memory, by one plain read of the map, by `resolve` only where that is not all.

No wake-up is lost: a lookup registers before it reads. What it waits for is a hint, the wait is bounded, and
what counts is what is read after it. One lookup is under way for each lane, however many messages wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, NamedTuple, Protocol

from roost.binding.model import BindingChange, Record
from roost.binding.scripts import Bound, Moving, NoServer, Placed
from roost.core.errors import RoostError
from roost.core.events import Gap
from roost.core.loops import Loops
from roost.servers.gate.lane import Lane
from roost.servers.gate.peers import Peers
from roost.servers.gate.queued import Refusal
from roost.servers.gate.routes import Route, Routes

log = logging.getLogger("roost.gate")

POLL_S = 0.25
"""The longest wait before a user who is waited for is looked up again, give or take."""
IDLE_POLL_S = 5.0
"""The same where no message waits."""
FIRST_PAUSE_S = 0.02
AT_ONCE = 256
"""Lookups that ask the store at the same time."""

Key = tuple[str, str]


class Homes(Protocol):
    """What is used of `Bindings`."""

    async def read(self, type_: str, user: str) -> Record | None: ...

    async def resolve(
        self, type_: str, user: str, *, seen: int = 0
    ) -> Bound | Placed | Moving | NoServer: ...


class NotYet(NamedTuple):
    """There is no home now; look again after so long, or when something happens."""

    reason: Refusal
    wait_s: float


class Finder:
    def __init__(self, homes: Homes, peers: Peers, *, poll_s: float = POLL_S) -> None:
        self.routes = Routes()
        self.reads = 0
        self.resolves = 0
        self.waits = 0
        """How often a lookup had to wait: the user was on the move, or nobody took them."""
        self._homes = homes
        self._peers = peers
        self._poll_s = poll_s
        self._waiting: dict[Key, set[asyncio.Event]] = {}
        self._at_once = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    def find(self, lane: Lane, bounced: Route | None) -> None:
        """Look until there is a home, which `lane.routed` gets, or nobody wants it any more."""
        if bounced is not None:
            self.routes.forget(lane.type, lane.user, bounced)
        elif (known := self.routes.get(lane.type, lane.user)) is not None and self._is_good(
            lane, known, None
        ):
            lane.routed(lane.turn, known)
            return
        self._run(self._find(lane, lane.turn, bounced))

    def verify(self, lanes: list[Lane]) -> None:
        """Look up where these users live, and tell the lanes: nobody knows what the feed would have told."""
        if lanes:
            self._run(self._verify(lanes))

    def doubt(self, lanes: list[Lane]) -> None:
        """Their homes are silent: who has a dead one is placed elsewhere by this, others go on waiting."""
        for lane in lanes:
            self._run(self._doubt(lane))

    def home_of(self, type_: str, user: str, found: Callable[[Route], None]) -> None:
        """Where a user lives by one read of the map; `found` is not called if nobody holds them."""
        self._run(self._home_of(type_, user, found))

    # -- what happens meanwhile

    def changed(self, change: BindingChange) -> None:
        """The feed tells that a user changed hands."""
        self.routes.changed(change.type, change.user, route_of(change))
        self._wake((change.type, change.user))

    def wake_all(self) -> None:
        """Something happened to whoever: everybody who waits looks again."""
        for key in list(self._waiting):
            self._wake(key)

    def forget_all(self) -> None:
        """It is not known what happened: what was known does not count any more."""
        self.routes.clear()
        self.wake_all()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- inside

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="roost gate looks")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _home_of(self, type_: str, user: str, found: Callable[[Route], None]) -> None:
        self.reads += 1
        with contextlib.suppress(RoostError):
            record = await self._homes.read(type_, user)
            if record is not None and record.owner is not None:
                found(Route(*record.owner, record.epoch))

    async def _verify(self, lanes: list[Lane]) -> None:
        for start in range(0, len(lanes), AT_ONCE):
            await asyncio.gather(*map(self._verify_one, lanes[start : start + AT_ONCE]))

    async def _verify_one(self, lane: Lane) -> None:
        self.reads += 1
        try:
            record = await self._homes.read(lane.type, lane.user)
        except RoostError as error:  # what is wrong, if anything, the next message finds out
            log.info("home not verified", extra={"userId": lane.user, "reason": error.message})
            return
        if record is not None:
            lane.changed(Route(*(record.owner or ("", "")), record.epoch))

    async def _doubt(self, lane: Lane) -> None:
        """NB: where no server takes the user, or the store is away, nothing is better than to wait."""
        self.resolves += 1
        try:
            async with self._at_once:
                found = await self._homes.resolve(lane.type, lane.user, seen=lane.epoch)
        except RoostError as error:
            log.info("silent home not verified", extra={"userId": lane.user, "reason": error.message})
            return
        if isinstance(found, Bound | Placed):
            route = Route(found.server_id, found.life, found.epoch)
            self.routes.changed(lane.type, lane.user, route)
            lane.changed(route)

    async def _find(self, lane: Lane, turn: int, bounced: Route | None) -> None:
        with self._registered((lane.type, lane.user)) as news:
            if lane.looks > 1:
                await _pause(news, self._backed_off(lane.looks - 2, lane))
            tries = 0
            while lane.turn == turn:
                news.clear()
                found = await self._look(lane, bounced)
                if isinstance(found, Route):
                    self.routes.keep(lane.type, lane.user, found)
                    lane.routed(turn, found)
                    return
                lane.reason = found.reason
                tries += 1
                self.waits += 1
                await _pause(news, found.wait_s or self._backed_off(tries, lane))

    async def _look(self, lane: Lane, bounced: Route | None) -> Route | NotYet:
        try:
            async with self._at_once:
                return await self._ask(lane, bounced)
        except RoostError as error:
            return NotYet(Refusal("UNAVAILABLE", error.message, 1000), 0.0)
        except Exception:
            log.exception("a home was not found")
            return NotYet(Refusal("UNAVAILABLE", "the user's home cannot be found just now", 1000), 0.0)

    async def _ask(self, lane: Lane, bounced: Route | None) -> Route | NotYet:
        self.reads += 1
        record = await self._homes.read(lane.type, lane.user)
        if record is not None and record.state == "A" and record.owner is not None:
            route = Route(*record.owner, record.epoch)
            if self._is_good(lane, route, bounced):
                return route
        self.resolves += 1
        return self._judge(lane, await self._homes.resolve(lane.type, lane.user, seen=lane.epoch))

    def _judge(self, lane: Lane, found: Bound | Placed | Moving | NoServer) -> Route | NotYet:
        if isinstance(found, NoServer):
            return NotYet(Refusal("NO_SERVER", f"no server takes this user: {found.why}", 1000), 0.0)
        if isinstance(found, Moving):
            moving = Refusal("MIGRATING", "the user is being moved to another server", 250)
            return NotYet(moving, min(found.left_ms / 1000 + 0.001, self._poll_s * random.uniform(0.5, 1.0)))
        route = Route(found.server_id, found.life, found.epoch)
        if not self._peers.knows(lane.type, route):
            return NotYet(Refusal("UNAVAILABLE", f"server {route.server_id} is not known here yet", 500), 0.0)
        return route

    def _backed_off(self, tries: int, lane: Lane) -> float:
        most = self._poll_s if len(lane) else IDLE_POLL_S
        return min(most, FIRST_PAUSE_S * 2.0 ** min(tries, 16)) * random.uniform(0.5, 1.0)

    def _is_good(self, lane: Lane, route: Route, bounced: Route | None) -> bool:
        """Whether the map's answer may be used without asking more: R7, and not where we come from."""
        if route.epoch < lane.epoch or not self._peers.knows(lane.type, route):
            return False
        return bounced is None or not route.is_with(bounced) or route.epoch > bounced.epoch

    @contextlib.contextmanager
    def _registered(self, key: Key) -> Iterator[asyncio.Event]:
        news = asyncio.Event()
        self._waiting.setdefault(key, set()).add(news)
        try:
            yield news
        finally:
            self._waiting[key].discard(news)
            if not self._waiting[key]:
                del self._waiting[key]

    def _wake(self, key: Key) -> None:
        for news in self._waiting.get(key, ()):
            news.set()


def route_of(change: BindingChange) -> Route:
    """Where a change leads; without a server: released."""
    return Route(*(change.owner or ("", "")), change.epoch)


async def _pause(news: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await news.wait()


class Feeds(Protocol):
    """What else is used of `Bindings`."""

    def follow(self, partition: int = 0) -> AsyncIterator[BindingChange | Gap]: ...


class Changes(Protocol):
    """What the follower of a partition tells."""

    def changed(self, change: BindingChange) -> None: ...

    def missed(self) -> None:
        """Something was missed: nobody knows what."""


async def follow_partition(bindings: Feeds, partition: int, told: Changes, loops: Loops) -> None:
    """Tell of every change in a partition, for ever."""
    loop = loops.loop(f"gate feed {partition}", essential=True)

    async def follow() -> None:
        async for change in bindings.follow(partition):
            if isinstance(change, Gap):
                told.missed()
            else:
                told.changed(change)
            loop.good()

    await loop.keep_running(follow, pause_s=0.5)
