"""An order for servers that a job has already: what the job does is the answer, or the order is refused."""

from __future__ import annotations

import asyncio

import pytest

from roost.api.drain import WrongJobState
from roost.binding.drain.model import DrainRequest
from roost.testing.waiting import eventually
from tests.store.drain.town import Town

USERS = [f"u{number:03}" for number in range(40)]


async def test_the_next_life_of_a_server_is_not_taken_for_the_one_that_is_drained(town: Town) -> None:
    old, other, _ = await town.open("501"), await town.open("502"), await town.open("503")
    await town.settle(old, "ann")
    await town.settle(other, "bob")
    other.gate.clear()
    town.lead()
    job = await town.start("501", "502")
    await eventually(lambda: old.retired, "501 is empty")
    await old.die()
    await town.open("501")

    with pytest.raises(WrongJobState, match=f"{job.id} empties an earlier 501"):
        await town.start("501")

    other.gate.set()
    await town.becomes(job, "done", over=True)
    assert (await town.start("501")).id != job.id


async def test_a_rebalance_that_is_ordered_twice_is_one(town: Town) -> None:
    crowded = await town.open("501")
    await town.open("502")
    await town.settle(crowded, *USERS)
    wanted = DrainRequest(kind="rebalance", servers=["501", "502"])

    job = await town.drains.start(wanted)

    assert job.sources == ["501"]
    assert (await town.drains.start(wanted)).id == job.id
    with pytest.raises(WrongJobState, match=f"rebalance {job.id} moves users of 501"):
        await town.start("501")


async def test_of_orders_that_come_at_once_none_is_answered_with_less_than_it_asks_for(town: Town) -> None:
    for server in ("501", "502", "503"):
        await town.open(server)
    wanted = (["501"], ["501", "502"], ["502"])

    found = await asyncio.gather(*(town.start(*servers) for servers in wanted), return_exceptions=True)

    jobs = 0
    for servers, answer in zip(wanted, found, strict=True):
        if isinstance(answer, BaseException):
            assert isinstance(answer, WrongJobState)
        else:
            jobs += 1
            assert set(servers) <= set(answer.sources)
    assert jobs
