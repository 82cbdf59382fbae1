"""The clock that moves when it is told to."""

from __future__ import annotations

import asyncio

from roost.core.clock import Clock
from roost.testing import FakeClock


async def test_time_stands_still_until_it_is_moved() -> None:
    clock = FakeClock(start=5.0)
    assert clock.monotonic() == 5.0

    await clock.advance(2.5)

    assert clock.monotonic() == 7.5


async def test_sleepers_wake_in_the_order_of_their_times_and_at_their_times() -> None:
    clock = FakeClock(start=0.0)
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.monotonic()))

    async with asyncio.TaskGroup() as group:
        for name, seconds in (("late", 3.0), ("early", 1.0), ("also early", 1.0)):
            group.create_task(sleeper(name, seconds))
        await asyncio.sleep(0)
        await clock.advance(10.0)

    assert woken == [("early", 1.0), ("also early", 1.0), ("late", 3.0)]
    assert clock.monotonic() == 10.0


async def test_a_sleeper_that_sleeps_again_is_woken_within_one_advance() -> None:
    clock = FakeClock(start=0.0)
    ticks: list[float] = []

    async def ticker() -> None:
        while True:
            await clock.sleep(1.0)
            ticks.append(clock.monotonic())

    task = asyncio.create_task(ticker())
    await asyncio.sleep(0)
    await clock.advance(3.5)
    task.cancel()

    assert ticks == [1.0, 2.0, 3.0]


async def test_a_sleeper_is_not_woken_before_its_time() -> None:
    clock = FakeClock()
    task = asyncio.create_task(clock.sleep(1.0))
    await asyncio.sleep(0)

    await clock.advance(0.999)
    assert not task.done()
    await clock.advance(0.001)
    assert task.done()


async def test_a_cancelled_sleeper_does_not_disturb_the_others() -> None:
    clock = FakeClock()
    gone = asyncio.create_task(clock.sleep(1.0))
    stays = asyncio.create_task(clock.sleep(2.0))
    await asyncio.sleep(0)
    gone.cancel()

    await clock.advance(2.0)

    assert gone.cancelled()
    assert stays.done()


async def test_time_never_goes_back_also_not_for_a_sleep_of_less_than_nothing() -> None:
    clock = FakeClock(start=10.0)
    task = asyncio.create_task(clock.sleep(-5.0))
    await asyncio.sleep(0)
    seen: list[float] = []

    async def watch() -> None:
        await task
        seen.append(clock.monotonic())

    watcher = asyncio.create_task(watch())
    await asyncio.sleep(0)
    await clock.advance(0.0)
    await watcher

    assert seen == [10.0]


def test_it_is_a_clock() -> None:
    clock: Clock = FakeClock()
    assert clock.monotonic() == 1000.0
