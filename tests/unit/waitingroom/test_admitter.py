"""The loop that lets people in, on a room that answers as the test says."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from roost.core.errors import StoreUnavailable
from roost.core.lease import Tenure
from roost.waitingroom.admitter import MAX_TICKS_IN_A_ROW, Admitter
from roost.waitingroom.fleet import Fleet
from roost.waitingroom.rules import Policy
from roost.waitingroom.scripts import Deposed, NewsLost, Ticked
from roost.waitingroom.service import WaitingRoom

TENURE = Tenure("m", epoch=3, asked_at=0.0, ttl_ms=10_000)


def ticked(issued: int = 0, more: int = 0) -> Ticked:
    return Ticked(issued=issued, expired=0, gone=0, waiting=9, room=0, more=more)


class WrittenFleet:
    """Its servers are in the ledger, and stay as they are."""

    news = "3:1"

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self.writes = 0
        self.forgotten = 0
        self.is_deposed = False

    def begin(self) -> None:
        self.writes = 0

    async def follow(self) -> None:
        await asyncio.Event().wait()

    async def write(self, _tenure: Tenure) -> bool:
        self.changed.clear()
        self.writes += 1
        return not self.is_deposed

    def forget_written(self) -> None:
        self.forgotten += 1


class Room:
    """Answers in turn; then another leader has ticked."""

    def __init__(self, *answers: Ticked | NewsLost | Exception) -> None:
        self.world = "main"
        self.policy = Policy(tick_ms=1, batch=100)
        self.asked: list[dict[str, Any]] = []
        self._answers = list(answers)
        self.scripts = SimpleNamespace(admit=self._admit)

    async def _admit(self, **given: Any) -> Ticked | NewsLost | Deposed:
        self.asked.append(given)
        answer = self._answers.pop(0) if self._answers else Deposed()
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def batches(self) -> list[int]:
        return [len(given["tids"]) for given in self.asked]


async def lead(room: Room, fleet: WrittenFleet | None = None) -> Admitter:
    """Until it ends by itself."""
    admitter = Admitter(cast(WaitingRoom, room), cast(Fleet, fleet or WrittenFleet()))
    async with asyncio.timeout(10):
        await admitter.run(TENURE)
    return admitter


async def test_another_leader_ends_it() -> None:
    room = Room(ticked(5), ticked(0))
    admitter = await lead(room)
    assert room.batches == [100, 100, 100]
    assert {given["epoch"] for given in room.asked} == {"3"}
    assert (admitter.ticks, admitter.tenures) == (3, 1)


async def test_while_the_absent_hide_others_it_ticks_again_at_once_within_one_batch() -> None:
    room = Room(ticked(30, more=1), ticked(0, more=1), ticked(20), ticked())
    await lead(room)
    assert room.batches == [100, 70, 70, 100, 100]


async def test_a_spent_batch_ends_the_round_also_if_there_are_more() -> None:
    room = Room(ticked(60, more=1), ticked(40, more=1), ticked())
    await lead(room)
    assert room.batches == [100, 40, 100, 100]


async def test_a_round_is_bounded() -> None:
    room = Room(ticked(1, more=1), *[ticked(0, more=1)] * MAX_TICKS_IN_A_ROW)
    await lead(room)
    in_one_round = [100, *[99] * (MAX_TICKS_IN_A_ROW - 1)]
    assert room.batches[: MAX_TICKS_IN_A_ROW + 1] == [*in_one_round, 100]


@pytest.mark.parametrize("fault", [StoreUnavailable(), ZeroDivisionError()])
async def test_a_failed_tick_does_not_end_it(fault: Exception) -> None:
    room = Room(fault, ticked(1))
    await lead(room)
    assert len(room.asked) == 3


async def test_no_ticket_id_is_used_twice() -> None:
    room = Room(ticked(), ticked(3, more=1), ticked())
    await lead(room)
    tids = [tid for given in room.asked for tid in given["tids"]]
    assert len(set(tids)) == len(tids)


async def test_a_ledger_that_lost_the_news_gets_all_of_it_before_the_next_tick() -> None:
    room, fleet = Room(NewsLost(), ticked()), WrittenFleet()
    await lead(room, fleet)
    assert (fleet.forgotten, len(room.asked)) == (1, 3)


async def test_a_ledger_that_loses_the_news_again_and_again_is_written_once_in_a_tick() -> None:
    room = Room(*[NewsLost()] * 50)
    room.policy = Policy(tick_ms=60_000, batch=100)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await lead(room)
    assert len(room.asked) == 1
