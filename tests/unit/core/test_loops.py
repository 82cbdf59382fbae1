"""Loops that come back whatever ends them."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Callable

import pytest

from roost.core.errors import StoreUnavailable
from roost.core.loops import END, FAILING_S, LAG_S, STALE_S, Loops, up_to_date
from roost.testing import FakeClock


@contextlib.asynccontextmanager
async def running(loops: Loops, name: str, step: Callable[[], object], **more: bool) -> AsyncIterator[None]:
    async def turn() -> object:
        return step()

    task = asyncio.create_task(loops.keep_running(name, turn, pause_s=1.0, **more))
    await asyncio.sleep(0)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_loop_that_was_stopped_does_not_fail_any_more() -> None:
    clock = FakeClock()
    loops = Loops(clock)

    def step() -> None:
        raise StoreUnavailable("away")

    async with running(loops, "balancer", step, essential=True):
        await clock.advance(FAILING_S + 5)
        assert "balancer has failed" in loops.fault()
    assert loops.fault() == ""
    assert loops.loop("balancer").failures > 1


@pytest.mark.parametrize("error", [ZeroDivisionError("1/0"), StoreUnavailable("away"), KeyError("x")])
async def test_a_loop_outlives_whatever_a_turn_raises_and_counts_it(error: Exception) -> None:
    clock = FakeClock()
    loops, turns = Loops(clock), 0

    def step() -> None:
        nonlocal turns
        turns += 1
        if turns <= 2:
            raise error

    async with running(loops, "sweep", step):
        await clock.advance(10.0)

    loop = loops.loop("sweep")
    assert turns > 5
    assert loop.failures == 2
    assert loop.failing_since is None
    assert loop.last_good_at is not None


async def test_a_failing_loop_is_tried_again_ever_later_up_to_two_seconds() -> None:
    clock = FakeClock()
    times: list[float] = []

    def step() -> None:
        times.append(clock.monotonic())
        raise ValueError

    async with running(Loops(clock), "x", step):
        await clock.advance(30.0)

    pauses = [after - before for before, after in itertools.pairwise(times)]
    assert pauses[0] <= 0.05
    assert 1.0 <= pauses[-1] <= 2.0


async def test_a_step_ends_its_loop_by_saying_so_and_by_nothing_else() -> None:
    async def step() -> object:
        return END

    await Loops().keep_running("x", step)


async def test_only_an_essential_loop_that_has_failed_for_a_while_is_a_fault() -> None:
    clock = FakeClock()
    loops = Loops(clock)

    def fail() -> None:
        raise ValueError("bad record")

    async with running(loops, "extra", fail), running(loops, "balancer", fail, essential=True):
        assert loops.fault() == ""
        await clock.advance(FAILING_S + 1)
        assert loops.fault() == f"balancer has failed for {FAILING_S + 1:.0f} s: ValueError: bad record"


async def test_a_long_turn_that_gets_somewhere_is_no_failing_one() -> None:
    clock = FakeClock()
    loops, calls = Loops(clock), 0
    loop = loops.loop("follow", essential=True)

    async def follow() -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ValueError
        loop.good()
        await clock.sleep(1000.0)

    task = asyncio.create_task(loop.keep_running(follow))
    await asyncio.sleep(0)
    await clock.advance(60.0)
    assert loops.fault() == ""
    assert loop.failing_since is None
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_the_same_fault_again_is_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()

    def fail() -> None:
        raise ValueError("the same")

    async with running(Loops(clock), "x", fail):
        await clock.advance(20.0)

    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == ["loop failed"]


async def test_a_cancellation_meant_for_something_else_does_not_end_the_loop() -> None:
    """What it waits for was cancelled by its owner: the loop itself was not, and goes on."""
    clock = FakeClock()
    loops, turns = Loops(clock), 0

    async def step() -> None:
        nonlocal turns
        turns += 1
        if turns == 1:
            other: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            other.cancel()
            await other

    task = asyncio.create_task(loops.keep_running("follow", step, pause_s=1.0))
    await asyncio.sleep(0)
    await clock.advance(5.0)
    assert turns > 1
    assert loops.loop("follow").failures == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_follower_that_has_not_been_up_to_date_for_long_is_a_fault_if_requests_need_it() -> None:
    clock = FakeClock()
    loops = Loops(clock)
    told = asyncio.Event()

    async def follow() -> None:
        up_to_date()
        told.set()
        await clock.sleep(1000.0)

    tasks = [
        asyncio.create_task(loops.keep_running("balancer", follow, essential=True)),
        asyncio.create_task(loops.keep_running("extra", follow)),
    ]
    await told.wait()
    await clock.advance(STALE_S)
    assert loops.fault() == ""
    await clock.advance(1.0)
    assert loops.fault() == f"balancer has not been up to date for {STALE_S + 1:.0f} s"
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert loops.fault() == "", "nobody waits for one that was stopped"


async def test_of_two_runs_of_one_name_the_one_that_is_behind_counts() -> None:
    clock = FakeClock()
    loops = Loops(clock)

    async def once() -> None:
        up_to_date()
        await clock.sleep(1000.0)

    async def often() -> None:
        up_to_date()
        await clock.sleep(1.0)

    tasks = [asyncio.create_task(loops.keep_running("watch", step)) for step in (once, often)]
    await asyncio.sleep(0)
    began = clock.monotonic()
    await clock.advance(10.0)
    assert loops.loop("watch").up_to_date_at == began
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_only_the_time_in_which_the_store_answers_counts() -> None:
    """An outage of an hour befalls every process at once: none of them is worse than the others."""
    clock = FakeClock()
    loops = Loops(clock)

    def fail() -> None:
        up_to_date()
        raise StoreUnavailable("away")

    async with running(loops, "balancer", fail, essential=True):
        await clock.advance(3600.0)
        back_at = clock.monotonic()
        assert "has failed" in loops.fault()
        assert loops.fault(answering_since=back_at) == ""
        await clock.advance(FAILING_S + 3)
        assert "has failed" in loops.fault(answering_since=back_at)


async def test_lag_is_measured_where_no_loop_pauses() -> None:
    clock = FakeClock()
    loops = Loops(clock)
    watching = asyncio.create_task(loops.watch_lag())
    await asyncio.sleep(0)
    await clock.advance(10 * LAG_S)
    watching.cancel()

    assert loops.lag.count > 1
    assert [loop.failures for loop in loops.all()] == [0]


async def test_a_pause_that_ends_late_is_seen_as_lag_of_the_event_loop() -> None:
    loops = Loops()

    async def step() -> object:
        is_late = next(turns) == 1
        asyncio.get_running_loop().call_soon(time.sleep, 0.3 if is_late else 0)
        return END if loops.lag.count == 2 else None

    turns = itertools.count(1)
    await loops.keep_running("busy", step, pause_s=0.05)

    late = sum(
        count for bound, count in zip((*loops.lag.bounds, 9.0), loops.lag.counts, strict=True) if bound > 0.1
    )
    assert loops.lag.count == 2
    assert late >= 1
    assert loops.lag.total >= 0.2
