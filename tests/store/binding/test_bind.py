from __future__ import annotations

import asyncio

from roost.binding.scripts import Bound, Moving, NoServer, Placed
from roost.core.owner import Owner
from tests.store.binding.town import LEASE_MS, SECOND, Town, invariants


async def test_a_user_without_a_home_is_placed_where_the_caller_says(any_town: Town) -> None:
    await any_town.opens("s1")
    chosen = await any_town.opens("s2")

    placed = await any_town.bind("ann", chosen)

    assert isinstance(placed, Placed)
    assert (placed.owner, placed.why) == (chosen, "new")
    assert await any_town.bind("ann", chosen) == Bound("s2", "7", placed.epoch, 0)
    await invariants(any_town)


async def test_whoever_has_a_home_keeps_it(town: Town) -> None:
    first, second = await town.opens("s1"), await town.opens("s2")
    placed = await town.bind("ann", first)
    assert isinstance(placed, Placed)

    assert await town.bind("ann", second) == Bound("s1", "7", placed.epoch, 0)


async def test_of_two_callers_that_chose_differently_one_wins(town: Town) -> None:
    owners = [await town.opens("s1"), await town.opens("s2")]

    answers = await asyncio.gather(*(town.bind("ann", owners[at % 2]) for at in range(20)))

    assert len({answer.owner for answer in answers if isinstance(answer, (Bound, Placed))}) == 1
    await invariants(town)


async def test_a_server_that_cannot_take_them_is_refused_with_the_reason(town: Town) -> None:
    assert await town.bind("ann", Owner("s9", "1")) == NoServer("none registered")

    closed = await town.opens("s1", state="0")
    assert await town.bind("ann", closed) == NoServer("none willing")

    full = await town.opens("s2", cap=1)
    await town.bind("bob", full)
    assert await town.bind("ann", full) == NoServer("all full")

    other = await town.opens("s3", version="1")
    assert await town.bind("ann", other, version="2") == NoServer("version")

    await town.pass_ms(LEASE_MS)
    assert await town.bind("ann", full) == NoServer("none registered")
    assert await town.read("ann") is None


async def test_whose_owner_is_dead_goes_where_the_caller_says(town: Town) -> None:
    dead = await town.opens("s1")
    was = await town.bind("ann", dead)
    assert isinstance(was, Placed)
    target = await town.opens("s2")
    await town.pass_ms(LEASE_MS, beating=[("s2", 7)])

    now = await town.bind("ann", target, seen=was.epoch + 60 * SECOND)

    assert isinstance(now, Placed)
    assert (now.owner, now.previous, now.why) == (target, was.epoch, "failover")
    assert now.epoch == was.epoch + 60 * SECOND + 1
    await invariants(town)


async def test_whoever_is_on_the_move_is_waited_for(town: Town) -> None:
    first, second = await town.opens("s1"), await town.opens("s2")
    was = await town.bind("ann", first)
    assert isinstance(was, Placed)
    await town.marks("ann", second, left_ms=900, next_epoch=was.epoch + 1)

    assert await town.bind("ann", second) == Moving("s1", "7", was.epoch, 900)
