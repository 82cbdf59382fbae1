"""Finding a home: one read where that is enough, and no wake-up lost where it is not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from roost.api.discovery import Change, Instance
from roost.binding.model import BindingChange, Record
from roost.binding.scripts import Bound, Moving, NoServer, Placed
from roost.core.errors import StoreUnavailable
from roost.core.events import Mark
from roost.core.owner import Owner
from roost.servers.gate.finder import Finder
from roost.servers.gate.lane import Lane, State
from roost.servers.gate.peers import Peers
from roost.servers.gate.queued import LaneCounts, LaneLimits, Message, Refusal, Room, Terms
from roost.servers.gate.routes import Route

NEVER_S = 3600.0
"""A poll that no test waits out: only a wake-up ends such a wait."""

Answer = Bound | Placed | Moving | NoServer


class Homes:
    """Answers what the test lines up; the last one again and again."""

    def __init__(self, *records: Record | None) -> None:
        self.records = list(records)
        self.resolved: list[Answer] = []
        self.seen: list[int] = []
        self.reads = 0
        self.before_answering: Callable[[], None] | None = None
        self.fails = 0

    async def read(self, type_: str, user: str) -> Record | None:
        self.reads += 1
        if self.fails:
            self.fails -= 1
            raise StoreUnavailable
        return self.records.pop(0) if len(self.records) > 1 else self.records[0]

    async def resolve(self, type_: str, user: str, *, seen: int = 0) -> Answer:
        self.seen.append(seen)
        if not self.resolved:
            raise StoreUnavailable
        answer = self.resolved.pop(0) if len(self.resolved) > 1 else self.resolved[0]
        happening, self.before_answering = self.before_answering, None
        if happening is not None:
            happening()
        return answer


class Ways:
    """Sends the lane's lookups to the finder, and is told where it led."""

    def __init__(self) -> None:
        self.finder: Finder
        self.found: asyncio.Queue[Route] = asyncio.Queue()

    def look(self, lane: Lane, bounced: Route | None) -> None:
        self.finder.find(lane, bounced)

    def greet(self, lane: Lane, route: Route) -> None:
        self.found.put_nowait(route)

    def transmit(self, lane: Lane, message: Message, oldest: int) -> None:
        raise AssertionError("nobody greets here")

    def refuse(self, lane: Lane, message: Message, refusal: Refusal) -> None:
        raise AssertionError("nobody waits that long")


def record(server: str, epoch: int, state: Any = "A") -> Record:
    return Record(Owner(server, "1") if server else None, epoch, 0, state, 0, "")


def change(server: str, epoch: int) -> BindingChange:
    return BindingChange("entity", "ann", Owner(server, "1"), epoch, "", None, Mark(1, 1))


def peers_with(*server_ids: str) -> Peers:
    peers = Peers(lambda server: None)  # type: ignore[arg-type, return-value]
    for server_id in server_ids:
        show(peers, server_id)
    return peers


def show(peers: Peers, server_id: str) -> None:
    instance = Instance(
        type="entity",
        group="main",
        instance_id=server_id,
        server_id=server_id,
        life="1",
        status="ready",
        accepting=True,
        last_heartbeat="",
        private_ip="127.0.0.1",
        ports={"wire": 1},
    )
    peers.apply("entity", Change("added", 1, "1", server_id, "1", server_id, "ready", instance))


class Scene:
    def __init__(self, homes: Homes, peers: Peers) -> None:
        self.ways = Ways()
        self.ways.finder = self.finder = Finder(homes, peers, poll_s=NEVER_S)
        terms = Terms(LaneLimits(), Room(9, 999), LaneCounts(), lambda: 0.0)
        self.lane = Lane("entity", "ann", self.ways, terms)

    async def found(self) -> Route:
        return await asyncio.wait_for(self.ways.found.get(), 5)


async def test_a_record_whose_owner_is_known_is_enough() -> None:
    homes = Homes(record("501", 7))
    scene = Scene(homes, peers_with("501"))
    scene.lane.start()
    assert await scene.found() == Route("501", "1", 7)
    assert (homes.reads, homes.seen) == (1, [])


async def test_a_known_route_needs_no_read_at_all() -> None:
    homes = Homes(None)
    scene = Scene(homes, peers_with("501"))
    scene.finder.routes.keep("entity", "ann", Route("501", "1", 7))
    scene.lane.start()
    assert await scene.found() == Route("501", "1", 7)
    assert homes.reads == 0


async def test_no_record_or_an_unknown_owner_is_resolved() -> None:
    for found in (None, record("777", 5), record("", 5, "R")):
        homes = Homes(found)
        homes.resolved = [Placed("501", "1", 9, 0, "new")]
        scene = Scene(homes, peers_with("501"))
        scene.lane.start()
        assert await scene.found() == Route("501", "1", 9)
        assert homes.seen == [0]


async def test_a_map_that_is_behind_what_was_seen_is_resolved_above_it() -> None:
    homes = Homes(record("501", 5))
    homes.resolved = [Placed("501", "1", 11, 5, "seen")]
    scene = Scene(homes, peers_with("501"))
    scene.lane.epoch = 10
    scene.lane.start()
    assert await scene.found() == Route("501", "1", 11)
    assert homes.seen == [10]


async def test_the_server_that_bounced_is_believed_only_under_a_later_epoch_or_by_resolve() -> None:
    homes = Homes(record("501", 5))
    homes.resolved = [Bound("502", "1", 6, 5)]
    scene = Scene(homes, peers_with("501", "502"))
    scene.lane.start()
    assert await scene.found() == Route("501", "1", 5)
    scene.lane.lost()
    assert await scene.found() == Route("502", "1", 6)


async def test_a_wake_up_that_comes_while_the_map_is_read_is_not_lost() -> None:
    homes = Homes(record("501", 5, "M"), record("502", 6))
    homes.resolved = [Moving("501", "1", 5, 60_000)]
    scene = Scene(homes, peers_with("501", "502"))
    homes.before_answering = lambda: scene.finder.changed(change("502", 6))
    scene.lane.start()
    assert await scene.found() == Route("502", "1", 6), "what is read after the wake-up counts"


async def test_a_wake_up_during_the_wait_ends_it() -> None:
    homes = Homes(record("501", 5, "M"), record("502", 6))
    homes.resolved = [Moving("501", "1", 5, 60_000)]
    scene = Scene(homes, peers_with("501", "502"))
    scene.lane.start()
    while not scene.finder.waits:
        await asyncio.sleep(0)
    assert scene.lane.reason.code == "MIGRATING"
    scene.finder.changed(change("502", 6))
    assert await scene.found() == Route("502", "1", 6)


async def test_news_of_somebody_else_wakes_nobody() -> None:
    homes = Homes(record("501", 5, "M"), record("502", 6))
    homes.resolved = [Moving("501", "1", 5, 60_000)]
    scene = Scene(homes, peers_with("501", "502"))
    scene.lane.start()
    while not scene.finder.waits:
        await asyncio.sleep(0)
    scene.finder.changed(change("502", 6)._replace(user="bob"))
    for _ in range(20):
        await asyncio.sleep(0)
    assert homes.reads == 1
    await scene.finder.close()


async def test_a_gap_wakes_everybody_and_clears_what_was_known() -> None:
    homes = Homes(record("501", 5, "M"), record("502", 6))
    homes.resolved = [Moving("501", "1", 5, 60_000)]
    scene = Scene(homes, peers_with("501", "502"))
    scene.finder.routes.keep("entity", "bob", Route("501", "1", 1))
    scene.lane.start()
    while not scene.finder.waits:
        await asyncio.sleep(0)
    scene.finder.forget_all()
    assert await scene.found() == Route("502", "1", 6)
    assert scene.finder.routes.get("entity", "bob") is None


async def test_a_server_that_discovery_does_not_show_yet_is_waited_for() -> None:
    homes = Homes(record("501", 5))
    homes.resolved = [Bound("501", "1", 5, 0)]
    peers = peers_with()
    scene = Scene(homes, peers)
    scene.lane.start()
    while not scene.finder.waits:
        await asyncio.sleep(0)
    assert "501 is not known here yet" in scene.lane.reason.message
    show(peers, "501")
    scene.finder.wake_all()
    assert await scene.found() == Route("501", "1", 5)


async def test_a_store_that_is_away_is_asked_again() -> None:
    homes = Homes(record("501", 5))
    homes.fails = 2
    scene = Scene(homes, peers_with("501"))
    scene.lane.start()
    assert await scene.found() == Route("501", "1", 5)


async def test_nobody_looks_for_a_session_that_is_over() -> None:
    homes = Homes(None)
    homes.resolved = [NoServer("none registered")]
    scene = Scene(homes, peers_with())
    scene.lane.start()
    while not scene.finder.waits:
        await asyncio.sleep(0)
    scene.lane.close()
    scene.finder.wake_all()
    for _ in range(20):
        await asyncio.sleep(0)
    assert (homes.reads, scene.lane.state) == (1, State.CLOSED)


async def test_verifying_tells_a_lane_that_its_user_moved_and_no_other() -> None:
    homes = Homes(record("501", 5), record("501", 5), record("502", 6))
    scene = Scene(homes, peers_with("501", "502"))
    scene.lane.start()
    await scene.found()
    scene.lane.greeted(scene.lane.turn, 0, 5)
    scene.finder.verify([scene.lane])
    while homes.reads < 2:
        await asyncio.sleep(0)
    assert scene.lane.state is State.READY
    scene.finder.verify([scene.lane])
    assert await scene.found() == Route("502", "1", 6)


class Silent(Scene):
    """A lane that is ready, with one message in flight at 501."""

    def __init__(self, homes: Homes, peers: Peers) -> None:
        super().__init__(homes, peers)
        self.sent: list[tuple[Message, int]] = []
        self.ways.transmit = lambda lane, message, oldest: self.sent.append((message, lane.turn))  # type: ignore[method-assign]

    async def doubted(self) -> None:
        """Until the lookup has its answer."""
        self.lane.take(Message("a", 0, b"x"))
        self.lane.start()
        await self.found()
        self.lane.greeted(self.lane.turn, 0, 5)
        self.finder.doubt([self.lane])
        while self.finder.resolves < 1:
            await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)


async def test_a_silent_home_that_is_dead_is_left_for_the_one_that_the_map_gives() -> None:
    homes = Homes(record("501", 5))
    homes.resolved = [Placed("502", "1", 6, 5, "failover")]
    scene = Silent(homes, peers_with("501", "502"))

    await scene.doubted()

    assert await scene.found() == Route("502", "1", 6)
    assert homes.seen == [5]


@pytest.mark.parametrize(
    "answer",
    [
        Bound("501", "1", 5, 0),
        Placed("501", "1", 9, 5, "seen"),
        Moving("501", "1", 5, 100),
        NoServer("none willing"),
        None,
    ],
)
async def test_a_silent_home_that_lives_or_cannot_be_replaced_is_not_disturbed(answer: Answer | None) -> None:
    homes = Homes(record("501", 5))
    homes.resolved = [answer] if answer is not None else []  # none: the store is away
    scene = Silent(homes, peers_with("501", "502"))

    await scene.doubted()

    assert scene.lane.state is State.READY
    assert len(scene.sent) == 1, "not sent again"
    assert scene.lane.answered(*scene.sent[0], 9)
