"""A drain on a real store with a gate that counts: from the first report to the certificate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from roost.binding.drain.certificate import Certificate
from roost.binding.drain.model import Job
from roost.servers.gate.routes import Route
from roost.servers.gate.witness import Witness
from roost.testing.waiting import eventually
from roost.wire.codes import Code
from tests.store.drain.town import Town
from tests.unit.servers.gate.carried import HOME, OTHER, Carried

STEP_S = 0.05


class Counting:
    """A gate with one client, whose witness looks often."""

    def __init__(self, town: Town, name: str) -> None:
        self.carried = Carried()
        self.witness = Witness(town.drains, self.carried, self.carried.books, lambda: name)
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            await self.witness.step()
            await asyncio.sleep(STEP_S)

    async def counts(self) -> None:
        async def is_counting() -> bool:
            return bool(self.carried.carrier.books)

        await eventually(is_counting, "the gate to count")

    def exchange(self, name: str, epoch: int) -> None:
        self.carried.say(name)
        self.carried.take().ok(name.encode(), epoch)


@pytest.fixture
async def gate(town: Town) -> AsyncIterator[Counting]:
    counting = Counting(town, (await town.gate("gate-1")).name)
    yield counting
    counting.task.cancel()
    await asyncio.gather(counting.task, return_exceptions=True)


async def started(town: Town, gate: Counting) -> Job:
    """A job whose only user does not move before the test says so."""
    old, _ = await town.open("501"), await town.open("502", "2.0")
    await town.settle(old, "ann")
    old.gate.clear()
    gate.carried.settle(HOME)
    town.lead()
    job = await town.start("501")
    await gate.counts()
    return job


async def ended(town: Town, job: Job) -> Certificate:
    town.doubles["501"].gate.set()
    done = await town.becomes(job, "done", over=True)
    return msgspec.convert(done.certificate, Certificate)


async def test_a_drain_without_a_fault_is_certified(town: Town, gate: Counting) -> None:
    job = await started(town, gate)
    gate.exchange("a", HOME.epoch)
    gate.carried.say("b")
    gate.carried.take().refused(Code.MOVED)
    gate.carried.settle(OTHER, last=1)
    gate.carried.take().ok(b"b", OTHER.epoch)

    found = await ended(town, job)

    assert found.holds, found.text
    assert (found.moved, found.requests, found.answered, found.lost) == (1, 2, 2, 0)


async def test_a_message_that_was_executed_twice_is_in_the_certificate(town: Town, gate: Counting) -> None:
    job = await started(town, gate)
    gate.carried.say("a")
    slow = gate.carried.take()
    gate.carried.lane.lost()
    gate.carried.settle(Route(*OTHER[:2], HOME.epoch))
    repeated = gate.carried.take()
    slow.ok(b"one", HOME.epoch)
    repeated.ok(b"another", HOME.epoch)

    found = await ended(town, job)

    assert (found.is_complete, found.holds, found.doubled) == (True, False, 1)


async def test_a_gate_that_stops_cleanly_is_not_missing(town: Town, gate: Counting) -> None:
    job = await started(town, gate)
    gate.exchange("a", HOME.epoch)
    gate.carried.carrier.close("closed")
    await gate.witness.leave()

    found = await ended(town, job)

    assert (found.holds, found.gates, found.requests) == (True, 1, 1), found.text


async def test_a_gate_that_dies_makes_it_incomplete(
    town: Town, gate: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roost.binding.drain.ending.LAST_REPORTS_S", 0.1)
    job = await started(town, gate)

    async def has_told() -> bool:
        return bool(await town.drains.told(job.id))

    await eventually(has_told, "the first report")
    gate.task.cancel()

    found = await ended(town, job)

    assert (found.is_complete, found.holds, found.lost, len(found.missing)) == (False, False, None, 1)
