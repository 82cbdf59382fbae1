"""No loop of a waiting room ends by what it did not expect: it comes back, and that is counted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from roost.core.errors import StoreUnavailable
from roost.core.events import Entry
from roost.core.lease import Tenure
from roost.core.loops import FAILING_S, Loops
from roost.store.feed import Feed
from roost.store.keys import Keys
from roost.store.store import Store
from roost.testing import FakeClock, eventually
from roost.waitingroom.admitter import Admitter
from roost.waitingroom.export import StatusExport
from roost.waitingroom.fleet import Fleet
from roost.waitingroom.presence import Presence
from roost.waitingroom.push import Push
from roost.waitingroom.rules import Policy
from roost.waitingroom.scripts import Deposed, Ticked
from roost.waitingroom.service import WaitingRoom
from tests.unit.waitingroom.test_admitter import WrittenFleet


class Faulty:
    """Fails as often as it is told, then does well."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self) -> None:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)


@asynccontextmanager
async def running(work: Coroutine[Any, Any, None]) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(work)
    await asyncio.sleep(0)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class TouchedRoom:
    world = "main"

    def __init__(self, *errors: Exception) -> None:
        self.fail = Faulty(*errors)
        self.marks: dict[str, int] = {}

    async def touch(self, people: Sequence[tuple[str, int, int]], ticket_key: str = "") -> int:
        if people:  # else it is only the sign that a gateway is there
            self.fail()
        self.marks |= {user: poll_ms for user, _, poll_ms in people}
        return len(people)


@pytest.mark.parametrize("error", [ZeroDivisionError(), StoreUnavailable()])
async def test_presence_comes_back_and_tells_of_who_asks_later(error: Exception) -> None:
    clock = FakeClock()
    loops, room = Loops(clock), TouchedRoom(error)
    presence = Presence(cast(WaitingRoom, room), loops)
    async with running(presence.run()):
        presence.mark("ann", 1, 1000)
        await clock.advance(2.0)
        presence.mark("bob", 2, 1000)
        await clock.advance(2.0)
    kept = {"ann": 1000} if isinstance(error, StoreUnavailable) else {}
    assert room.marks == {**kept, "bob": 1000}
    assert loops.loop("presence main").failures == 1
    assert loops.fault() == ""


async def test_a_process_whose_presence_fails_is_not_ready() -> None:
    clock = FakeClock()
    loops, room = Loops(clock), TouchedRoom(*[StoreUnavailable("away")] * 100)
    presence = Presence(cast(WaitingRoom, room), loops)
    async with running(presence.run()):
        presence.mark("ann", 1, 1000)
        await clock.advance(FAILING_S + 3)
        assert loops.fault().startswith("presence main has failed")
        room.fail.errors.clear()
        await clock.advance(3)
        assert loops.fault() == ""
    assert room.marks == {"ann": 1000}


async def test_one_batch_of_marks_that_fails_does_not_hold_up_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("roost.waitingroom.presence.BATCH_LIMIT", 2)
    room = TouchedRoom(ZeroDivisionError())
    presence = Presence(cast(WaitingRoom, room))
    for n in range(5):
        presence.mark(f"u{n}", n, 1000)
    with pytest.raises(ZeroDivisionError):
        await presence.flush()
    assert await presence.flush() is None
    assert room.marks.keys() == {"u2", "u3", "u4"}


async def test_the_admitter_comes_back_and_ends_when_another_leads() -> None:
    clock = FakeClock()
    loops, fail = Loops(clock), Faulty(ZeroDivisionError())
    answers: list[Ticked | Deposed] = [Ticked(0, 0, 0, 0, 0, 0)] * 3 + [Deposed()]

    async def admit(**given: object) -> Ticked | Deposed:
        fail()
        return answers.pop(0)

    room = SimpleNamespace(world="main", policy=Policy(tick_ms=1), scripts=SimpleNamespace(admit=admit))
    admitter = Admitter(cast(WaitingRoom, room), cast(Fleet, WrittenFleet()), loops)
    async with running(admitter.run(Tenure("m", 3, 0.0, 10_000))) as task:
        assert admitter.leading
        await clock.advance(5.0)
        async with asyncio.timeout(10):
            await task
    assert not admitter.leading
    assert (fail.calls, admitter.ticks) == (5, 4)
    assert loops.loop("admit main").failures == 1


class OneEntryFeed:
    """Fails once, then tells of one promotion and falls silent."""

    def __init__(self, *errors: Exception) -> None:
        self.fail = Faulty(*errors)

    async def head(self) -> int:
        self.fail()
        return 0

    async def follow(self, after: int) -> AsyncIterator[Entry]:
        for fields in ({}, {"event": "promoted"}, {"event": "promoted", "user": "ann"}):
            yield Entry(1, 0, 0, fields)
        await asyncio.Event().wait()


async def test_push_comes_back_and_odd_entries_wake_nobody() -> None:
    clock = FakeClock()
    loops, feed = Loops(clock), OneEntryFeed(ZeroDivisionError())
    push = Push(cast(Feed, feed), "main", loops)
    with push.listening("ann") as waiter:
        await eventually(lambda: feed.fail.calls == 1)
        await clock.advance(3.0)
        await waiter.wait(60.0)
    assert feed.fail.calls == 2
    assert loops.loop("push main").failures == 1
    assert loops.loop("push main").failing_since is None


async def test_the_export_comes_back_and_writes_while_we_lead() -> None:
    clock = FakeClock()
    loops, fail = Loops(clock), Faulty(ZeroDivisionError())
    written: list[tuple[object, ...]] = []

    async def call(*command: object, **more: object) -> None:
        written.append(command)

    async def get() -> object:
        fail()
        return SimpleNamespace(capacity=10, inside=3)

    store = SimpleNamespace(keys=Keys(), call=call)
    room = SimpleNamespace(world="main", board=SimpleNamespace(get=get))
    admitter = SimpleNamespace(leading=False)
    fleet = SimpleNamespace(region="kr-1", version="1.4.2")
    export = StatusExport(
        cast(Store, store),
        cast(WaitingRoom, room),
        cast(Admitter, admitter),
        cast(Fleet, fleet),
        is_first=True,
        loops=loops,
    )
    async with running(export.run()):
        await clock.advance(20.0)
        assert (fail.calls, written) == (0, [])
        admitter.leading = True
        await clock.advance(20.0)
    assert loops.loop("status export main").failures == 1
    assert written[0][:8] == ("HSET", b"server:status", "max_cap", 10, "current_users", 3, "region", "kr-1")
    assert written[1] == ("EXPIRE", b"server:status", 30)
    assert {command[1] for command in written} == {b"server:status", b"server:status:main"}
    assert written[0][8:] == ("version", "1.4.2")
