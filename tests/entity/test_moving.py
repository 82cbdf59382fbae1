"""A user goes to another server while they play."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import msgspec
import pytest

from roost.sdk.entity import Durability, Journal, LoginReason, LogoutReason, Message, WriteBack, WriteThrough
from roost.servers.entity.replies import LARGEST
from roost.testing import eventually
from roost.wire.answer import digest_of
from roost.wire.codes import Code
from tests.entity.town import TYPE, Counter, House, Town


class Slow(Counter):
    """Tells what it hears, and waits where the message says so."""

    durability: ClassVar[Durability] = WriteBack(ms=60_000)
    told: ClassVar[list[tuple[str, str]]] = []
    gate: ClassVar[asyncio.Event]

    async def handle(self, message: Message) -> object:
        if message.body == "wait":
            await Slow.gate.wait()
        return await super().handle(message)

    async def on_login(self, reason: LoginReason) -> None:
        self.told.append((self.home.server_id, f"in {reason} {self.context.get('nickname', '')}".strip()))

    async def on_logout(self, reason: LogoutReason) -> None:
        self.told.append((self.home.server_id, f"out {reason}"))


class Journaled(Counter):
    durability: ClassVar[Durability] = Journal(ms=60_000)


class Written(Counter):
    durability: ClassVar[Durability] = WriteThrough()


@pytest.fixture(autouse=True)
async def fresh() -> None:
    Slow.told, Slow.gate = [], asyncio.Event()


async def two(town: Town, entity: type[Counter] = Slow, **settings: Any) -> tuple[House, House]:
    return await town.open("501", entity, **settings), await town.open("502", entity, **settings)


async def owner_of(town: Town, user: str) -> str:
    record = await town.bindings.read(TYPE, user)
    assert record is not None
    assert record.state == "A", record
    return record.owner.server_id if record.owner else ""


@pytest.mark.parametrize("entity", [Slow, Journaled, Written])
async def test_a_user_goes_on_at_the_target_where_they_were(town: Town, entity: type[Counter]) -> None:
    a, b = await two(town, entity)
    epoch = await town.bind("ann", a)
    assert [await a.result("ann") for _ in range(3)] == [1, 2, 3]

    [[user, outcome, why, phases, moved_epoch]] = await a.move(b, "ann")

    assert (user, outcome, why) == ("ann", "moved", "")
    assert moved_epoch > epoch
    assert set(phases) == {"preflush", "quiesce", "freeze", "flush", "accept", "total"}
    assert (a.users, b.users, await owner_of(town, "ann")) == ([], ["ann"], "502")
    assert await b.result("ann", sequence=4) == 4
    assert b.host.sessions["ann"].epoch == moved_epoch


class Pausing(Counter):
    async def handle(self, message: Message) -> object:
        await asyncio.sleep(0.001)
        return await super().handle(message)


class PausingJournaled(Pausing):
    durability: ClassVar[Durability] = Journal(ms=60_000)


class PausingWritten(Pausing):
    durability: ClassVar[Durability] = WriteThrough()


@pytest.mark.parametrize("entity", [Pausing, PausingJournaled, PausingWritten])
async def test_i2_pipelined_messages_are_executed_once_and_in_order(
    town: Town, entity: type[Counter]
) -> None:
    a, b = await two(town, entity)
    await town.bind("ann", a)
    await a.result("ann")

    results: dict[int, int] = {}
    at, bounced = a, 0
    moving = asyncio.create_task(a.move(b, "ann"))
    while len(results) < 200:
        first = len(results) + 2
        sent = [(n, at.put("ann", "up", n, oldest=first)) for n in range(first, first + 20)]
        for n, reply in sent:
            answer = await reply
            if answer.code is Code.OK:
                results[n] = msgspec.msgpack.decode(answer.payload)[0]
            else:
                assert answer.code in (Code.MOVED, Code.OUT_OF_ORDER), answer.message
                bounced += 1
        at = b if moving.done() else at

    assert (await moving)[0][1] == "moved"
    assert results == {n: n for n in range(2, len(results) + 2)}
    assert bounced > 0


async def test_who_waits_during_the_move_is_sent_to_the_target_with_its_epoch(town: Town) -> None:
    a, b = await two(town)
    await town.bind("ann", a)
    await a.result("ann")
    await a.host.flusher.save_soon(a.host.sessions["ann"], 5)
    waits = a.put("ann", "wait", 2)
    await eventually(lambda: a.host.sessions["ann"].line.busy)
    moving = asyncio.create_task(a.move(b, "ann"))
    await eventually(lambda: len(a.host.sessions["ann"].line) == 1)
    parked = [a.put("ann", "up", n, oldest=2) for n in (3, 4)]
    await eventually(lambda: len(a.host.sessions["ann"].line) == 3)

    Slow.gate.set()

    assert (await waits).code is Code.OK
    [[_, outcome, _, _, epoch]] = await moving
    assert outcome == "moved"
    for answer in [await reply for reply in parked]:
        said = msgspec.msgpack.decode(answer.payload)
        assert (answer.code, said["serverId"], said["life"], answer.epoch) == (Code.MOVED, *b.owner, epoch)
    assert await b.result("ann", sequence=3) == 3


async def test_a_user_in_a_long_message_is_tried_later(town: Town) -> None:
    a, b = await two(town)
    await town.bind("ann", a)
    waits = a.put("ann", "wait", 1)
    await eventually(lambda: "ann" in a.host.sessions and a.host.sessions["ann"].is_open)

    assert await a.outcome(b, "ann", quiesceMs=50) == "later"

    Slow.gate.set()
    assert (await waits).code is Code.OK
    assert await a.result("ann", sequence=2) == 2
    assert (a.users, await owner_of(town, "ann")) == (["ann"], "501")


async def test_login_context_session_and_push_number_travel(town: Town) -> None:
    a, b = await two(town)
    await town.bind("ann", a)
    await a.login("ann", "s1", nickname="Ann")
    a.host.sessions["ann"].entity.push("hello")

    assert await a.outcome(b, "ann") == "moved"

    session = b.host.sessions["ann"]
    assert (session.client, session.pushes, session.context["nickname"]) == ("s1", 1, "Ann")
    await eventually(lambda: len(Slow.told) == 3)
    assert Slow.told == [
        ("501", "in new Ann"),
        ("501", "out moved"),
        ("502", "in moved Ann"),
    ] or Slow.told == [
        ("501", "in new Ann"),
        ("502", "in moved Ann"),
        ("501", "out moved"),
    ]
    refused = await b.put("ann", "up", 1, session="s0")
    assert refused.code is Code.NOT_OWNER
    await b.login("ann", "s1", nickname="Ann")
    assert len(Slow.told) == 3, "one login"


async def test_who_is_offline_is_moved_without_hooks(town: Town) -> None:
    a, b = await two(town)
    await town.bind("ann", a)
    await a.login("ann", "s1")
    await a.result("ann", session="s1")
    await a.logout("ann", "s1")
    told = list(Slow.told)

    assert await a.outcome(b, "ann") == "moved"

    assert Slow.told == told
    assert b.host.sessions["ann"].client == ""
    await b.login("ann", "s2")
    assert Slow.told[-1] == ("502", "in return")


async def test_timers_and_autosaves_of_the_source_end_with_the_move(town: Town) -> None:
    a, b = await two(town)
    await town.bind("ann", a)
    await a.result("ann")
    entity = a.host.sessions["ann"].entity
    rung: list[int] = []
    entity.every(0.005, lambda: rung.append(1))
    await eventually(lambda: len(rung) > 1)

    assert await a.outcome(b, "ann") == "moved"
    known, written = len(rung), a.host.flusher.counts["saved"]
    entity.changed()
    await b.result("ann", sequence=2)
    await asyncio.sleep(0.03)

    assert (len(rung), a.host.flusher.counts["saved"]) == (known, written)
    assert a.host.flusher.counts["fenced"] == 0


async def test_who_is_bound_here_and_not_in_memory_is_released(town: Town) -> None:
    a, b = await two(town)
    await town.bind("ann", a)

    assert await a.outcome(b, "ann") == "released"
    assert await a.outcome(b, "ann") == "gone"
    assert await a.outcome(b, "nobody") == "gone"
    assert await owner_of_or_none(town, "ann") is None


async def owner_of_or_none(town: Town, user: str) -> Any:
    record = await town.bindings.read(TYPE, user)
    return record.owner if record is not None else None


async def test_several_users_move_at_once_and_back(town: Town) -> None:
    a, b = await two(town)
    users = [f"u{n:02}" for n in range(30)]
    for user in users:
        await town.bind(user, a)
        await a.result(user)

    there = await a.move(b, *users)
    assert {report[1] for report in there} == {"moved"}
    back = await b.move(a, *users)
    assert {report[1] for report in back} == {"moved"}

    assert (a.users, b.users) == (users, [])
    assert [await a.result(user, sequence=2) for user in users] == [2] * 30
    assert a.host.mover.counts == {"moved": 30}
    assert a.host.mover.phases["total"].count == 30


class Wordy(Counter):
    async def handle(self, message: Message) -> object:
        return "x" * LARGEST


async def test_g8_the_target_knows_a_reply_that_is_too_large_to_travel(town: Town) -> None:
    """A gate that has it from the source, and hears of the move first, delivers it by that."""
    a, b = await two(town, Wordy)
    await town.bind("ann", a)
    first = await a.ask("ann", "up", 1)
    assert await a.outcome(b, "ann") == "moved"

    again = await b.ask("ann", "up", 1)

    assert again.code is Code.REFUSED
    said = msgspec.msgpack.decode(again.payload)
    assert said["executed"]
    assert said["digest"] == digest_of(first.code, first.payload)
