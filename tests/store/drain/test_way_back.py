"""The certificate of a job that was rolled back covers the way there and the way back."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace

import msgspec
import pytest

from roost.binding.drain import ending, runner
from roost.binding.drain.certificate import Certificate
from roost.binding.drain.model import Job
from tests.store.drain.faulty import Controller, Faults, one_step
from tests.store.drain.test_controllers import led
from tests.store.drain.test_gates_count import Counting
from tests.store.drain.test_store_errors import until
from tests.store.drain.town import Gate, Town
from tests.unit.servers.gate.carried import HOME

STEPS = 10


class Clock:
    """The controller's, which a test may put on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead_s = 0.0
        monkeypatch.setattr(runner, "time", SimpleNamespace(monotonic=self, time=time.time))

    def __call__(self) -> float:
        return time.monotonic() + self.ahead_s


def certified(job: Job) -> Certificate:
    return msgspec.convert(job.certificate, Certificate)


async def done(town: Town, gate: Gate, controller: Controller) -> Job:
    """Ann went from 501 to 502, and the gate has told its last report."""
    old, _ = await town.open("501"), await town.open("502")
    await town.settle(old, "ann")
    job = await town.start("501")
    await gate.tell(job, final=False)
    running = await controller.take_up(job.id)
    await until(town, running, job, "reconciling")
    await gate.tell(job, final=True)
    return await until(town, running, job, "done", over=True)


async def test_nobody_goes_back_before_the_gates_count_again(town: Town) -> None:
    controller, gate = Controller(town, await led(town.store), Faults()), await town.gate("601")
    job = await done(town, gate, controller)
    await town.drains.rollback(job.id)
    assert await town.drains.report(job.id) is None  # what there was is of the way there alone
    running = await controller.take_up(job.id)
    for _ in range(STEPS):
        assert await one_step(running)
    assert town.doubles["502"].moves == []

    await gate.tell(job, final=False, seen="rolling-back")
    await until(town, running, job, "reconciling")
    await gate.tell(job, final=True, taken=25)
    found = certified(await until(town, running, job, "cancelled", over=True))

    assert await town.owner("ann") == "501"
    assert (found.holds, found.requests) == (True, 25)


async def test_a_gate_that_does_not_count_again_makes_the_certificate_incomplete(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    controller, gate = Controller(town, await led(town.store), Faults()), await town.gate("601")
    job = await done(town, gate, controller)
    await town.drains.rollback(job.id)
    running = await controller.take_up(job.id)
    for _ in range(STEPS):
        assert await one_step(running)

    clock.ahead_s += ending.FIRST_REPORTS_S
    found = certified(await until(town, running, job, "cancelled", over=True))

    assert await town.owner("ann") == "501"
    assert (found.is_complete, found.holds, found.missing) == (False, False, [gate.name])


async def test_a_rollback_while_reports_are_awaited_waits_for_them_anew(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    controller, gate = Controller(town, await led(town.store), Faults()), await town.gate("601")
    old, _ = await town.open("501"), await town.open("502")
    await town.settle(old, "ann")
    job = await town.start("501")
    await gate.tell(job, final=False)
    running = await controller.take_up(job.id)
    await until(town, running, job, "reconciling")
    await one_step(running)

    await town.drains.rollback(job.id)
    await gate.tell(job, final=False, seen="rolling-back")
    clock.ahead_s += ending.LAST_REPORTS_S
    await until(town, running, job, "reconciling")
    for _ in range(STEPS):
        assert await one_step(running)
    await gate.tell(job, final=True)

    assert certified(await until(town, running, job, "cancelled", over=True)).holds


async def test_a_job_that_moved_nobody_waits_for_no_gate_on_its_way_back(town: Town) -> None:
    await town.gate("601")
    await town.open("501")
    await town.open("502")
    job = await town.start("501")
    controller = Controller(town, await led(town.store), Faults())
    await town.drains.rollback(job.id)

    await until(town, await controller.take_up(job.id), job, "reconciling")


async def test_a_gate_counts_the_way_there_and_the_way_back(town: Town) -> None:
    gate = Counting(town, (await town.gate("gate-1")).name)
    try:
        old, new = await town.open("501"), await town.open("502")
        await town.settle(old, "ann")
        old.gate.clear()
        new.gate.clear()
        gate.carried.settle(HOME)
        town.lead()
        job = await town.start("501")
        await gate.counts()
        gate.exchange("a", HOME.epoch)
        old.gate.set()
        await town.becomes(job, "done", over=True)
        await town.drains.rollback(job.id)
        await gate.counts()
        gate.exchange("b", HOME.epoch)
        new.gate.set()

        found = certified(await town.becomes(job, "cancelled", over=True))
    finally:
        gate.task.cancel()
        await asyncio.gather(gate.task, return_exceptions=True)

    assert await town.owner("ann") == "501"
    assert (found.holds, found.requests, found.answered) == (True, 2, 2), found.text
