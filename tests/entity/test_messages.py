"""Messages of a user: in order, once, answered with the epoch and what the answer is worth."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

import roost
from roost.core.errors import NotSent
from roost.sdk.entity import Entity, Message
from roost.testing import eventually
from roost.wire.codes import Code
from tests.entity.town import TYPE, Counter, Town


async def test_a_message_is_answered_with_the_epoch_and_its_durability(town: Town) -> None:
    house = await town.open()
    epoch = await town.bind("ann", house)

    answer = await house.ask("ann", "up", epoch=epoch)

    assert (answer.code, answer.epoch) == (Code.OK, epoch)
    assert msgspec.msgpack.decode(answer.payload) == [1, "write-back:1000"]


async def test_a_thousand_pipelined_messages_run_in_order(town: Town) -> None:
    house = await town.open()
    await town.bind("ann", house)

    answers = await asyncio.gather(*(house.put("ann", "up", n) for n in range(1, 1001)))

    assert [msgspec.msgpack.decode(answer.payload)[0] for answer in answers] == list(range(1, 1001))


async def test_a_message_that_comes_twice_is_executed_once_and_answered_twice(town: Town) -> None:
    house = await town.open()
    await town.bind("ann", house)

    first, again = await house.ask("ann", "up", 1), await house.ask("ann", "up", 1)

    assert first == again
    assert await house.result("ann", "up", 2) == 2


async def test_a_reply_that_its_sender_has_is_forgotten(town: Town) -> None:
    house = await town.open()
    await town.bind("ann", house)
    await house.result("ann", "up", 1)
    await house.result("ann", "up", 2, oldest=2)

    answer = await house.ask("ann", "up", 1)

    assert answer.code is Code.REFUSED
    assert "no longer kept" in answer.message


async def test_one_that_comes_too_early_is_told_which_is_missing(town: Town) -> None:
    house = await town.open()
    await town.bind("ann", house)

    answer = await house.ask("ann", "up", 3)

    assert answer.code is Code.OUT_OF_ORDER
    assert msgspec.msgpack.decode(answer.payload)["expected"] == 1
    assert await house.result("ann", "up", 1) == 1


async def test_a_raising_handler_is_answered_keeps_its_user_and_its_sequence(town: Town) -> None:
    house = await town.open()
    await town.bind("ann", house)

    answer, again = await house.ask("ann", "raise", 1), await house.ask("ann", "raise", 1)

    assert answer.code is again.code is Code.FAILED
    assert "ValueError" not in answer.message
    assert await house.result("ann", "up", 2) == 2


class Refusing(Counter):
    async def handle(self, message: Message) -> object:
        raise roost.Mistake("too few swords")


async def test_a_mistake_is_answered_with_its_text(town: Town, caplog: pytest.LogCaptureFixture) -> None:
    house = await town.open(entity=Refusing)
    await town.bind("ann", house)

    answer = await house.ask("ann", "take")

    assert (answer.code, answer.message) == (Code.FAILED, "too few swords")
    assert not caplog.records


class Slow(Counter):
    """Waits for ever on `hang`, and on `stubborn` ignores its cancellation too; uses a timeout of its own."""

    async def handle(self, message: Message) -> object:
        if message.body == "hang":
            await asyncio.Event().wait()
        if message.body == "stubborn":
            for _ in range(100):
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    continue
        if message.body == "timeout":
            try:
                async with asyncio.timeout(0.001):
                    await asyncio.Event().wait()
            except TimeoutError:
                return "timed out by itself"
        return await super().handle(message)


async def test_one_slow_user_delays_nobody(town: Town) -> None:
    house = await town.open(entity=Slow)
    for user in ("ann", "bob"):
        await town.bind(user, house)

    hangs = house.put("ann", "hang", 1)
    await eventually(lambda: "ann" in house.host.sessions)

    assert [await house.result("bob") for _ in range(50)] == list(range(1, 51))
    assert not hangs.done()


async def test_a_handler_that_never_ends_is_ended_and_the_next_message_runs(town: Town) -> None:
    house = await town.open(entity=Slow, handle_ms=30)
    await town.bind("ann", house)

    answers = await asyncio.gather(house.put("ann", "hang", 1), house.put("ann", "up", 2))

    assert [answer.code for answer in answers] == [Code.FAILED, Code.OK]
    assert "too long" in answers[0].message


async def test_a_handler_that_ignores_its_cancellation_is_given_up(town: Town) -> None:
    house = await town.open(entity=Slow, handle_ms=30)
    await town.bind("ann", house)

    answers = await asyncio.gather(house.put("ann", "stubborn", 1), house.put("ann", "up", 2))

    assert [answer.code for answer in answers] == [Code.FAILED, Code.OK]


async def test_a_handler_may_use_timeouts_of_its_own(town: Town) -> None:
    house = await town.open(entity=Slow)
    await town.bind("ann", house)

    assert await house.result("ann", "timeout") == "timed out by itself"


async def test_the_line_of_a_user_is_bounded(town: Town) -> None:
    house = await town.open(entity=Slow, queue=5)
    await town.bind("ann", house)
    hangs = house.put("ann", "hang", 1)
    await eventually(lambda: "ann" in house.host.sessions and not len(house.host.sessions["ann"].line))

    waiting = [house.put("ann", "up", n) for n in range(2, 7)]
    with pytest.raises(NotSent, match="OVERLOADED") as refused:
        await house.put("ann", "up", 7)

    assert refused.value.retry_after_s > 0
    assert not any(task.done() for task in (hangs, *waiting))


class Pushing(Entity):
    async def handle(self, message: Message) -> object:
        return [self.push("a"), self.push("b")]


async def test_pushes_reach_the_gate_in_order_with_the_epoch(town: Town) -> None:
    house = await town.open(entity=Pushing)
    epoch = await town.bind("ann", house)

    assert await house.result("ann") == [True, True]

    await eventually(lambda: len(house.pushed) == 2)
    assert [msgspec.msgpack.decode(frame.payload) for frame in house.pushed] == [
        [TYPE, "ann", 1, "a"],
        [TYPE, "ann", 2, "b"],
    ]
    assert {frame.epoch for frame in house.pushed} == {epoch}


async def test_bad_messages_are_refused_and_harm_nobody(town: Town) -> None:
    house = await town.open()
    await town.bind("ann", house)
    pack = msgspec.msgpack.encode

    refused = [
        await house.send(1, b"\xc1garbage", sequence=1),
        await house.send(1, pack(["only", "three", "parts"]), sequence=1),
        await house.send(1, pack((TYPE, "ann", "s", "up"))),
        await house.send(1, pack((TYPE, "{ann}", "s", "up")), sequence=1),
        await house.send(1, pack((TYPE, "", "s", "up")), sequence=1),
        await house.put("ann", "up", 1, oldest=2),
        await house.send(2, pack((TYPE, "ann", "s", "no map"))),
        await house.send(2, pack((TYPE, "ann", "", {}))),
        await house.send(3, b""),
    ]

    assert {answer.code for answer in refused} == {Code.BAD_REQUEST}
    assert (await house.put("ann", "up", 1, type_="other")).code is Code.NOT_OWNER
    assert await house.result("ann") == 1


async def test_an_epoch_that_nobody_can_have_granted_is_refused(town: Town) -> None:
    house = await town.open()
    epoch = await town.bind("ann", house)
    await house.result("ann")

    answer = await house.ask("ann", "up", epoch=2**62)

    assert answer.code is Code.BAD_REQUEST
    assert answer.epoch == epoch


class Unsayable(Entity):
    async def handle(self, message: Message) -> object:
        return object() if message.body == "object" else "x" * 2_000_000


async def test_a_result_that_cannot_be_sent_is_a_failure_of_the_handler(town: Town) -> None:
    house = await town.open(entity=Unsayable)
    await town.bind("ann", house)

    assert (await house.ask("ann", "object")).code is Code.FAILED
    answer = await house.ask("ann", "large")
    assert (answer.code, "too many" in answer.message) == (Code.FAILED, True)
