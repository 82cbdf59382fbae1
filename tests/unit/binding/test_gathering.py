"""What is asked in one turn of the loop is one call; nobody waits for a later turn, and each ends alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from roost.binding.gathering import MOST, Gathered
from roost.core.errors import StoreRefused, StoreUnavailable


class Calls:
    """A store whose answers are given by hand."""

    def __init__(self) -> None:
        self.made: list[tuple[str, list[int], asyncio.Future[list[int]]]] = []
        self.gathered: Gathered[str, int, int] = Gathered(self._send, lambda reply: reply)

    def _send(self, common: str, asked: Sequence[int]) -> asyncio.Future[list[int]]:
        reply: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()
        self.made.append((common, list(asked), reply))
        return reply


async def test_those_of_one_turn_are_one_call_and_those_of_the_next_another() -> None:
    calls = Calls()
    first = [calls.gathered.ask("a", 1), calls.gathered.ask("b", 2), calls.gathered.ask("a", 3)]
    assert not calls.made, "the turn is not over"
    await asyncio.sleep(0)
    assert [(common, asked) for common, asked, _ in calls.made] == [("a", [1, 3]), ("b", [2])]

    late = calls.gathered.ask("a", 4)
    await asyncio.sleep(0)
    assert [(common, asked) for common, asked, _ in calls.made[2:]] == [("a", [4])], "it waits for nobody"
    for _, asked, reply in calls.made:
        reply.set_result([10 * one for one in asked])
    assert await asyncio.gather(*first, late) == [10, 20, 30, 40]


async def test_a_call_is_bounded() -> None:
    calls = Calls()
    for one in range(MOST + 1):
        calls.gathered.ask("a", one)
    await asyncio.sleep(0)
    assert [len(asked) for _, asked, _ in calls.made] == [MOST, 1]


async def test_one_that_gave_up_takes_nothing_from_the_others() -> None:
    calls = Calls()
    gone, here = calls.gathered.ask("a", 1), calls.gathered.ask("a", 2)
    await asyncio.sleep(0)
    gone.cancel()
    calls.made[0][2].set_result([10, 20])
    assert await here == 20


async def test_a_call_without_an_answer_is_answered_to_nobody() -> None:
    calls = Calls()
    asked = [calls.gathered.ask("a", 1), calls.gathered.ask("a", 2)]
    await asyncio.sleep(0)
    calls.made[0][2].set_exception(StoreUnavailable("away"))
    for one in asked:
        with pytest.raises(StoreUnavailable):
            await one
    assert len(calls.made) == 1, "whoever asked decides what to do then"


async def test_what_the_store_refuses_is_asked_again_for_each_alone() -> None:
    calls = Calls()
    good, bad = calls.gathered.ask("a", 1), calls.gathered.ask("a", 2)
    await asyncio.sleep(0)
    calls.made[0][2].set_exception(StoreRefused("WRONGTYPE"))
    await asyncio.sleep(0)
    assert [asked for _, asked, _ in calls.made[1:]] == [[1], [2]]
    calls.made[1][2].set_result([10])
    calls.made[2][2].set_exception(StoreRefused("WRONGTYPE"))
    assert await good == 10
    with pytest.raises(StoreRefused):
        await bad


async def test_a_reply_that_cannot_be_read_ends_everybody() -> None:
    calls = Calls()
    asked = [calls.gathered.ask("a", 1), calls.gathered.ask("a", 2)]
    await asyncio.sleep(0)
    calls.made[0][2].set_result([10])
    assert await asked[0] == 10
    with pytest.raises(ValueError, match="shorter"):
        await asked[1]
