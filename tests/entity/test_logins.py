"""Who may be served here: the map says who, the row of the database is the judge."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from roost.binding.scripts import Bound
from roost.core.owner import Owner
from roost.db.errors import DatabaseUnavailable
from roost.db.model import Claimed, Flush, Flushed
from roost.sdk.entity import Message
from roost.store.store import Store
from roost.testing import eventually
from roost.wire.codes import Code
from roost.wire.server import Answer
from tests.entity.town import TYPE, Counter, House, Town, open_town


def said(answer: Answer) -> Any:
    assert answer.code is Code.OK, (answer.code, answer.message)
    return msgspec.msgpack.decode(answer.payload)


def told(answer: Answer) -> Any:
    return msgspec.msgpack.decode(answer.payload)


class Told(Counter):
    """Keeps what its hooks were told, for all users together."""

    hooks: ClassVar[list[str]] = []

    async def on_login(self, reason: str) -> None:
        self.hooks.append(f"login {reason}")

    async def on_logout(self, reason: str) -> None:
        self.hooks.append(f"logout {reason}")


class Away:
    """A database that writes nothing while it is away."""

    def __init__(self, database: Any) -> None:
        self._database = database
        self.is_away = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    async def flush_many(self, flushes: Any) -> Any:
        if self.is_away:
            raise DatabaseUnavailable("it does not answer")
        return await self._database.flush_many(flushes)


async def flushed(house: House, user: str) -> None:
    await eventually(lambda: not house.host.sessions[user].unsaved.is_dirty, "the state is written")


async def test_a_login_tells_the_last_sequence_the_reason_and_the_durability(town: Town) -> None:
    house = await town.open()
    epoch = await town.bind("ann", house)

    answer = await house.login("ann", nickname="Ann")

    assert said(answer) == [0, "new", "write-back:1000"]
    assert answer.epoch == epoch


async def test_a_user_of_another_server_is_not_executed_and_its_home_is_named(town: Town) -> None:
    here, there = await town.open("501"), await town.open("502")
    epoch = await town.bind("ann", there)

    for answer in (await here.login("ann"), await here.ask("ann", "up")):
        assert answer.code is Code.MOVED
        assert (told(answer)["serverId"], answer.epoch) == ("502", epoch)
    assert here.users == []


async def test_a_user_of_nobody_is_looked_up_again(town: Town) -> None:
    house = await town.open()

    assert (await house.ask("ann", "up")).code is Code.MOVED


async def test_the_own_cap_is_full_and_the_map_may_place_elsewhere(town: Town) -> None:
    house, other = await town.open("501", capacity=2), await town.open("502")
    house.beating.capacity = 100
    await house.beat()
    for user in ("ann", "bob", "eve"):
        await town.bind(user, house)
    await house.result("ann")
    await house.result("bob")

    answer = await house.login("eve")

    assert answer.code is Code.FULL
    record = await town.bindings.read(TYPE, "eve")
    assert record is not None
    assert record.owner is None
    await town.bind("eve", other, seen=record.epoch)
    assert said(await other.login("eve"))[1] == "new"


async def test_a_user_comes_back_after_a_release_and_goes_on(town: Town) -> None:
    house = await town.open(idle_seconds=1, entity=Told)
    Told.hooks.clear()
    await town.bind("ann", house)
    await house.login("ann")
    await house.result("ann", "up", 1)
    house.host.sessions["ann"].used_at -= 3600

    await eventually(lambda: house.users == [], "the idle user is released")

    row = await town.database.read(TYPE, "ann")
    record = await town.bindings.read(TYPE, "ann")
    assert row is not None
    assert record is not None
    assert (row.owner, row.state, row.last_sequence) == (None, b"1", 1)
    assert (record.owner, record.epoch) == (None, row.epoch)
    assert Told.hooks == ["login new", "logout idle"]
    again = await town.open("502", entity=Told)
    await town.bind("ann", again)
    assert said(await again.login("ann"))[:2] == [1, "return"]
    assert await again.result("ann", "up", 2) == 2


async def test_a_release_that_cannot_be_written_tells_the_hook_once(town: Town) -> None:
    """The user stays here; their next message is a return, which the hook hears of."""
    database = Away(town.database)
    house = await town.open(idle_seconds=3600, stall_ms=200, entity=Told, database=database)
    Told.hooks.clear()
    await town.bind("ann", house)
    await house.login("ann")
    await house.result("ann", "up", 1)
    database.is_away = True
    house.host.sessions["ann"].used_at -= 7200
    for _ in range(3):
        await eventually(lambda: not house.host.sessions["ann"].line.busy, "the turns before are over")
        await house.host.release_idle()
    await eventually(lambda: not house.host.sessions["ann"].line.busy, "the releases are over")

    assert Told.hooks == ["login new", "logout idle"]
    database.is_away = False
    assert await house.result("ann", "up", 2) == 2
    assert Told.hooks == ["login new", "logout idle", "login return"]


async def test_a_logout_keeps_the_state_cached_and_a_login_finds_it(town: Town) -> None:
    house = await town.open(entity=Told)
    Told.hooks.clear()
    await town.bind("ann", house)
    await house.login("ann", "one")
    await house.result("ann", session="one")

    await house.logout("ann", "another")
    await house.logout("ann", "one", "dropped")
    answer = await house.login("ann", "two")

    assert said(answer)[:2] == [1, "return"]
    assert Told.hooks == ["login new", "logout dropped", "login return"]


async def test_a_second_session_takes_over_and_the_first_is_told(town: Town) -> None:
    house = await town.open()
    await town.bind("ann", house)
    await house.login("ann", "one")
    await house.login("ann", "two")

    late = await house.ask("ann", "up", 1, session="one")
    resumed = await house.login("ann", "one", resume=True)

    assert late.code is resumed.code is Code.NOT_OWNER
    await eventually(lambda: len(house.pushed) == 1)
    assert (house.pushed[0].method, told(Answer(house.pushed[0].payload))) == (
        2,
        [TYPE, "ann", "taken-over", "one"],
    )
    assert await house.result("ann", "up", 1, session="two") == 1


async def test_a_login_that_was_long_under_way_takes_nobodys_session(town: Town) -> None:
    house = await town.open()
    await town.bind("ann", house)
    await house.login("ann", "two")

    late = await house.login("ann", "one")

    assert late.code is Code.NOT_OWNER
    assert await house.result("ann", "up", 1, session="two") == 1
    assert house.pushed == []


async def test_a_takeover_after_a_crash_goes_on_from_the_row(town: Town) -> None:
    first, second = await town.open("501"), await town.open("502")
    await town.bind("ann", first)
    await first.result("ann", "up", 1)
    await flushed(first, "ann")
    await first.result("ann", "up", 2)
    await first.crash()
    await town.bury(first)
    epoch = await town.bind("ann", second)

    answer = await second.login("ann")

    assert said(answer)[:2] == [1, "failover"]
    assert answer.epoch == epoch
    assert await second.result("ann", "up", 3, oldest=3) == 2
    assert second.host.executor.counts["skipped"] == 1


async def test_a_reply_is_remembered_by_the_next_server(town: Town) -> None:
    first, second = await town.open("501"), await town.open("502")
    await town.bind("ann", first)
    await first.result("ann", "up", 1)
    await flushed(first, "ann")
    await first.crash()
    await town.bury(first)
    await town.bind("ann", second)

    assert await second.result("ann", "up", 1) == 1
    assert await second.result("ann", "up", 2) == 2


async def test_g7_a_stale_owner_is_fenced_by_the_row_and_drops_its_user(town: Town) -> None:
    """No self-check saves it here: its lease looks valid, it just was judged dead."""
    first, second = await town.open("501"), await town.open("502")
    await town.bind("ann", first)
    await first.result("ann", "up", 1)
    await flushed(first, "ann")
    first.host.sessions["ann"].unsaved.revision += 10  # as after ten writes that failed
    await town.bury(first)
    await town.bind("ann", second)
    assert await second.result("ann", "up", 2, oldest=2) == 2
    await flushed(second, "ann")

    await first.ask("ann", "up", 2)  # executed by the stale one, and acknowledged to a gate that drops it
    await eventually(lambda: first.users == [], "the stale owner drops the user")

    assert first.host.flusher.counts["fenced"] == 1
    assert (await first.ask("ann", "up", 3)).code is Code.MOVED
    assert await town.state("ann") == b"2"
    assert await second.result("ann", "up", 3) == 3


async def test_g7_a_lapsed_server_answers_nothing_before_it_has_claimed_anew(town: Town) -> None:
    house = await town.open()
    epoch = await town.bind("ann", house)
    await house.result("ann")

    house.lapse()
    refused = await house.ask("ann", "up", 2)
    login = await house.login("bob")
    await house.beat()
    answer = await house.ask("ann", "up", 2)

    assert refused.code is login.code is Code.MOVED
    assert "executed" not in told(refused)
    assert answer.code is Code.OK
    assert answer.epoch > epoch
    row = await town.database.read(TYPE, "ann")
    assert row is not None
    assert row.epoch == answer.epoch


async def test_a_lapsed_server_whose_user_lives_elsewhere_drops_it(town: Town) -> None:
    first, second = await town.open("501"), await town.open("502")
    await town.bind("ann", first)
    await first.result("ann", "up", 1)
    await flushed(first, "ann")
    first.lapse()
    await town.bury(first)
    await town.bind("ann", second)
    await second.result("ann", "up", 2, oldest=2)

    first.lease.renewed(first.clock.now(), 6000)  # as if the store had not ended it
    answer = await first.ask("ann", "up", 3, oldest=3)

    assert answer.code is Code.MOVED
    assert told(answer)["serverId"] == "502"
    assert first.users == []


async def test_a_lapsed_server_whose_user_was_elsewhere_and_left_forgets_what_it_knew(town: Town) -> None:
    """The map names nobody, so it is granted; the row tells that the memory is old."""
    first, second = await town.open("501"), await town.open("502")
    await town.bind("ann", first)
    await first.result("ann", "up", 1)
    await flushed(first, "ann")
    first.lapse()
    record = await town.bindings.read(TYPE, "ann")
    assert record is not None
    await town.bindings.release(TYPE, "ann", first.owner, record.epoch)
    await town.bind("ann", second)
    await second.result("ann", "up", 2, oldest=2)
    await second.host.stop()
    await first.beat()

    stale = await first.ask("ann", "up", 3, oldest=3)
    fresh = await first.result("ann", "up", 3, oldest=3)

    assert stale.code is Code.MOVED
    assert fresh == 3


class LapsesInside(Counter):
    """The lease goes while the handler runs."""

    house: ClassVar[House]

    async def handle(self, message: Message) -> object:
        if message.body in ("lapse", "lapse and no store"):
            self.house.lapse()
        if message.body == "lapse and no store":
            self.house.lease.renewed(self.house.clock.now(), 6000)
            self.house.link.is_cut = True
        return await super().handle(message)


async def test_g7_what_ran_across_a_lapse_is_not_acknowledged(town: Town) -> None:
    house = await town.open(entity=LapsesInside)
    LapsesInside.house = house
    await town.bind("ann", house)
    await house.result("ann", "up", 1)

    answer = await house.ask("ann", "lapse", 2)
    await house.beat()
    again = await house.ask("ann", "lapse", 2)

    assert answer.code is Code.MOVED
    assert told(answer)["executed"], "whoever sends it under a new number does it twice"
    assert told(again)[0] == 2  # remembered, not executed again


async def test_what_ran_and_cannot_be_claimed_anew_is_not_said_not_to_have_run(town: Town) -> None:
    house = await town.open(entity=LapsesInside)
    LapsesInside.house = house
    await town.bind("ann", house)
    await house.result("ann", "up", 1)

    answer = await house.ask("ann", "lapse and no store", 2)
    house.link.is_cut = False
    again = await house.ask("ann", "lapse and no store", 2)

    assert answer.code is Code.MOVED, "OVERLOADED would say that nothing ran"
    assert told(answer)["executed"]
    assert told(again)[0] == 2


async def test_a_store_that_forgot_the_map_is_told_again(town: Town) -> None:
    house = await town.open()
    epoch = await town.bind("ann", house)
    await house.result("ann")

    await town.store.call("FLUSHALL", key=b"")
    await town.shows(house.owner)
    await house.beat()
    await house.host.healer.reassert_all()

    record = await town.bindings.read(TYPE, "ann")
    assert record is not None
    assert (record.owner, record.epoch) == (house.owner, epoch)
    assert await house.result("ann") == 2


async def test_a_map_that_forgot_the_owner_is_repaired_by_who_finds_it_in_the_row(town: Town) -> None:
    first, second = await town.open("501"), await town.open("502")
    await town.bind("ann", first)
    await first.result("ann", "up", 1)
    key = b"bind:user:{b0}:entity:ann"
    keys = await town.store.call("KEYS", "*ann*", key=key)
    for one in keys:
        await town.store.call("DEL", one, key=one)
    await town.bind("ann", second)

    answer = await second.login("ann")

    assert answer.code is Code.MOVED
    assert told(answer)["serverId"] == "501"
    assert second.users == []
    found = await town.bindings.resolve(TYPE, "ann")
    assert isinstance(found, Bound)
    assert found.server_id == "501"
    assert await first.result("ann", "up", 2, epoch=found.epoch) == 2


async def test_a_row_above_the_map_is_campaigned_for(town: Town) -> None:
    """Release and a failover: the map says us at e, the row is at e or above, and nobody owns it (R8)."""
    house = await town.open()
    epoch = await town.bind("ann", house)
    gone = Owner("500", "99")
    later = epoch + 5_000_000
    assert isinstance(await town.database.claim(TYPE, "ann", gone, later, judged=0), Claimed)
    assert isinstance(await town.database.flush(Flush(TYPE, "ann", later, 1, b"41", 7)), Flushed)
    assert await town.database.release(TYPE, "ann", gone, later)

    answer = await house.login("ann")

    assert said(answer)[0] == 7
    assert answer.epoch > later
    assert await house.result("ann", "up", 8) == 42


async def test_a_row_of_a_dead_server_is_claimed(town: Town) -> None:
    house = await town.open()
    epoch = await town.bind("ann", house)
    assert isinstance(await town.database.claim(TYPE, "ann", Owner("500", "9"), epoch - 1, judged=0), Claimed)

    assert said(await house.login("ann"))[1] == "new"


async def test_a_gate_that_saw_a_later_epoch_is_followed(town: Town) -> None:
    house = await town.open()
    epoch = await town.bind("ann", house)
    await house.result("ann", epoch=epoch)
    later = await town.bind("ann", house, seen=epoch + 1_000_000)

    answer = await house.ask("ann", "up", epoch=later)

    assert answer.code is Code.OK
    assert answer.epoch >= later


async def test_a_login_at_a_gate_that_saw_a_later_epoch_is_followed(town: Town) -> None:
    """As after a repair: the map has granted the user to us anew, and we have not heard."""
    house = await town.open()
    epoch = await town.bind("ann", house)
    assert (await house.login("ann", epoch=epoch)).epoch == epoch
    later = await town.bind("ann", house, seen=epoch + 1_000_000)

    answer = await house.login("ann", "t", epoch=later)

    assert answer.code is Code.OK
    assert answer.epoch >= later
    refused = await house.login("ann", "u", epoch=2**53 - 2**21)
    assert refused.code is Code.BAD_REQUEST


async def test_a_message_under_an_older_epoch_is_executed_and_told_the_new_one(town: Town) -> None:
    house = await town.open()
    epoch = await town.bind("ann", house)
    await house.result("ann", epoch=epoch)

    answer = await house.ask("ann", "up", epoch=epoch - 1)

    assert (answer.code, answer.epoch) == (Code.OK, epoch)


class Newer(Counter):
    schema_version: ClassVar[int] = 3
    min_reader: ClassVar[int] = 2


async def test_a_state_for_newer_readers_is_left_alone(town: Town) -> None:
    newer, older = await town.open("501", entity=Newer), await town.open("502")
    await town.bind("ann", newer)
    await newer.result("ann")
    await newer.host.stop()
    await town.bind("ann", older)

    answer = await older.login("ann")

    assert answer.code is Code.REFUSED
    assert "schema version 2" in answer.message
    row = await town.database.read(TYPE, "ann")
    assert row is not None
    assert (row.owner, row.state) == (None, b"1")
    record = await town.bindings.read(TYPE, "ann")
    assert record is not None
    assert record.owner is None


class Unloadable(Counter):
    async def load(self, state: bytes | None) -> None:
        raise ValueError("unreadable")


async def test_a_state_that_cannot_be_loaded_is_left_alone(town: Town) -> None:
    house = await town.open(entity=Unloadable)
    await town.bind("ann", house)

    answer = await house.ask("ann", "up")

    assert answer.code is Code.REFUSED
    assert house.users == []


async def test_a_clean_stop_writes_and_releases_everybody(town: Town) -> None:
    house = await town.open()
    for n in range(50):
        await town.bind(f"u{n}", house)
        await house.result(f"u{n}")

    await house.host.stop()

    for n in range(50):
        row = await town.database.read(TYPE, f"u{n}")
        record = await town.bindings.read(TYPE, f"u{n}")
        assert row is not None
        assert record is not None
        assert (row.state, row.owner, record.owner) == (b"1", None, None)
    assert (await house.ask("u1", "up")).code is Code.MOVED


async def test_a_clean_stop_ends_under_traffic_and_loses_nothing(town: Town) -> None:
    house = await town.open()
    await town.bind("ann", house)
    answers = [house.put("ann", "up", n) for n in range(1, 501)]
    await eventually(lambda: house.host.executor.counts["executed"] > 0)

    stopping = asyncio.create_task(house.host.stop())
    answers += [house.put("ann", "up", n) for n in range(501, 601)]
    done = await asyncio.gather(*answers)
    await stopping

    executed = [answer for answer in done if answer.code is Code.OK]
    assert {answer.code for answer in done} == {Code.OK, Code.MOVED}
    assert [answer.code for answer in done[: len(executed)]] == [Code.OK] * len(executed)
    assert await town.state("ann") == str(len(executed)).encode()


async def test_the_end_of_our_life_lets_everybody_go(town: Town) -> None:
    house = await town.open()
    await town.bind("ann", house)
    await house.result("ann")

    await town.bury(house)
    await house.beat()
    await eventually(lambda: house.users == [], "everybody has gone")

    row = await town.database.read(TYPE, "ann")
    assert row is not None
    assert (row.state, row.owner) == (b"1", None)


async def test_users_of_several_partitions_are_served_and_told_apart(store: Store, tmp_path: Path) -> None:
    async with open_town(store, tmp_path, partitions=4) as town:
        house = await town.open()
        users = [f"u{n}" for n in range(40)]
        for user in users:
            await town.bind(user, house)
        assert [await house.result(user) for user in users] == [1] * 40
        assert {house.host.sessions[user].partition for user in users} == {0, 1, 2, 3}

        await house.host.healer.reassert_all()
        house.lapse()
        assert {(await house.ask(user, "up")).code for user in users} == {Code.MOVED}
        await house.beat()

        assert [await house.result(user, "up", 2) for user in users] == [2] * 40
