"""Calls that come in masses: a taker gets what one read brings, and answers each by its number."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from roost.core.errors import InvalidInput, NotSent
from roost.testing.waiting import eventually
from roost.wire.client import Peer
from roost.wire.codes import Code
from roost.wire.frame import Frame
from roost.wire.limits import Limits
from roost.wire.server import Answer, Connection
from tests.wire.serving import BUDGET_MS, ECHO, Town, talking

FIRST, SECOND = 11, 12


class Taking:
    """A taker that remembers what it got and answers when it is told to."""

    def __init__(self, town: Town, then: Callable[[Connection, list[Frame]], None] | None = None) -> None:
        self.runs: list[list[Frame]] = []
        self.peer: Connection | None = None
        self._then = then
        town.server.register_taker(1, (FIRST, SECOND), self.take)

    def take(self, peer: Connection, frames: list[Frame]) -> None:
        self.peer = peer
        self.runs.append(frames)
        if self._then is not None:
            self._then(peer, frames)

    @property
    def frames(self) -> list[Frame]:
        return [frame for run in self.runs for frame in run]

    def deliver_all(self) -> None:
        assert self.peer is not None
        for frame in self.frames:
            self.peer.deliver(frame.request, frame.payload)


def deliver(peer: Connection, frames: list[Frame]) -> None:
    for frame in frames:
        peer.deliver(frame.request, frame.payload)


async def call_all(peer: Peer, methods: list[int], budget_ms: int = BUDGET_MS) -> list[Answer]:
    calls = (peer.call(1, method, str(n).encode(), budget_ms=budget_ms) for n, method in enumerate(methods))
    return list(await asyncio.gather(*calls))


async def test_calls_of_one_read_come_together_and_in_their_order() -> None:
    async with talking() as (one, peer):
        taking = Taking(one, deliver)
        answers = await call_all(peer, [FIRST, SECOND, FIRST, ECHO, SECOND])

    assert [answer.payload for answer in answers] == [b"0", b"1", b"2", b"3", b"4"]
    assert [[frame.payload for frame in run] for run in taking.runs] == [[b"0", b"1", b"2"], [b"4"]]
    assert one.server.in_flight == 0


async def test_those_above_the_bound_are_refused_and_the_others_taken() -> None:
    limits = Limits(max_in_flight=8, max_in_flight_total=3)
    async with talking(limits) as (one, peer):
        taking = Taking(one)
        calls = [peer.call(1, FIRST, b"", budget_ms=BUDGET_MS) for _ in range(5)]
        asked = asyncio.gather(*calls, return_exceptions=True)
        await eventually(lambda: len(taking.frames) == 3, "three are taken")
        assert one.server.in_flight == 3
        await eventually(lambda: one.server.counts["overloaded"] == 2, "two are refused")
        taking.deliver_all()
        answers = await asked

    assert answers[:3] == [Answer()] * 3
    assert all(isinstance(refused, NotSent) for refused in answers[3:])
    assert one.server.in_flight == 0


async def test_a_taker_that_fails_leaves_nobody_without_an_answer() -> None:
    def fail(peer: Connection, frames: list[Frame]) -> None:
        peer.deliver(frames[0].request, b"done")
        raise ValueError("nobody else's business")

    async with talking() as (one, peer):
        Taking(one, fail)
        answers = await call_all(peer, [FIRST, FIRST])

    assert [answer.code for answer in answers] == [Code.OK, Code.FAILED]
    assert "business" not in answers[1].message


async def test_a_call_whose_budget_is_over_is_answered_so_and_its_result_dropped() -> None:
    async with talking() as (one, peer):
        taking = Taking(one)
        line = asyncio.create_task(peer.call(1, FIRST, b"", budget_ms=200))
        await eventually(lambda: bool(taking.frames), "it is taken")
        await eventually(lambda: one.server.counts["late"] == 1, "it is late")
        taking.deliver_all()
        assert one.server.in_flight == 0
        await asyncio.gather(line, return_exceptions=True)


async def test_what_a_lost_client_had_under_way_counts_no_longer() -> None:
    async with talking() as (one, peer):
        taking = Taking(one)
        asked = asyncio.create_task(call_all(peer, [FIRST] * 4))
        await eventually(lambda: len(taking.frames) == 4, "they are taken")
        assert taking.peer is not None
        taking.peer.cut("the test")
        await asyncio.gather(asked, return_exceptions=True)
        await eventually(lambda: one.server.in_flight == 0, "nothing is at work")
        taking.deliver_all()
        assert one.server.in_flight == 0


async def test_a_method_has_one_handler_or_taker() -> None:
    async with talking() as (one, _):
        Taking(one)
        with pytest.raises(InvalidInput):
            one.server.register(1, FIRST, lambda call: Answer())
        with pytest.raises(InvalidInput):
            one.server.register_taker(1, [ECHO], deliver)
