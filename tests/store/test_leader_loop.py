"""`LeaderLease.lead`: the work of a leader runs while it leads, and has ended when another may lead."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import pytest

from roost.core.lease import Tenure
from roost.store import scopes
from roost.store.leader import LeaderLease
from roost.store.link import LinkOptions
from roost.store.store import Store
from roost.store.url import parse_store_url
from roost.testing import eventually, run_valkey
from tests.store.stepped import SteppedWorld


class Work:
    """What a leader does: notes when it began and when it was ended, by the world's clock."""

    def __init__(self, world: SteppedWorld) -> None:
        self._world = world
        self.began: list[tuple[int, float]] = []
        self.ended: list[float] = []
        self.fails = False

    async def __call__(self, tenure: Tenure) -> None:
        self.began.append((tenure.epoch, self._world.clock.monotonic()))
        try:
            if self.fails:
                raise ValueError("a fault in the work")
            await asyncio.Event().wait()
        finally:
            self.ended.append(self._world.clock.monotonic())

    @property
    def epochs(self) -> list[int]:
        return [epoch for epoch, _ in self.began]

    @property
    def running(self) -> bool:
        return len(self.began) > len(self.ended)


@contextlib.asynccontextmanager
async def leading(lease: LeaderLease, work: Work) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(lease.lead(work))
    await asyncio.sleep(0)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def world(store: Store) -> SteppedWorld:
    return SteppedWorld(store)


async def test_work_runs_for_as_long_as_the_lease_is_renewed(world: SteppedWorld) -> None:
    work = Work(world)
    async with leading(world.lease("a"), work):
        await world.run(60)
        assert len(work.epochs) == 1
        assert work.running


async def test_work_has_ended_before_the_lease_can_be_anothers_when_the_store_goes_away(
    world: SteppedWorld,
) -> None:
    lease, work = world.lease("a"), Work(world)
    async with leading(lease, work):
        await world.run(5)
        world.away = True
        tenure = lease.tenure
        assert tenure is not None

        await world.run(12)

    assert len(work.ended) == 1
    assert work.ended[0] <= tenure.ends_at + 1e-6


async def test_work_ends_on_time_also_when_the_store_hangs_just_then(world: SteppedWorld) -> None:
    """Its time is over while it asks for more: it must not go on until the answer comes."""
    lease, work = world.lease("a"), Work(world)
    answers = asyncio.Event()
    async with leading(lease, work):
        await world.run(5)
        world.away = True
        tenure = lease.tenure
        assert tenure is not None
        await world.run(tenure.ends_at - world.clock.monotonic() - 0.1)

        async def hang() -> None:
            await answers.wait()

        world.on_the_way = hang
        await world.clock.advance(0.2)

        try:
            await eventually(lambda: not work.running, "the end of the work", timeout_s=0.5)
        finally:
            answers.set()


async def test_a_short_absence_of_the_store_does_not_disturb_the_work(world: SteppedWorld) -> None:
    work = Work(world)
    async with leading(world.lease("a"), work):
        await world.run(5)
        world.away = True
        await world.run(4)
        world.away = False
        await world.run(20)
        assert len(work.epochs) == 1
        assert work.running


async def test_a_leader_that_comes_back_late_and_was_not_followed_leads_on(world: SteppedWorld) -> None:
    work = Work(world)
    async with leading(world.lease("a"), work):
        await world.run(2)
        world.away = True
        await world.run(30)
        assert not work.running

        world.away = False
        await world.run(3)

        first, again = work.epochs
        assert again == first
        assert work.running


async def test_a_store_that_forgets_its_leader_begins_a_new_tenure_under_a_larger_epoch(
    world: SteppedWorld, store: Store
) -> None:
    work = Work(world)
    async with leading(world.lease("a"), work):
        await world.run(5)
        key = store.keys.leader(scopes.world("main"))
        await store.call("DEL", key, key=key)
        world.offset_s -= 3600

        await world.run(5)

        before, after = work.epochs
        assert after > before
        assert work.running


async def test_another_takes_over_after_the_leader_died_and_never_before_its_work_ended(store: Store) -> None:
    world = SteppedWorld(store)
    cut_off = SteppedWorld(store, world.clock)
    old, new = Work(cut_off), Work(world)
    async with leading(cut_off.lease("old"), old):
        await world.run(1)
        async with leading(world.lease("new"), new):
            await world.run(5)
            died_at = world.clock.monotonic()
            cut_off.away = True

            await world.run(15)

            (before,), (after,) = old.epochs, new.epochs
            assert after > before
            assert old.ended[0] < new.began[0][1] <= died_at + 10 + 2


async def test_who_stops_in_good_order_hands_over_at_once(world: SteppedWorld) -> None:
    first, second = Work(world), Work(world)
    async with leading(world.lease("b"), second) as standby:
        await world.run(0.5)
        standby.cancel()
        await asyncio.gather(standby, return_exceptions=True)
    async with leading(world.lease("a"), first) as task, leading(world.lease("b"), second):
        await world.run(3)
        assert first.running
        stopped_at = world.clock.monotonic()

        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await world.run(2)

        assert not first.running
        assert second.running
        assert second.began[-1][1] <= stopped_at + 1.2


async def test_work_that_fails_is_begun_again(world: SteppedWorld, caplog: pytest.LogCaptureFixture) -> None:
    work = Work(world)
    work.fails = True
    async with leading(world.lease("a"), work):
        await world.run(4)
        work.fails = False
        await world.run(4)
        assert len(work.began) >= 2
        assert work.running
    assert "leader's work failed" in caplog.text


async def test_work_ends_when_another_leads_after_all(world: SteppedWorld, store: Store) -> None:
    """The record was lost in a failover, and another was quicker."""
    work = Work(world)
    async with leading(world.lease("a"), work):
        await world.run(2)
        await store.call("DEL", store.keys.leader(scopes.world("main")))
        assert isinstance(await world.lease("b").campaign(), Tenure)

        await world.run(4)

        assert not work.running


async def test_a_hanging_store_does_not_keep_the_work_running_beyond_its_time() -> None:
    """In real time: the server is stopped in the middle of everything and answers nothing."""
    with run_valkey() as server:
        store = await Store.open(parse_store_url(server.url), options=LinkOptions(command_timeout_s=30.0))
        lease = store.leader(scopes.world("main"), "a", ttl_ms=3000)
        must_end_at, ended_at = 0.0, 0.0

        async def work(tenure: Tenure) -> None:
            nonlocal must_end_at, ended_at
            try:
                while True:
                    must_end_at = max(must_end_at, lease.tenure.ends_at if lease.tenure else 0.0)
                    await asyncio.sleep(0.005)
            finally:
                ended_at = time.monotonic()

        task = asyncio.create_task(lease.lead(work))
        try:
            await eventually(lambda: must_end_at > 0, "the work to begin")
            server.pause()
            await eventually(lambda: ended_at > 0, "the work to end")
            assert ended_at <= must_end_at + 0.05
        finally:
            server.resume()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await store.close()
