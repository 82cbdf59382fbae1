"""One worker under its supervisor, played by a program of a few lines."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from roost.core.loops import END, Loops
from roost.gateway.workers.worker import Worker
from roost.testing import eventually

SAYS_UP = "import os, sys, time; os.write(int(sys.argv[1]), bytes([0, 0, 0, 0, 1, 0, 0, 0, 2]) + b'up'); "
HANGS = SAYS_UP + "time.sleep(600)"
REFUSES = (
    SAYS_UP + "line = int(sys.argv[1]); os.read(line, 9); asked = os.read(line, 9); "
    "os.read(line, int.from_bytes(asked[5:])); "
    "os.write(line, bytes([2]) + asked[1:5] + bytes([0, 0, 0, 2]) + b'no'); time.sleep(600)"
)
ENDS = SAYS_UP + "os.read(int(sys.argv[1]), 1); sys.exit(3)"


async def nothing(what: str) -> bytes:
    return b""


def worker_of(program: str) -> Worker:
    def command(number: int, descriptor: int) -> Sequence[str]:
        return [sys.executable, "-S", "-c", program, str(descriptor)]

    return Worker(1, command, dict(os.environ), nothing, lambda _: None)


@asynccontextmanager
async def living(program: str) -> AsyncIterator[Worker]:
    worker = worker_of(program)
    task = asyncio.create_task(Loops().keep_running("worker 1", worker.live))
    try:
        yield worker
    finally:
        await worker.stop(0.0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_worker_that_ends_is_started_again_and_counted() -> None:
    async with living(ENDS) as worker:
        await eventually(lambda: worker.restarts >= 2, "two starts again")

        assert worker.code == 3
        assert worker.ended.is_set()


async def test_a_worker_that_hangs_is_ended_and_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roost.gateway.workers.worker.HUNG_S", 0.0)
    async with living(HANGS) as worker:
        await eventually(worker.up.is_set, "its start")
        hanging = worker.pid

        assert await worker.look() is None

        await eventually(lambda: worker.restarts == 1 and worker.up.is_set(), "another in its place")
        assert worker.hung == 1
        assert worker.pid != hanging


async def test_a_worker_that_says_why_it_shows_no_page_does_not_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roost.gateway.workers.worker.HUNG_S", 0.0)
    async with living(REFUSES) as worker:
        await eventually(worker.up.is_set, "its start")

        assert await worker.look() is None

        assert (worker.hung, worker.restarts) == (0, 0)


async def test_a_stopped_worker_is_not_started_again() -> None:
    async with living(HANGS) as worker:
        await eventually(worker.up.is_set, "its start")
        await worker.stop(10.0)
        await eventually(worker.ended.is_set, "its end")

    assert worker.restarts == 0
    assert worker.code == -15


async def test_a_worker_that_is_stopped_between_two_lives_has_no_other() -> None:
    worker = worker_of("")
    life = asyncio.create_task(worker.live())
    await worker.ended.wait()

    await worker.stop(0.0)

    assert await life is END
    assert worker.restarts == 0


async def test_a_worker_that_is_stopped_before_its_first_life_is_not_started() -> None:
    worker = worker_of("")
    await worker.stop(0.0)

    assert await worker.live() is END

    assert worker.pid is None
    assert worker.ended.is_set(), "nobody waits for it to come up"
