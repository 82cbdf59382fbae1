"""What an acknowledgement is worth, per durability of the class; what is lost when."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import msgspec
import pytest

from roost.binding.partition import JournalAnswer
from roost.core.errors import NotSent
from roost.db.errors import DatabaseUnavailable
from roost.db.model import Flush
from roost.sdk.entity import Durability, Journal, Message, WriteBack, WriteThrough
from roost.servers.entity.journal import TRIM_EVERY
from roost.testing import eventually
from roost.wire.codes import Code
from tests.entity.town import TYPE, Counter, House, Town


class Written(Counter):
    durability: ClassVar[Durability] = WriteThrough()


class Journaled(Counter):
    """Its state is written so seldom that only the journal can have it."""

    durability: ClassVar[Durability] = Journal(ms=600_000)


class Weak:
    """A database that the test can hold, or make fail."""

    def __init__(self, database: Any) -> None:
        self._database = database
        self.go = asyncio.Event()
        self.go.set()
        self.fault: Exception | None = None
        self.flushes: list[Flush] = []

    async def flush_many(self, flushes: list[Flush]) -> Any:
        self.flushes += flushes
        await self.go.wait()
        if self.fault is not None:
            raise self.fault
        return await self._database.flush_many(flushes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


async def taken_over(town: Town, former: House, entity: type[Counter], user: str = "ann") -> House:
    """`former` is gone as by kill -9, and another server has the user."""
    await former.crash()
    await town.bury(former)
    house = await town.open("502", entity=entity)
    await town.bind(user, house)
    return house


async def count_on(house: House, user: str = "ann") -> None:
    """Until something is refused."""
    while True:
        await house.result(user)


# -- write-back


async def test_a_state_is_written_within_its_window_and_only_if_it_changed(town: Town) -> None:
    weak = Weak(town.database)
    house = await town.open(database=weak)
    await town.bind("ann", house)
    for _ in range(20):
        await house.result("ann")

    await eventually(lambda: not house.host.sessions["ann"].unsaved.is_dirty)

    assert await town.state("ann") == b"20"
    written = len(weak.flushes)
    assert written < 20
    await house.host.healer.reassert_all()
    assert len(weak.flushes) == written


class Stuck(Weak):
    """The write that holds `ann`'s state does not end before the test says so."""

    async def flush_many(self, flushes: list[Flush]) -> Any:
        if any(flush.user == "ann" for flush in flushes):
            return await super().flush_many(flushes)
        return await self._database.flush_many(flushes)


async def test_a_write_does_not_wait_for_one_of_others_that_is_under_way(town: Town) -> None:
    stuck = Stuck(town.database)
    stuck.go.clear()
    house = await town.open(database=stuck, entity=Written)
    for user in ("ann", "bob"):
        await town.bind(user, house)
    waits = house.put("ann", "up", 1)
    await eventually(lambda: bool(stuck.flushes), "the write of ann is under way")

    assert await house.result("bob") == 1

    assert not waits.done()
    stuck.go.set()
    assert (await waits).code is Code.OK
    assert (await town.state("ann"), await town.state("bob")) == (b"1", b"1")


async def test_many_users_are_written_together(town: Town) -> None:
    weak = Weak(town.database)
    house = await town.open(database=weak)
    for n in range(100):
        await town.bind(f"u{n}", house)
    await asyncio.gather(*(house.put(f"u{n}", "up", 1) for n in range(100)))

    await eventually(lambda: house.host.flusher.counts["saved"] == 100)

    assert len(weak.flushes) == 100


class Narrow(Counter):
    durability: ClassVar[Durability] = WriteBack(ms=40)


async def test_g9_nothing_is_acknowledged_beyond_the_window_while_the_database_is_away(town: Town) -> None:
    weak = Weak(town.database)
    house = await town.open(database=weak, entity=Narrow, stall_ms=60)
    await town.bind("ann", house)
    await house.result("ann", "up", 1)
    await eventually(lambda: not house.host.sessions["ann"].unsaved.is_dirty)
    weak.fault = DatabaseUnavailable()

    with pytest.raises(NotSent, match="cannot be saved"):
        await count_on(house)
    weak.fault = None

    last = house.host.sessions["ann"].last_sequence
    assert last > 1
    assert await house.result("ann", "up", last + 1) == last + 1
    assert await town.state("ann") is not None


class Unsavable(Narrow):
    broken: ClassVar[bool] = True

    def save(self) -> bytes:
        if self.broken:
            raise ValueError("not now")
        return super().save()


async def test_a_class_that_cannot_save_stops_being_acknowledged_and_keeps_its_user(town: Town) -> None:
    house = await town.open(entity=Unsavable, stall_ms=60)
    await town.bind("ann", house)
    Unsavable.broken = True
    await house.result("ann", "up", 1)

    with pytest.raises(NotSent, match="save failed"):
        await count_on(house)
    Unsavable.broken = False

    await eventually(lambda: not house.host.sessions["ann"].unsaved.is_dirty)
    assert house.users == ["ann"]


class Large(Narrow):
    def save(self) -> bytes:
        return b"x" * (2 << 20)


async def test_a_state_above_its_limit_is_not_written_and_said(town: Town) -> None:
    house = await town.open(entity=Large, stall_ms=60)
    await town.bind("ann", house)
    await house.result("ann", "up", 1)

    with pytest.raises(NotSent, match="at most 1048576 are kept"):
        await count_on(house)


async def test_a_write_that_was_held_up_does_not_undo_a_later_one(town: Town) -> None:
    weak = Weak(town.database)
    house = await town.open(database=weak, entity=Narrow)
    await town.bind("ann", house)
    weak.go.clear()
    await house.result("ann", "up", 1)
    await eventually(lambda: len(weak.flushes) == 1, "the first write is under way")
    late = weak.flushes[0]
    weak.fault = DatabaseUnavailable()
    weak.go.set()
    await eventually(lambda: bool(house.host.sessions["ann"].unsaved.fault))
    weak.fault = None
    await house.result("ann", "up", 2)
    await eventually(lambda: not house.host.sessions["ann"].unsaved.is_dirty)

    await town.database.flush(late)

    assert await town.state("ann") == b"2"


# -- write-through


async def test_g9_write_through_acknowledges_when_the_row_holds_it(town: Town) -> None:
    weak = Weak(town.database)
    house = await town.open(database=weak, entity=Written)
    await town.bind("ann", house)
    weak.go.clear()

    answers = [house.put("ann", "up", n) for n in range(1, 6)]
    await eventually(lambda: bool(weak.flushes))
    assert not any(answer.done() for answer in answers)
    weak.go.set()

    done = await asyncio.gather(*answers)
    assert [msgspec.msgpack.decode(answer.payload) for answer in done] == [
        [n, "write-through"] for n in range(1, 6)
    ]
    assert await town.state("ann") == b"5"
    again = await taken_over(town, house, Written)
    assert await again.result("ann", "up", 6) == 6


async def test_a_repetition_is_not_acknowledged_before_the_message_is_durable(town: Town) -> None:
    weak = Weak(town.database)
    house = await town.open(database=weak, entity=Written)
    await town.bind("ann", house)
    weak.go.clear()

    answers = [house.put("ann", "up", 1), house.put("ann", "up", 1)]
    await eventually(lambda: house.host.executor.counts["duplicates"] == 1)
    assert not any(answer.done() for answer in answers)
    weak.go.set()

    first, again = await asyncio.gather(*answers)
    assert first == again


async def test_who_waits_for_a_write_when_the_user_is_lost_is_told_that_it_ran(town: Town) -> None:
    weak = Weak(town.database)
    house = await town.open(database=weak, entity=Written)
    await town.bind("ann", house)
    weak.go.clear()
    answer = house.put("ann", "up", 1)
    await eventually(lambda: bool(weak.flushes))

    house.host.residence.lose(house.host.sessions["ann"])
    weak.go.set()

    refused = await answer
    assert refused.code is Code.MOVED
    assert msgspec.msgpack.decode(refused.payload)["executed"]


# -- journal


async def test_g9_the_journal_replays_what_the_row_lacks(town: Town) -> None:
    house = await town.open(entity=Journaled)
    await town.bind("ann", house)
    answers = await asyncio.gather(*(house.put("ann", "up", n) for n in range(1, 101)))
    assert {msgspec.msgpack.decode(answer.payload)[1] for answer in answers} == {"journal"}
    assert await town.state("ann") is None

    again = await taken_over(town, house, Journaled)
    answer = await again.login("ann")

    assert msgspec.msgpack.decode(answer.payload)[0] == 100
    assert await again.result("ann", "up", 100) == 100  # remembered by the replay
    assert await again.result("ann", "up", 101) == 101
    assert again.host.executor.counts["replayed"] == 100


async def test_a_failed_message_is_replayed_as_it_failed(town: Town) -> None:
    house = await town.open(entity=Journaled)
    await town.bind("ann", house)
    assert (await house.ask("ann", "raise", 1)).code is Code.FAILED
    assert await house.result("ann", "up", 2) == 2

    again = await taken_over(town, house, Journaled)

    assert (await again.ask("ann", "raise", 1)).code is Code.FAILED
    assert await again.result("ann", "up", 3) == 3


class Timely(Journaled):
    """Answers with the time of the message."""

    async def handle(self, message: Message) -> object:
        await super().handle(message)
        return [message.at, message.replayed]


async def test_a_replay_sees_the_time_of_the_first_execution(town: Town) -> None:
    house = await town.open(entity=Timely)
    await town.bind("ann", house)
    at, replayed = await house.result("ann", "up", 1)

    again = await taken_over(town, house, Timely)

    assert not replayed
    assert await again.result("ann", "up", 1) == [at, True]


async def test_what_the_row_holds_leaves_the_journal(town: Town) -> None:
    house = await town.open(entity=Journaled)
    await town.bind("ann", house)
    for _ in range(TRIM_EVERY):
        await house.result("ann")
    session = house.host.sessions["ann"]

    house.host.flusher.take(session)
    await eventually(lambda: not session.tail)

    async def is_trimmed() -> bool:
        return len(await town.bindings.read_journal(TYPE, "ann", 0)) == 1

    await eventually(is_trimmed, "only the last entry stays")
    again = await taken_over(town, house, Journaled)
    assert await again.result("ann", "up", TRIM_EVERY + 1) == TRIM_EVERY + 1


async def test_a_release_leaves_no_journal_behind(town: Town) -> None:
    house = await town.open(entity=Journaled)
    await town.bind("ann", house)
    for _ in range(3):
        await house.result("ann")

    await house.host.stop()

    (key,) = await town.store.call("KEYS", "*journal*", key=b"")
    assert await town.store.call("XLEN", key, key=key) == 1
    assert await town.store.call("TTL", key, key=key) > 0


async def test_g9_a_stale_owner_cannot_append_and_acknowledges_nothing(town: Town) -> None:
    first = await town.open("501", entity=Journaled)
    second = await town.open("502", entity=Journaled)
    await town.bind("ann", first)
    await first.result("ann", "up", 1)
    await town.bury(first)
    await town.bind("ann", second)
    assert await second.result("ann", "up", 2, oldest=2) == 2

    answer = await first.ask("ann", "up", 2, oldest=2)

    assert answer.code is Code.MOVED
    assert first.users == []
    assert await second.result("ann", "up", 3) == 3


async def test_g9_a_store_that_lost_the_journal_gets_the_tail_again_before_the_next_ack(town: Town) -> None:
    house = await town.open(entity=Journaled)
    await town.bind("ann", house)
    for _ in range(5):
        await house.result("ann")
    for key in await town.store.call("KEYS", "*journal*", key=b""):
        await town.store.call("DEL", key, key=key)

    assert await house.result("ann", "up", 6) == 6

    assert house.host.journal.counts[JournalAnswer.BEHIND.value] >= 1
    assert [entry.sequence for entry in await town.bindings.read_journal(TYPE, "ann", 0)] == [
        1,
        2,
        3,
        4,
        5,
        6,
    ]
    again = await taken_over(town, house, Journaled)
    assert await again.result("ann", "up", 7) == 7


async def test_g9_a_store_that_lost_everything_gets_map_and_tail_again(town: Town) -> None:
    house = await town.open(entity=Journaled)
    await town.bind("ann", house)
    for _ in range(5):
        await house.result("ann")

    await town.store.call("FLUSHALL", key=b"")
    await town.shows(house.owner)
    await house.beat()
    answer = await house.ask("ann", "up", 6)

    assert answer.code is Code.OK
    assert len(await town.bindings.read_journal(TYPE, "ann", 0)) == 6


class Timed(Journaled):
    """A timer changes what messages build on."""

    async def on_login(self, reason: str) -> None:
        if reason == "new":
            self.after(0.001, self.ring)

    async def ring(self) -> None:
        self.count += 100


async def test_g9_what_a_timer_changed_is_saved_before_anything_on_top_is_acknowledged(town: Town) -> None:
    house = await town.open(entity=Timed)
    await town.bind("ann", house)
    await house.login("ann")
    session = house.host.sessions["ann"]
    await eventually(lambda: session.unsaved.changes >= 2, "the timer rang")
    assert await house.result("ann", "up", 1) == 101

    again = await taken_over(town, house, Timed)

    assert await again.result("ann", "up", 2) == 102
