"""What Lua decides is what the rules in Python say: gateways answer people far back without the store."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from roost.store.store import Store
from roost.testing import RunningServer
from roost.waitingroom.rules import poll_ms
from roost.waitingroom.scripts import Waiting
from tests.store.examples import for_each
from tests.store.waitingroom.world import MS, World

ME = "me"


@dataclass(frozen=True)
class Place:
    rank: int
    fast: int
    """Thousandths of a person in a second."""


RANKS = st.one_of(st.integers(95, 105), st.integers(1, 3000))
PACES = st.one_of(
    st.integers(0, 50),
    st.integers(0, 200_000),  # with these ranks, on both sides of 2 s and of 30 s
    st.integers(0, 10_000_000),
)
PLACES = st.builds(Place, RANKS, PACES)


async def stand_at(world: World, place: Place) -> None:
    """Others at every second number, and the one who asks between them."""
    waits = await world.waits(ME)
    line, person = world.key("waiting"), world.key("people") + ME.encode()
    others = [part for at in range(1, 3001) for part in (2 * at, f"u{at}")]
    await world.store.call("ZADD", line, *others, key=line)
    await world.store.call("ZADD", line, 2 * place.rank - 1, ME, key=line)
    await world.store.call("HSET", person, "seq", 2 * place.rank - 1, "shown", waits.rank + 3000, key=person)
    await world.loses("fast", place.fast)


def test_the_poll_interval_is_the_same(server: RunningServer) -> None:
    async def check(store: Store, place: Place) -> None:
        world = World(store)
        await world.tick(0)
        await stand_at(world, place)
        found = await world.status(ME)
        assert isinstance(found, Waiting)
        assert (found.rank, found.fast) == (place.rank, place.fast)
        assert found.poll_ms == poll_ms(place.rank, place.fast)

    for_each(server, PLACES, check, examples=60)


def is_late(clock_ms: int, due_ms: int, late_ms: int) -> bool:
    """Put aside is who has not asked for `late_ms` after the moment at which they were to ask again."""
    return clock_ms > due_ms + late_ms


@dataclass(frozen=True)
class Line:
    late_ms: int
    behind_ms: tuple[int, ...]
    """For each in the line: by how much the clock has passed the time of lateness, or has not."""
    step_ms: int
    has_room: bool
    """With room the head of the line is looked at, without it only the sweep looks."""


BEHIND = st.one_of(st.integers(-2, 2), st.integers(-60_000, 60_000))
LINES = st.builds(
    Line,
    st.integers(0, 60_000),
    st.lists(BEHIND, min_size=1, max_size=12).map(tuple),
    st.integers(0, 2000),
    st.booleans(),
)


def test_who_is_late_is_the_same(server: RunningServer) -> None:
    async def check(store: Store, line: Line) -> None:
        world = World(store)
        await world.tick(0)
        users = await world.crowd(len(line.behind_ms))
        if line.has_room:
            await world.report(cap=100)
        clock_ms = await world.number("clock_ms") + line.step_ms
        due = {
            user: clock_ms - line.late_ms - behind for user, behind in zip(users, line.behind_ms, strict=True)
        }
        for user, due_ms in due.items():
            person = world.key("people") + user.encode()
            await store.call("HSET", person, "due", due_ms, key=person)

        world.now += line.step_ms * MS
        await world.tick(100, late_ms=line.late_ms)

        assert await world.number("clock_ms") == clock_ms
        late = [user for user in users if is_late(clock_ms, due[user], line.late_ms)]
        assert await world.line_of("away") == late
        there = [user for user in users if user not in late]
        assert await world.line_of("waiting") == ([] if line.has_room else there)
        assert await world.promoted() == (there if line.has_room else [])

    for_each(server, LINES, check, examples=60)
