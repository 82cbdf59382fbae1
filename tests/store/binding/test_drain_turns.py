"""A drain that is rolled back, cancelled or taken up by another keeps off the servers of others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from roost.api.drain import JobState, WrongJobState
from roost.binding.drain import outward, runner, view
from roost.binding.drain.movers import WireMovers
from roost.store.store import Store
from tests.store.drain.faulty import Controller, Faults, one_step
from tests.store.drain.test_controllers import led
from tests.store.drain.test_store_errors import until
from tests.store.drain.town import Town, open_town


@pytest.fixture
async def town(store: Store) -> AsyncIterator[Town]:
    async with open_town(store) as town:
        yield town


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is looked at once a second is looked at all the time."""
    monkeypatch.setattr(view, "REFRESH_S", 0.05)
    monkeypatch.setattr(outward, "LOOK_S", 0.05)
    monkeypatch.setattr(runner, "IDLE_S", 0.05)


async def waiting_for_a_gate(town: Town, controller: Controller, state: JobState) -> str:
    """A job of 501 that is over but for a gate's last report: its server may have another."""
    old, _ = await town.open("501"), await town.open("502")
    gate = await town.gate("601")
    await town.settle(old, "ann")
    job = await town.start("501", deadline_s=3600.0)
    await gate.tell(job, final=False)
    if state == "cancelled":
        await town.drains.cancel(job.id)
    running = await controller.take_up(job.id)
    if state == "cancelled":
        while await town.drains.records.holder("entity", "501") is not None:
            await running.step()
    else:
        await until(town, running, job, state)
    return job.id


@pytest.mark.parametrize("state", ["cancelled", "reconciling"])
async def test_a_job_that_waits_for_a_gate_is_not_rolled_back_over_another(
    town: Town, state: JobState
) -> None:
    controller = Controller(town, await led(town.store), Faults())
    first = await waiting_for_a_gate(town, controller, state)
    second = await town.start("501")
    assert second.id != first

    with pytest.raises(WrongJobState, match=second.id):
        await town.drains.rollback(first)

    assert (await town.drains.records.holder("entity", "501")) == second.id


@pytest.mark.parametrize("state", ["cancelled", "reconciling"])
async def test_a_rollback_of_a_job_that_waits_for_a_gate_takes_its_servers_again(
    town: Town, state: JobState
) -> None:
    controller = Controller(town, await led(town.store), Faults())
    first = await waiting_for_a_gate(town, controller, state)
    await town.drains.rollback(first)

    with pytest.raises(WrongJobState, match=f"{first} of 501 is being rolled back"):
        await town.start("501")


class Killed(Exception):
    """The controller's process ends here: nothing is saved any more."""


async def test_a_server_that_left_after_it_was_emptied_is_empty_for_the_next_controller_too(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outward, "GONE_S", 0.1)
    controller = Controller(town, await led(town.store), Faults())
    old, _ = await town.open("501"), await town.open("502")
    await town.settle(old, "ann")
    job = await town.start("501")
    retire = WireMovers.retire

    async def is_told_and_dies(self: WireMovers, *args: Any) -> None:
        await retire(self, *args)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(WireMovers, "retire", is_told_and_dies)
        with pytest.raises(Killed):
            await until(town, await controller.take_up(job.id), job, "done")
    await old.die()

    done = await until(town, await controller.take_up(job.id), job, "done", "failed", over=True)

    assert (done.state, done.why) == ("done", "")


async def test_a_cancelled_job_awaits_the_last_reports_once_no_move_is_under_way(town: Town) -> None:
    controller = Controller(town, await led(town.store), Faults())
    old, _ = await town.open("501"), await town.open("502")
    gate = await town.gate("601")
    await town.settle(old, "ann")
    old.gate.clear()
    job = await town.start("501")
    await gate.tell(job, final=False)
    running = await controller.take_up(job.id)
    while not old.at_once:
        await one_step(running)
    await town.drains.cancel(job.id)
    for _ in range(5):
        await one_step(running)
    [told] = await town.drains.running()
    assert (told.state, told.is_settled) == ("cancelled", False)

    old.gate.set()
    await until(town, running, job, "reconciling")
    assert (await town.drains.cancel(job.id)).state == "reconciling", "it is told again"
    await gate.tell(job, final=True)
    done = await until(town, running, job, "cancelled", over=True)

    assert (done.why, done.counts["moved"]) == ("ordered", 1)
    assert done.certificate is not None


async def test_whoever_takes_up_a_cancelled_job_opens_no_server_that_another_empties(town: Town) -> None:
    """The first job waits for a gate, the second has closed its server by then."""
    controller = Controller(town, await led(town.store), Faults())
    first = await waiting_for_a_gate(town, controller, "cancelled")
    second = await town.start("501")
    closing = await controller.take_up(second.id)
    await until(town, closing, second, "running")

    taken_up = await controller.take_up(first)
    for _ in range(5):
        await one_step(taken_up)

    found = await town.discovery.discover("entity", "*")
    [override] = [one.override for one in found.instances if one.server_id == "501"]
    assert override is not None
    assert override.drain
