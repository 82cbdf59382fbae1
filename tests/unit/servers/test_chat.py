from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from roost.servers import chat
from roost.servers.chat import FLOOD, IDLE, QUEUE_LIMIT, SLOW, STOPPING, Member, Pace, Room
from roost.testing import FakeClock, eventually


class Line:
    """A connection that writes at once, until it is blocked or broken."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.closed: tuple[int, str] | None = None
        self.broken = False
        self.open = asyncio.Event()
        self.open.set()

    async def send(self, text: bytes) -> None:
        await self.open.wait()
        if self.broken:
            raise ConnectionResetError("gone")
        self.sent.append(text)

    async def close(self, code: int, reason: str) -> None:
        self.closed = (code, reason)

    def heard(self) -> list[Any]:
        return [json.loads(text) for text in self.sent]


class Stage:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.room = Room(120, 30, self.clock.monotonic)

    def join(self, name: str) -> tuple[Member, Line]:
        line = Line()
        return self.room.join(name, name.upper(), line), line


@pytest.fixture
async def stage() -> Stage:
    return Stage()


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_everybody_hears_what_one_says_the_speaker_too(stage: Stage) -> None:
    (ann, of_ann), (_, of_bob) = stage.join("ann"), stage.join("bob")
    stage.room.say(ann, "hello")
    await settled()
    assert of_ann.heard() == of_bob.heard()
    (heard,) = of_bob.heard()
    assert heard.keys() == {"timestamp", "nickname", "message"}
    assert (heard["nickname"], heard["message"]) == ("ANN", "hello")
    assert heard["timestamp"].endswith("Z")


async def test_a_message_is_encoded_once_for_all(stage: Stage) -> None:
    (ann, of_ann), (_, of_bob) = stage.join("ann"), stage.join("bob")
    stage.room.say(ann, "hello")
    await settled()
    assert of_ann.sent[0] is of_bob.sent[0]


async def test_an_empty_message_is_a_sign_of_life_and_nothing_else(stage: Stage) -> None:
    ann, of_ann = stage.join("ann")
    await stage.clock.advance(119)
    stage.room.say(ann, "")
    await stage.clock.advance(2)
    stage.room.look()
    await settled()
    assert of_ann.sent == []
    assert ann.ending is None


async def test_whoever_is_silent_is_warned_once_and_then_closed(stage: Stage) -> None:
    ann, of_ann = stage.join("ann")
    for _ in range(3):
        await stage.clock.advance(31)
        stage.room.look()
        stage.room.look()
    await settled()
    assert [message["warning"] for message in of_ann.heard()] == ["idle"]
    assert of_ann.closed is None
    await stage.clock.advance(28)
    stage.room.look()
    await settled()
    assert ann.ending is IDLE
    assert of_ann.closed == (1000, "idle")
    assert stage.room.counts.idle == 1


async def test_a_word_after_the_warning_begins_the_time_anew(stage: Stage) -> None:
    ann, of_ann = stage.join("ann")
    await stage.clock.advance(100)
    stage.room.look()
    stage.room.say(ann, "here")
    await stage.clock.advance(100)
    stage.room.look()
    await settled()
    assert ann.ending is None
    assert [message.get("warning") for message in of_ann.heard()] == ["idle", None, "idle"]


async def test_a_warning_time_longer_than_the_idle_time_warns_half_way() -> None:
    clock = FakeClock()
    room = Room(2, 30, clock.monotonic)
    line = Line()
    room.join("ann", "ann", line)
    room.look()
    await clock.advance(1)
    room.look()
    await settled()
    assert [message["warning"] for message in line.heard()] == ["idle"]


async def test_a_slow_reader_is_cut_and_nobody_waits_for_them(stage: Stage) -> None:
    (slow, of_slow), (_, of_bob) = stage.join("slow"), stage.join("bob")
    of_slow.open.clear()
    for _ in range(QUEUE_LIMIT + 2):
        stage.room.broadcast("x", "y")
        await settled()
    assert slow.ending is SLOW
    assert of_slow.closed == (1013, "too slow to read")
    assert stage.room.counts.slow == 1
    assert len(of_bob.sent) == QUEUE_LIMIT + 2


async def test_a_busy_moment_cuts_nobody_who_reads(stage: Stage) -> None:
    ann, of_ann = stage.join("ann")
    for _ in range(4 * QUEUE_LIMIT):
        stage.room.broadcast("x", "y")
    await settled()
    assert ann.ending is None
    assert len(of_ann.sent) == 4 * QUEUE_LIMIT


async def test_a_flood_is_warned_of_then_ended(stage: Stage) -> None:
    (ann, of_ann), (_, of_bob) = stage.join("ann"), stage.join("bob")
    for _ in range(chat.BURST + chat.STRIKES):
        stage.room.say(ann, "x")
    await settled()
    assert len(of_bob.sent) == chat.BURST
    assert of_ann.heard()[-1]["warning"] == "rate"
    assert ann.ending is None
    stage.room.say(ann, "x")
    stage.room.say(ann, "x")
    await settled()
    assert ann.ending is FLOOD
    assert of_ann.closed == (1008, "too many messages")
    assert len(of_bob.sent) == chat.BURST


def test_the_pace_forgives_with_time() -> None:
    pace = Pace(per_second=8, burst=2, strikes=3)
    assert [pace.judge(1.0) for _ in range(4)] == ["take", "take", "warn", "drop"]
    assert pace.judge(1.125) == "take"
    assert pace.judge(1.125) == "drop"
    assert pace.judge(1.125) == "end"
    assert [pace.judge(2.0) for _ in range(3)] == ["take", "take", "warn"]


async def test_a_broken_line_is_counted_once_and_disturbs_nobody(stage: Stage) -> None:
    (_, of_ann), (_, of_bob) = stage.join("ann"), stage.join("bob")
    of_ann.broken = True
    for _ in range(3):
        stage.room.broadcast("x", "y")
        await settled()
    assert stage.room.counts.failed_sends == 1
    assert len(of_bob.sent) == 3


async def test_close_sends_everybody_away_and_waits_until_they_are_gone(stage: Stage) -> None:
    members = [stage.join(name) for name in ("ann", "bob")]
    closing = asyncio.create_task(stage.room.close(5.0))
    await settled()
    assert [member.ending for member, _ in members] == [STOPPING, STOPPING]
    assert not closing.done()
    for member, _ in members:
        await stage.room.leave(member)
    await eventually(closing.done)
    assert all(line.closed == (1001, "the server stops") for _, line in members)


async def test_the_first_reason_to_close_counts(stage: Stage) -> None:
    ann, of_ann = stage.join("ann")
    ann.end(IDLE)
    ann.end(STOPPING)
    await stage.room.leave(ann)
    assert ann.ending is IDLE
    assert of_ann.closed == (1000, "idle")
