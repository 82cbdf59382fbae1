"""A handler is stepped by hand until it waits, then a task goes on as if it had run it from the start."""

from __future__ import annotations

import asyncio

import pytest

from roost.wire.stepping import Blocked, step


async def test_what_does_not_wait_is_done_at_once() -> None:
    async def quick() -> int:
        return 7

    assert step(quick()) == 7


async def test_what_it_raises_passes_through() -> None:
    async def bad() -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        step(bad())


async def test_what_waits_goes_on_in_a_task() -> None:
    gate: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    told = []

    async def slow() -> int:
        first = await gate
        told.append(first)
        await asyncio.sleep(0)
        return first + 1

    blocked = step(slow())
    assert isinstance(blocked, Blocked)
    task = asyncio.ensure_future(blocked.rest)
    gate.set_result(1)
    assert await task == 2
    assert told == [1]


async def test_what_is_there_already_when_the_task_begins() -> None:
    gate: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def slow() -> int:
        return await gate

    blocked = step(slow())
    gate.set_result(3)
    assert isinstance(blocked, Blocked)
    assert await asyncio.ensure_future(blocked.rest) == 3


@pytest.mark.parametrize("answer", ["returns", "waits", "raises"])
async def test_a_cancellation_reaches_it_and_it_may_answer_as_it_likes(answer: str) -> None:
    seen = []

    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            if answer == "raises":
                raise
            if answer == "waits":
                await asyncio.sleep(0)
        return "after all"

    blocked = step(stubborn())
    assert isinstance(blocked, Blocked)
    task = asyncio.ensure_future(blocked.rest)
    await asyncio.sleep(0)
    task.cancel()
    if answer == "raises":
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        assert await task == "after all"
    assert seen == ["cancelled"]


async def test_a_failure_of_what_it_waits_for_is_raised_where_it_waits() -> None:
    gate: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def careful() -> str:
        try:
            await gate
        except OSError as error:
            return str(error)
        return ""

    blocked = step(careful())
    assert isinstance(blocked, Blocked)
    task = asyncio.ensure_future(blocked.rest)
    gate.set_exception(OSError("away"))
    assert await task == "away"
