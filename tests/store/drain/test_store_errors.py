"""An error of the store, or of a server, at any call that a drain makes: it comes to its end all the same."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from roost.api.drain import MAX_BLOCK_MS
from roost.binding.drain import ending, homeward, moving, outward, runner, view
from roost.binding.drain.line import is_canary
from roost.binding.drain.model import Job
from roost.binding.drain.runner import Runner
from roost.binding.scripts import Frozen
from tests.store.drain.faulty import Controller, Faults, When, one_step
from tests.store.drain.test_controllers import led
from tests.store.drain.town import TYPE, Town

USERS = [f"u{number:03}" for number in range(10)]
FIRST, SECOND = USERS[:5], USERS[5:]
WAIT_S = 15.0


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is looked at once a second is looked at all the time."""
    monkeypatch.setattr(view, "REFRESH_S", 0.05)
    monkeypatch.setattr(outward, "LOOK_S", 0.05)
    monkeypatch.setattr(homeward, "AGAIN_S", 0.05)
    monkeypatch.setattr(runner, "IDLE_S", 0.05)


async def until(
    town: Town, running: Runner, job: Job, *states: str, over: bool = False, within_s: float = WAIT_S
) -> Job:
    """Step after step, until the job is so."""
    async with asyncio.timeout(within_s):
        while True:
            goes_on = await one_step(running)
            found = await town.drains.get(job.id)
            if found.state in states and (found.is_over or not over):
                return found
            assert goes_on, found


async def settled(town: Town) -> None:
    """Two old servers with five users each, and a new one."""
    first, second = await town.open("501"), await town.open("502")
    await town.open("503", "2.0")
    await town.settle(first, *FIRST)
    await town.settle(second, *SECOND)


async def drained(town: Town, controller: Controller, *servers: str, **more: object) -> tuple[Runner, Job]:
    job = await town.start(*(servers or ("501", "502")), max_block_ms=MAX_BLOCK_MS, **more)
    running = await controller.take_up(job.id)
    return running, job


async def test_a_look_that_fails_holds_nobody_up_for_good(town: Town) -> None:
    """Of the second server: whoever of the first was to be moved in this step is moved in a later one."""
    await settled(town)
    faults = Faults()
    running, job = await drained(town, Controller(town, await led(town.store), faults))

    faults.fail("outward._bound binders", at=(3,))
    done = await until(town, running, job, "done", over=True)

    assert faults.raised == 1
    assert await town.owners(USERS) == {"503": len(USERS)}
    assert done.counts["moved"] == len(USERS)


async def test_moves_that_could_not_be_saved_are_decided_again(town: Town) -> None:
    await settled(town)
    faults = Faults()
    running, job = await drained(town, Controller(town, await led(town.store), faults))

    faults.fail("runner._save save", at=range(2, 6))
    done = await until(town, running, job, "done", over=True)

    assert faults.raised == 4
    assert await town.owners(USERS) == {"503": len(USERS)}
    assert done.counts["moved"] == len(USERS)


async def test_a_way_back_that_cannot_be_saved_for_long_is_taken_all_the_same(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(homeward, "AGAIN_S", 0.0)
    await settled(town)
    faults = Faults()
    controller = Controller(town, await led(town.store), faults)
    running, job = await drained(town, controller)
    await until(town, running, job, "done", over=True)

    await town.drains.rollback(job.id)
    running = await controller.take_up(job.id)
    faults.fail("runner._save save", at=range(1, 6 * homeward.TRIES))
    back = await until(town, running, job, "cancelled", over=True)

    assert await town.owners(USERS) == {"501": len(FIRST), "502": len(SECOND)}
    assert back.counts["back"] == len(USERS)


async def test_a_page_of_those_who_go_back_is_read_again_if_the_map_does_not_answer(town: Town) -> None:
    await settled(town)
    faults = Faults()
    controller = Controller(town, await led(town.store), faults)
    running, job = await drained(town, controller)
    await until(town, running, job, "done", over=True)

    await town.drains.rollback(job.id)
    running = await controller.take_up(job.id)
    faults.fail("homeward.next read")
    await until(town, running, job, "cancelled", over=True)

    assert faults.raised == 1
    assert await town.owners(USERS) == {"501": len(FIRST), "502": len(SECOND)}


async def test_whoever_is_on_the_way_when_a_rollback_is_ordered_comes_back(town: Town) -> None:
    await settled(town)
    old = [town.doubles["501"], town.doubles["502"]]
    for one in old:
        one.gate.clear()
    running, job = await drained(town, Controller(town, await led(town.store), Faults()))
    async with asyncio.timeout(WAIT_S):
        while not all(one.at_once for one in old):
            await one_step(running)

    await town.drains.rollback(job.id)
    await until(town, running, job, "rolling-back")
    for _ in range(5):
        await one_step(running)
    for one in old:
        one.gate.set()
    back = await until(town, running, job, "cancelled", over=True)

    assert await town.owners(USERS) == {"501": len(FIRST), "502": len(SECOND)}
    assert back.counts["back"] == back.counts["moved"] == sum(len(one.moved) for one in old) > 0


async def canary_moved(town: Town, running: Runner, job: Job) -> list[str]:
    """Whom the canary means, once they are at the new server."""
    first = [user for user in USERS if is_canary(user, job.id, 50)]
    async with asyncio.timeout(WAIT_S):
        while (await town.owners(USERS))["503"] < len(first):
            await one_step(running)
    return first


async def test_the_pause_of_a_canary_that_could_not_be_saved_is_made_later(town: Town) -> None:
    await settled(town)
    faults = Faults()
    running, job = await drained(town, Controller(town, await led(town.store), faults), canary=50)
    first = await canary_moved(town, running, job)

    faults.fail("runner._save save", at=range(1000))
    for _ in range(10):
        await one_step(running)
    faults.fail("")
    paused = await until(town, running, job, "paused", "reconciling", "done")

    assert (paused.state, paused.why) == ("paused", "canary")
    assert (await town.owners(USERS))["503"] == len(first)
    await town.drains.resume(job.id)
    await until(town, running, job, "done", over=True)


async def test_the_pause_of_a_canary_is_made_after_that_of_an_operator(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who orders a pause in the very moment in which the canary is over, and resumes, has seen no canary."""
    await settled(town)
    save, orders = town.drains.records.save, ["pause"]

    async def saved(*args: Any, **more: Any) -> Any:
        if args[3].to == "paused" and orders:
            orders.pop()
            await town.drains.pause(job.id)
        return await save(*args, **more)

    monkeypatch.setattr(town.drains.records, "save", saved)
    running, job = await drained(town, Controller(town, await led(town.store), Faults()), canary=50)

    ordered = await until(town, running, job, "paused")
    await town.drains.resume(job.id)
    paused = await until(town, running, job, "paused", "reconciling", "done")

    assert (ordered.why, paused.why) == ("ordered", "canary")
    assert 0 < paused.counts["moved"] < len(USERS)


async def test_a_canary_of_a_controller_that_died_is_over_after_its_pause(town: Town) -> None:
    await settled(town)
    controller = Controller(town, await led(town.store), Faults())
    running, job = await drained(town, controller, canary=50)
    await until(town, running, job, "paused")

    running = await controller.take_up(job.id)
    await town.drains.resume(job.id)
    done = await until(town, running, job, "paused", "done", over=False)

    assert done.state == "done"


async def moves(town: Town, user: str, source: str, target: str) -> None:
    """A move that was sent before comes about."""
    record, there = await town.bindings.read(TYPE, user), town.doubles[target]
    assert record is not None
    old = town.doubles[source]
    frozen = await town.bindings.freeze(TYPE, user, old.owner, record.epoch, "late", there.owner, ttl_ms=5000)
    assert isinstance(frozen, Frozen)
    await town.bindings.commit(TYPE, user, "late", there.owner, frozen.epoch)
    there.cached[user] = old.cached.pop(user)


async def unheard(town: Town, faults: Faults, running: Runner, job: Job) -> None:
    """Ann's move to 502 was sent, nobody heard of it, and the map has her at 501."""
    async with asyncio.timeout(WAIT_S):
        while not (await town.drains.records.get(job.id)).progress.unheard:
            await one_step(running)
    assert faults.raised == 1
    assert await town.owner("ann") == "501"


@pytest.mark.parametrize("again", [True, False], ids=["sent-elsewhere", "not-sent-again"])
async def test_a_move_that_comes_about_after_the_map_was_asked_is_counted_and_goes_back(
    town: Town, again: bool
) -> None:
    old = await town.open("501")
    await town.open("502")
    await town.open("503")
    await town.settle(old, "ann")
    faults = Faults()
    controller = Controller(town, await led(town.store), faults)
    running, job = await drained(town, controller, "501")
    faults.fail("moving._move move")
    await unheard(town, faults, running, job)

    if again:
        await town.settle(town.doubles["502"], *USERS)
        old.gate.clear()
        async with asyncio.timeout(WAIT_S):
            while not old.at_once:
                await one_step(running)
    await moves(town, "ann", "501", "502")
    old.gate.set()
    done = await until(town, running, job, "done", over=True)

    assert (done.counts["moved"], done.counts["gone"]) == (1, 0)
    await town.drains.rollback(job.id)
    await until(town, await controller.take_up(job.id), job, "cancelled", over=True)
    assert await town.owner("ann") == "501"


async def test_whoever_stays_after_a_move_of_which_nobody_told_keeps_no_rollback_from_its_end(
    town: Town,
) -> None:
    await town.settle(await town.open("501"), "ann")
    await town.open("502")
    faults = Faults()
    running, job = await drained(town, Controller(town, await led(town.store), faults), "501")
    faults.fail("moving._move move")
    await unheard(town, faults, running, job)

    await town.drains.rollback(job.id)
    back = await until(town, running, job, "cancelled", over=True)

    assert (await town.owner("ann"), back.counts["back"]) == ("501", 0)


async def test_a_cancelled_drain_counts_a_move_that_comes_about_after_the_map_was_asked(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its server may still be about to, for as long as a move may take."""
    await town.settle(await town.open("501"), "ann")
    await town.open("502")
    faults = Faults()
    running, job = await drained(town, Controller(town, await led(town.store), faults), "501")
    faults.fail("moving._move move")
    await unheard(town, faults, running, job)

    await town.drains.cancel(job.id)
    for _ in range(10):
        await one_step(running)
    assert (await town.drains.get(job.id)).state == "cancelled"
    assert not (await town.drains.get(job.id)).is_over
    await moves(town, "ann", "501", "502")
    monkeypatch.setattr(moving, "SETTLE_S", 0.0)
    done = await until(town, running, job, "cancelled", over=True)

    assert (done.counts["moved"], done.counts["gone"]) == (1, 0)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_where_they_are_of_whom_nobody_told_is_asked_until_the_map_answers(
    town: Town, when: When
) -> None:
    await settled(town)
    faults = Faults()
    running, job = await drained(town, Controller(town, await led(town.store), faults))

    faults.fail("moving._move move", at=range(1, 8), when=when)
    faults.fail_too("moving.resolve_doubts read", at=(1, 3, 4))
    done = await until(town, running, job, "done", over=True)

    assert faults.raised == 10
    assert await town.owners(USERS) == {"503": len(USERS)}
    assert (done.counts["moved"], done.counts["gone"]) == (len(USERS), 0)


async def is_open(town: Town, server: str) -> bool:
    detail = await town.discovery.get(town.doubles[server].instance_id)
    return detail.instance is not None and detail.instance.willing and not town.doubles[server].retired


async def test_a_source_that_could_not_be_opened_again_is_told_again(town: Town) -> None:
    await settled(town)
    faults = Faults()
    running, job = await drained(town, Controller(town, await led(town.store), faults), canary=50)
    await until(town, running, job, "paused")

    faults.fail("ending._reopen override", at=(1, 2))
    await town.drains.cancel(job.id)
    await until(town, running, job, "cancelled", over=True)

    assert faults.raised == 2
    assert [await is_open(town, server) for server in ("501", "502")] == [True, True]


async def test_a_source_that_cannot_be_opened_again_does_not_keep_a_job_from_its_end(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ending, "REOPEN_S", 0.1)
    await settled(town)
    faults = Faults()
    running, job = await drained(town, Controller(town, await led(town.store), faults), canary=50)
    await until(town, running, job, "paused")

    faults.fail("ending._reopen override", at=range(1000))
    await town.drains.cancel(job.id)
    await until(town, running, job, "cancelled", over=True)

    assert (await town.drains.records.get(job.id)).progress.overridden == ["501", "502"]


async def test_what_a_controller_closed_and_could_not_say_is_opened_again(town: Town) -> None:
    """It died after it had told discovery, before the first save."""
    await settled(town)
    faults = Faults()
    controller = Controller(town, await led(town.store), faults)
    running, job = await drained(town, controller)
    faults.fail("runner._save save", at=range(1000))
    await one_step(running)
    assert [await is_open(town, server) for server in ("501", "502")] == [False, False]

    faults.fail("")
    await town.drains.cancel(job.id)
    await until(town, await controller.take_up(job.id), job, "cancelled", over=True)

    assert [await is_open(town, server) for server in ("501", "502")] == [True, True]


ROUNDS: tuple[tuple[range, When], ...] = (
    (range(1, 2), "before"),
    (range(2, 4), "before"),
    (range(1, 3), "after"),
)


async def whole(town: Town, controller: Controller) -> Job:
    """A canary, the rest, and everybody back."""
    running, job = await drained(town, controller, canary=50)
    await until(town, running, job, "paused")
    await town.drains.resume(job.id)
    done = await until(town, running, job, "done", over=True)
    assert await town.owners(USERS) == {"503": len(USERS)}
    assert (done.counts["moved"], done.counts["gone"]) == (len(USERS), 0)
    await town.drains.rollback(job.id)
    back = await until(town, await controller.take_up(job.id), job, "cancelled", over=True)
    assert await town.owners(USERS) == {"501": len(FIRST), "502": len(SECOND)}
    assert [await is_open(town, server) for server in ("501", "502")] == [True, True]
    return back


@pytest.mark.slow
async def test_whatever_call_fails_the_drain_and_the_way_back_come_to_their_end(town: Town) -> None:
    """Each call that is made on the way fails in turn: it is not carried out, or nobody hears its answer."""
    await settled(town)
    faults = Faults()
    controller = Controller(town, await led(town.store), faults)
    await whole(town, controller)
    sites = sorted(faults.seen)
    assert len(sites) > 12, sites

    for site in sites:
        for at, when in ROUNDS:
            faults.fail(site, at, when)
            try:
                await whole(town, controller)
            except (AssertionError, TimeoutError) as error:
                raise AssertionError(f"{site}, {when}, calls {list(at)}") from error
