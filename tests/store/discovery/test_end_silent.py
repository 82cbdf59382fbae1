"""end_silent.lua: a death that a probe confirmed, of a suspect and of the same life only."""

from __future__ import annotations

import asyncio

from roost.discovery.scripts import Alive, Ended
from tests.store.discovery.fleet import Fleet, invariants


async def test_a_confirmed_death_ends_a_suspect_at_once(any_fleet: Fleet) -> None:
    life = await any_fleet.add("a", server_id="501")
    await any_fleet.pass_time(15)

    assert await any_fleet.end_silent("a", life) == Ended()

    state = await invariants(any_fleet.store)
    assert (state.index, state.names, state.services) == ({}, {}, set())
    assert state.gone["a"].startswith(f"no-response\t{life}\t")
    assert (await any_fleet.told())[-1] == ("removed", "a", "no-response")


async def test_who_is_not_suspect_is_not_ended(fleet: Fleet) -> None:
    life = await fleet.add("a")
    assert await fleet.end_silent("a", life) == Alive()
    assert (await invariants(fleet.store)).index.keys() == {"a"}


async def test_who_has_beaten_since_the_probe_is_not_ended(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await fleet.pass_time(15)
    await fleet.beat("a")
    assert await fleet.end_silent("a", life) == Alive()


async def test_a_later_life_is_not_ended_for_an_earlier_one(fleet: Fleet) -> None:
    former = await fleet.add("a")
    later = await fleet.add("a")
    await fleet.pass_time(15)
    assert await fleet.end_silent("a", former) == Alive()
    assert (await invariants(fleet.store)).index["a"].life == later


async def test_nobody_is_ended_who_was_never_there_or_is_out(fleet: Fleet) -> None:
    assert await fleet.end_silent("a", 1) == Alive()
    life = await fleet.add("a")
    await fleet.remove("a")
    assert await fleet.end_silent("a", life) == Alive()
    assert (await invariants(fleet.store)).gone["a"].startswith("terminated")


async def test_many_who_end_one_tell_it_once(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await fleet.pass_time(15)
    answers = await asyncio.gather(*(fleet.end_silent("a", life) for _ in range(5)))
    assert answers.count(Ended()) == 1
    assert [event for event, *_ in await fleet.told()] == ["added", "changed", "removed"]


async def test_confirmed_deaths_know_no_budget(fleet: Fleet) -> None:
    lives = {f"i{n}": await fleet.add(f"i{n}") for n in range(20)}
    await fleet.pass_time(15)
    for id_, life in lives.items():
        assert await fleet.end_silent(id_, life) == Ended()
    assert (await invariants(fleet.store)).index == {}
