"""A world that opens at a set time: whoever comes before takes part in a fair draw."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roost.store.store import Store
from roost.waitingroom.rules import Policy
from roost.waitingroom.scripts import Offered, Waiting
from roost.waitingroom.service import WaitingRoom
from tests.store.waitingroom.world import MS, SECOND, World

YEAR_9999_US = 253_370_764_800_000_000


def lot(seed: str, user: str) -> int:
    """What anybody can compute once the seed is known."""
    return int(hashlib.sha1((seed + user).encode(), usedforsecurity=False).hexdigest()[:8], 16)


async def schedule(world: World, seconds: int, seed: str = "seed") -> None:
    await world.mode(opens_at=str(world.now + seconds * SECOND), seed=seed)


async def test_nobody_gets_in_before_the_opening_however_much_room_there_is(any_world: World) -> None:
    await any_world.report(cap=10)
    await schedule(any_world, 60)
    place = await any_world.waits("ann")
    assert place.opens_ms == 60_000
    assert (await any_world.tick()).issued == 0
    await any_world.pass_ms(59_000, polling=["ann"], issue=100)
    assert isinstance(await any_world.status("ann"), Waiting)
    await any_world.pass_ms(1_000, polling=["ann"], issue=100)
    assert isinstance(await any_world.status("ann"), Offered)


async def test_the_draw_orders_them_and_not_who_came_first(world: World) -> None:
    await schedule(world, 60)
    users = await world.crowd(200)
    world.now += 61 * SECOND
    ranks = {user: await world.rank(user) for user in users}
    assert sorted(users, key=lambda user: ranks[user]) == sorted(users, key=lambda user: lot("seed", user))
    assert sorted(ranks.values()) == list(range(1, 201))


async def test_leaving_and_coming_again_draws_the_same_lot(world: World) -> None:
    await schedule(world, 60)
    first = await world.waits("ann")
    await world.leave("ann")
    world.now += SECOND
    assert (await world.waits("ann")).seq == first.seq


async def test_before_the_opening_they_are_told_how_many_take_part_and_no_rank_is_kept(world: World) -> None:
    await schedule(world, 60)
    assert (await world.waits("ann")).rank == 1
    await world.crowd(20)
    told = await world.status("ann")
    assert isinstance(told, Waiting)
    assert told.rank == 21
    world.now += 61 * SECOND
    assert 1 <= await world.rank("ann") <= 21


async def test_who_waited_before_stays_before_and_who_comes_after_stands_behind(world: World) -> None:
    await world.waits("early")
    await schedule(world, 60)
    await world.crowd(50)
    world.now += 61 * SECOND
    await world.waits("late")
    assert await world.rank("early") == 1
    assert await world.rank("late") == 52


async def test_an_opening_that_is_put_off_keeps_its_draw(world: World) -> None:
    await schedule(world, 60)
    place = await world.waits("ann")
    await schedule(world, 120, seed="another")
    assert (await world.waits("bob")).seq - place.seq == lot("seed", "bob") - lot("seed", "ann")
    assert (await world.status("ann")).opens_ms == 120_000  # type: ignore[union-attr]


async def test_an_operator_may_open_at_once(world: World) -> None:
    await world.report(cap=1)
    await schedule(world, 3600)
    await world.waits("ann")
    await world.mode(opens_at="-")
    assert (await world.tick()).issued == 1


async def test_a_world_that_opens_in_the_year_9999_answers_its_people(world: World) -> None:
    await world.mode(opens_at=str(YEAR_9999_US), seed="seed")
    opens_ms = (YEAR_9999_US - world.now) // MS
    assert (await world.waits("ann")).opens_ms == pytest.approx(opens_ms, abs=1)

    room = WaitingRoom(world.store, "main", Policy(period_ms=0))
    told = await room.status("ann")

    assert isinstance(told, Waiting)
    assert told.opens_ms > 10**14
    polled = await world.status("ann")
    assert isinstance(polled, Waiting)
    assert polled.opens_ms == pytest.approx(opens_ms, abs=1)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.text("abcdef0123456789", min_size=8, max_size=32), count=st.integers(2, 40))
async def test_g12_no_rank_rises_after_the_draw(store: Store, seed: str, count: int) -> None:
    await store.call("FLUSHALL")
    world = World(store)
    await world.tick(0)
    await schedule(world, 10, seed)
    users = await world.crowd(count)
    world.now += 11 * SECOND
    before = {user: await world.rank(user) for user in users}
    await world.report(cap=count // 2)
    await world.tick(count)
    world.now += 500 * MS
    for user in users:
        found = await world.status(user)
        assert isinstance(found, Offered) or (isinstance(found, Waiting) and found.rank <= before[user])
