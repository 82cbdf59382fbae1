"""remove.lua: out at once, out of everything, and not back by accident."""

from __future__ import annotations

import asyncio

import pytest

from roost.discovery.scripts import Fenced, Left, Unknown
from tests.store.discovery.fleet import SECOND, T0, Fleet, invariants


@pytest.mark.parametrize("cause", ["terminated", "removed", "no-response"])
async def test_a_removed_instance_is_out_of_every_index(any_fleet: Fleet, cause: str) -> None:
    life = await any_fleet.add("a", server_id="501")

    assert await any_fleet.remove("a", life, cause=cause) == Left()

    state = await invariants(any_fleet.store)
    assert (state.index, state.names, state.services) == ({}, {}, set())
    assert state.gone == {"a": f"{cause}\t{life}\t{T0 // 1000}\tgame:eu\t0"}
    assert await any_fleet.told() == [("added", "a", "ready"), ("removed", "a", cause)]


async def test_the_others_of_the_place_stay(fleet: Fleet) -> None:
    await fleet.add("a")
    await fleet.add("b")
    await fleet.remove("a")
    state = await invariants(fleet.store)
    assert (set(state.index), state.services) == ({"b"}, {"game:eu"})


async def test_removing_twice_is_told_once(fleet: Fleet) -> None:
    await fleet.add("a")
    assert await fleet.remove("a") == Left()
    fleet.now += SECOND
    assert await fleet.remove("a", cause="removed") == Left()
    assert len(await fleet.feed()) == 2
    assert (await invariants(fleet.store)).gone["a"].startswith("terminated\t")


async def test_many_who_remove_one_tell_it_once(fleet: Fleet) -> None:
    await fleet.add("a")
    assert await asyncio.gather(*(fleet.remove("a") for _ in range(10))) == [Left()] * 10
    assert len(await fleet.feed()) == 2


async def test_nobody_can_remove_what_was_never_there(fleet: Fleet) -> None:
    assert await fleet.remove("a") == Unknown()
    assert await fleet.feed() == []


async def test_who_died_is_unknown_and_stays_dead_not_removed(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await fleet.die("a", life)
    assert await fleet.remove("a", life) == Unknown()
    assert (await invariants(fleet.store)).gone["a"].startswith("no-response\t")


async def test_a_death_that_is_told_again_is_as_it_was(fleet: Fleet) -> None:
    """The answer to the first call may have been lost."""
    life = await fleet.add("a")
    assert await fleet.remove("a", life, cause="no-response") == Left()
    assert await fleet.remove("a", life, cause="no-response") == Left()
    assert len(await fleet.feed()) == 2


async def test_who_did_not_hear_that_it_is_back_stops_all_the_same(fleet: Fleet) -> None:
    """The answer to its registration was lost, so it knows the life before."""
    await fleet.add("a", former_life=T0 - 5)
    assert await fleet.remove("a", T0 - 5) == Left()
    assert (await invariants(fleet.store)).index == {}


async def test_a_late_stop_of_an_earlier_life_does_not_remove_the_later_one(fleet: Fleet) -> None:
    former = await fleet.add("a")
    later = await fleet.add("a")
    assert await fleet.remove("a", former) == Fenced(later)
    assert (await invariants(fleet.store)).index["a"].life == later


async def test_an_instance_is_removed_only_from_the_place_where_it_is(fleet: Fleet) -> None:
    await fleet.add("a")
    assert await fleet.remove("a", service="game:us") == Unknown()
    assert await fleet.remove("a", service="gate:eu") == Unknown()
    assert (await invariants(fleet.store)).index.keys() == {"a"}
    assert await fleet.remove("a", service="game:eu") == Left()


async def test_a_suspect_can_be_removed(fleet: Fleet) -> None:
    await fleet.add("a")
    await fleet.pass_time(20)
    assert await fleet.remove("a") == Left()
    await fleet.pass_time(20)
    assert [event for event, *_ in await fleet.told()] == ["added", "changed", "removed"]
    await invariants(fleet.store)


async def test_the_operators_order_outlives_the_instance(fleet: Fleet) -> None:
    await fleet.add("a", server_id="501")
    await fleet.override("a", b'{"drain":true}')
    await fleet.remove("a")
    assert (await fleet.feed())[-1].fields["override"] == '{"drain":true}'
