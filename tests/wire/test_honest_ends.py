"""Whatever is cut and whenever: every call ends once, and `NotSent` means that it was not executed."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from roost.core.errors import NotSent, OutcomeUnknown
from roost.testing.waiting import eventually
from roost.wire.client import Done, Peer
from roost.wire.codes import Code
from roost.wire.connection import Call
from roost.wire.limits import Limits
from roost.wire.server import Answer, WireServer
from tests.wire.serving import SECRET, Town, listening, talking

CALLS = 3000
NUMBERED = 80


class Story:
    """Numbered calls, what the server executed, and how each call ended."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.executed: Counter[int] = Counter()
        self.ends: dict[int, list[Answer | Exception]] = {}

    async def handle(self, call: Call) -> Answer:
        self.executed[int(call.payload)] += 1
        for _ in range(self.chance.choice((0, 0, 1, 3))):
            await asyncio.sleep(0)
        return Answer(call.payload)

    def note(self, number: int, end: Answer | Exception) -> None:
        self.ends.setdefault(number, []).append(end)

    def assert_honest(self) -> None:
        assert {number: len(ends) for number, ends in self.ends.items() if len(ends) != 1} == {}
        assert [number for number, times in self.executed.items() if times > 1] == []
        for number, (end,) in self.ends.items():
            if isinstance(end, Answer) and end.code is Code.FAILED:  # ended in the middle by the server's end
                assert self.executed[number] == 1
            elif isinstance(end, Answer):
                assert int(end.payload) == number
                assert self.executed[number] == 1
            elif isinstance(end, NotSent):
                assert self.executed[number] == 0, end
            else:
                assert isinstance(end, OutcomeUnknown)


@pytest.mark.parametrize("seed", range(4))
async def test_every_call_ends_once_and_honestly(seed: int) -> None:
    story = Story(seed)
    limits = Limits(max_in_flight=40, max_waiting=200, wait_s=0.2, backoff_s=0.001, backoff_cap_s=0.01)
    async with talking(limits) as (one, peer):
        one.server.register(1, NUMBERED, story.handle)
        for number in range(CALLS):
            budget_ms = story.chance.choice((0, 5, 50, 1000))
            peer.send(1, NUMBERED, b"%d" % number, budget_ms=budget_ms, done=noted(story, number))
            await disturb(story.chance, one, peer)
        await eventually(lambda: len(story.ends) == CALLS, "all the ends")
    story.assert_honest()
    kinds = Counter(type(ends[0]).__name__ for ends in story.ends.values())
    assert kinds["Answer"] > 100
    assert kinds["OutcomeUnknown"] > 0
    assert kinds["NotSent"] > 0


async def disturb(chance: random.Random, one: Town, peer: Peer) -> None:
    what = chance.random()
    if what < 0.1:
        await asyncio.sleep(0)
    elif what < 0.11:
        peer.cut("by the test")
    elif what < 0.12:
        for connection in list(one.server.connections):
            connection.cut("by the test")
    elif what < 0.15:
        for _ in range(20):
            await asyncio.sleep(0)


async def test_calls_to_a_server_that_is_replaced_all_end_and_new_ones_get_through() -> None:
    story = Story(9)
    next_life = WireServer(secret=SECRET, role="entity")
    next_life.register(1, NUMBERED, story.handle)
    async with talking(Limits(wait_s=5.0, backoff_s=0.001)) as (one, peer):
        one.server.register(1, NUMBERED, story.handle)
        for number in range(100):
            peer.send(1, NUMBERED, b"%d" % number, budget_ms=0, done=noted(story, number))
        await eventually(lambda: len(story.executed) >= 10, "some at work")
        await one.server.close(grace_s=0.0)
        for number in range(100, 120):
            peer.send(1, NUMBERED, b"%d" % number, budget_ms=0, done=noted(story, number))
        await next_life.start(listening(one.port))
        await eventually(lambda: len(story.ends) == 120, "all the ends")
        await next_life.close()
    story.assert_honest()
    assert all(story.ends[number] == [Answer(b"%d" % number)] for number in range(100, 120))


def noted(story: Story, number: int) -> Done:
    return lambda end: story.note(number, end)
