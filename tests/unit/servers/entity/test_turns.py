"""Turns: one at a time for each user, in order, and nobody waits for another user."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.servers.entity import turns
from roost.servers.entity.turns import HookCancelled, HookStuck, HookTimeout, Line, Workers, limited
from roost.testing import eventually


class Turn:
    def __init__(self, work: Callable[[], Awaitable[None]]) -> None:
        self._work = work
        self.bounced = False

    async def run(self) -> None:
        await self._work()

    def bounce(self) -> None:
        self.bounced = True


@pytest.fixture
async def workers() -> AsyncIterator[Workers]:
    workers = Workers()
    yield workers
    await workers.close()


def noting(log: list[object], what: object, wait: asyncio.Event | None = None) -> Turn:
    async def work() -> None:
        if wait is not None:
            await wait.wait()
        log.append(what)

    return Turn(work)


async def test_turns_of_one_line_run_in_their_order_also_if_one_waits(workers: Workers) -> None:
    line, log, go = Line(workers, 100), list[object](), asyncio.Event()
    for n in range(10):
        line.add(noting(log, n, go if n == 3 else None))
    await eventually(lambda: log == [0, 1, 2])
    go.set()
    await eventually(lambda: log == list(range(10)))
    assert not line.busy


async def test_a_thousand_turns_that_do_not_wait_need_one_worker(workers: Workers) -> None:
    log = list[object]()
    for n in range(1000):
        Line(workers, 1).add(noting(log, n))
    await eventually(lambda: len(log) == 1000)
    assert workers.count == 1


async def test_who_waits_delays_no_other_line(workers: Workers) -> None:
    never, log = asyncio.Event(), list[object]()
    for n in range(50):
        Line(workers, 1).add(noting(log, n, never))
        Line(workers, 1).add(noting(log, -n))
    await eventually(lambda: len(log) == 50)


async def test_many_turns_that_wait_begin_within_a_few_turns_of_the_loop(workers: Workers) -> None:
    go, begun, log = asyncio.Event(), list[int](), list[int]()

    async def work(number: int) -> None:
        begun.append(number)
        await go.wait()
        log.append(number)

    for n in range(64):
        Line(workers, 1).add(Turn(partial(work, n)))
    for _ in range(10):
        await asyncio.sleep(0)
    assert begun == list(range(64))
    go.set()
    await eventually(lambda: sorted(log) == begun)


async def test_when_turns_wait_no_more_one_worker_is_enough_again(workers: Workers) -> None:
    go, log, at_work = asyncio.Event(), list[object](), list[object]()
    for n in range(40):
        Line(workers, 1).add(noting(log, n, go))
    await eventually(lambda: workers.count == 40)
    go.set()
    await eventually(lambda: len(log) == 40)

    async def work() -> None:
        at_work.append(asyncio.current_task())

    for n in range(1000):
        Line(workers, 1).add(Turn(work) if n else noting(log, n, asyncio.Event()))
    await eventually(lambda: len(at_work) == 999)
    assert len(set(at_work)) == 1


async def test_a_full_line_refuses_and_bounces_what_waits(workers: Workers) -> None:
    line, never, log = Line(workers, 2), asyncio.Event(), list[object]()
    line.add(noting(log, 0, never))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting = [noting(log, 1), noting(log, 2)]
    assert [line.add(turn) for turn in waiting] == [True, True]
    assert not line.add(noting(log, 3))
    line.bounce_all()
    assert all(turn.bounced for turn in waiting)


async def test_a_turn_that_raises_ends_nothing_else(
    workers: Workers, caplog: pytest.LogCaptureFixture
) -> None:
    line, log = Line(workers, 10), list[object]()

    async def fail() -> None:
        raise ValueError("a fault of ours")

    line.add(Turn(fail))
    line.add(noting(log, "next"))
    await eventually(lambda: log == ["next"])


async def test_what_a_turn_sets_in_its_context_does_not_reach_the_next(workers: Workers) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="")
    seen: list[str] = []

    async def work() -> None:
        seen.append(variable.get())
        variable.set("leaked")
        await asyncio.sleep(0)
        seen.append(variable.get())

    line = Line(workers, 10)
    line.add(Turn(work))
    line.add(Turn(work))
    await eventually(lambda: len(seen) == 4)
    assert seen == ["", "leaked", "", "leaked"]


@given(waits=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=60))
async def test_every_line_keeps_its_order_whatever_waits(waits: list[tuple[int, int]]) -> None:
    workers, done = Workers(), dict[int, list[int]]()
    lines = {n: Line(workers, 100) for n in range(5)}
    running: set[int] = set()

    def turn(line: int, number: int, steps: int) -> Turn:
        async def work() -> None:
            assert line not in running
            running.add(line)
            for _ in range(steps):
                await asyncio.sleep(0)
            running.discard(line)
            done.setdefault(line, []).append(number)

        return Turn(work)

    for number, (line, steps) in enumerate(waits):
        lines[line].add(turn(line, number, steps))
    await eventually(lambda: sum(map(len, done.values())) == len(waits))
    for line, numbers in done.items():
        assert numbers == [number for number, (of, _) in enumerate(waits) if of == line]
    await workers.close()


async def test_a_hook_that_ends_in_time_gives_its_result() -> None:
    async def hook() -> str:
        await asyncio.sleep(0)
        return "done"

    assert await limited(hook(), 5) == "done"
    assert await limited("not async", 5) == "not async"


async def test_a_hook_that_waits_too_long_is_cancelled() -> None:
    cleaned: list[str] = []

    async def hook() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append("cleaned")

    with pytest.raises(HookTimeout):
        await limited(hook(), 0.001)
    assert cleaned == ["cleaned"]
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


async def test_a_hook_that_ignores_it_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "GRACE_S", 0.001)

    async def hook() -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue

    with pytest.raises(HookStuck):
        await limited(hook(), 0.001)
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


async def test_a_cancellation_that_a_hook_met_is_a_failure_of_the_hook() -> None:
    future = asyncio.get_running_loop().create_future()
    future.cancel()

    async def hook() -> None:
        await future

    with pytest.raises(HookCancelled):
        await limited(hook(), 5)


async def test_a_cancellation_of_the_worker_passes_through() -> None:
    async def hook() -> None:
        await asyncio.Event().wait()

    task = asyncio.create_task(limited(hook(), 5))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
