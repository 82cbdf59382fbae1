"""sweep.lua: silence makes suspect, the end of the lease makes dead; told once, and never all at once."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from roost.discovery.scripts import Ok, Swept
from roost.store.store import Store
from roost.store.url import parse_store_url
from roost.testing import RunningServer
from tests.store.discovery.fleet import SECOND, Fleet, invariants, read_state

HOUR = 3600 * SECOND


async def add_many(fleet: Fleet, count: int) -> list[str]:
    ids = [f"i{n:03}" for n in range(count)]
    await asyncio.gather(*(fleet.add(id_) for id_ in ids))
    return ids


async def test_g2_silent_for_half_its_lease_it_is_suspect_and_at_its_end_dead(any_fleet: Fleet) -> None:
    await any_fleet.add("a", server_id="501", ttl_s=20)

    assert (await any_fleet.pass_time(9)).suspected == []
    assert await any_fleet.pass_time(1) == Swept(10_000, [], ["a"], [])
    await invariants(any_fleet.store)
    assert (await any_fleet.pass_time(9)).ended == []
    assert await any_fleet.pass_time(1) == Swept(20_000, ["a"], [], [])

    state = await invariants(any_fleet.store)
    assert (state.index, state.names, state.services) == ({}, {}, set())
    assert state.gone["a"].startswith("no-response\t")
    assert await any_fleet.told() == [
        ("added", "a", "ready"),
        ("changed", "a", "suspect"),
        ("removed", "a", "no-response"),
    ]
    assert await any_fleet.history("a") == [
        ("added", "ready"),
        ("changed", "suspect"),
        ("removed", "no-response"),
    ]


async def test_a_lease_of_odd_length_is_halved_exactly(fleet: Fleet) -> None:
    await fleet.add("a", ttl_s=3.001)
    fleet.now += 1_500_000
    assert (await fleet.sweep()).suspected == []
    fleet.now += 1_000
    assert (await fleet.sweep()).suspected == ["a"]
    fleet.now += 1_499_000
    assert (await fleet.sweep()).ended == []
    fleet.now += 1_000
    assert (await fleet.sweep()).ended == ["a"]


async def test_each_has_a_lease_of_its_own(fleet: Fleet) -> None:
    await fleet.add("short", ttl_s=10)
    await fleet.add("long", ttl_s=60)
    found = await fleet.pass_time(30)
    assert (found.ended, found.suspected) == (["short"], ["short", "long"])


async def test_a_suspect_that_beats_lives_on(fleet: Fleet) -> None:
    await fleet.add("a")
    await fleet.pass_time(29)
    assert await fleet.beat("a") == Ok()
    assert (await fleet.pass_time(14)).ended == []


async def test_nobody_is_suspect_while_all_beat(fleet: Fleet) -> None:
    ids = await add_many(fleet, 5)
    found = await fleet.pass_time(60, beating=ids)
    assert (found.ended, found.suspected, found.held) == ([], [], [])
    assert len(await fleet.feed()) == 5


async def test_an_empty_store_is_swept_in_peace(fleet: Fleet) -> None:
    assert await fleet.pass_time(3) == Swept(3000, [], [], [])


async def test_a_lease_that_nobody_has_is_dropped(fleet: Fleet) -> None:
    await fleet.damage("ZADD", "leases", 1, "ghost")
    assert await fleet.pass_time(1) == Swept(1000, [], [], [])
    await invariants(fleet.store)


# -- lease time


@pytest.mark.parametrize("gap", [HOUR, -HOUR, 24 * HOUR, 40 * SECOND])
async def test_g3_a_store_that_was_away_expires_nobody(fleet: Fleet, gap: int) -> None:
    """Nobody looked meanwhile: the silence is ours, not theirs."""
    ids = await add_many(fleet, 20)
    await fleet.pass_time(10)

    fleet.now += gap
    found = await fleet.pass_time(1)

    assert (found.ended, found.suspected) == ([], [])
    found = await fleet.pass_time(60, beating=ids)
    assert (found.ended, found.suspected) == ([], [])


async def test_g3_many_gaps_cost_one_step_each(fleet: Fleet) -> None:
    await fleet.add("a", ttl_s=30)
    for _ in range(14):
        fleet.now += HOUR
        assert (await fleet.sweep()).ended == []
    fleet.now += HOUR
    assert (await fleet.sweep()).clock_ms == 30_000


async def test_g3_a_registration_after_a_gap_has_its_whole_lease(fleet: Fleet) -> None:
    fleet.now += HOUR
    await fleet.add("a")
    await fleet.pass_time(12)
    assert not (await fleet.kept_beat("a")).suspect


async def test_g3_without_sweeps_nobody_expires(fleet: Fleet) -> None:
    await fleet.add("a")
    fleet.now += HOUR
    await fleet.beat("a", tick_age_ms=0)
    await fleet.add("b")
    assert (await invariants(fleet.store)).index.keys() == {"a", "b"}
    assert (await fleet.sweep()).ended == []


# -- the budget


async def silence(fleet: Fleet, count: int) -> tuple[list[str], Swept]:
    """All fall silent in the same moment; returns them and the sweep in which their leases end."""
    ids = await add_many(fleet, count)
    found = await fleet.pass_time(29)
    assert (sorted(found.suspected), found.ended) == (ids, [])
    return ids, await fleet.pass_time(1)


@pytest.mark.parametrize(("count", "ending"), [(1, 1), (2, 1), (6, 1), (13, 1), (14, 2), (40, 6), (100, 15)])
async def test_a_sweep_ends_at_most_15_percent_and_at_least_one(
    fleet: Fleet, count: int, ending: int
) -> None:
    ids, swept = await silence(fleet, count)
    assert len(swept.ended) == ending
    assert sorted(swept.ended + swept.held) == ids
    state = await invariants(fleet.store)
    assert state.index.keys() == set(swept.held)


async def test_g3_a_fleet_whose_leases_end_one_after_the_other_is_protected_too(fleet: Fleet) -> None:
    """The beats of a fleet are spread over their interval, and so are the ends of its leases."""
    for n in range(100):
        await fleet.add(f"i{n:03}")
        if n % 10 == 9:
            fleet.now += SECOND
            await fleet.sweep()
    ended: list[str] = []
    for _ in range(40):
        fleet.now += SECOND
        ended += (await fleet.sweep()).ended
    assert 15 <= len(ended) <= 45
    await invariants(fleet.store)


async def test_g3_no_ten_seconds_of_a_mass_silence_end_more_than_the_budget(fleet: Fleet) -> None:
    """Also not the last of one window and the first of the next."""
    for n in range(200):
        await fleet.add(f"i{n:03}")
        if n % 10 == 9:
            fleet.now += SECOND
            await fleet.sweep()
    ends: list[tuple[int, int, int]] = []
    """Second, how many ended, how many there were before."""
    for second in range(60):
        fleet.now += SECOND
        before = len((await read_state(fleet.store)).index)
        ends.append((second, len((await fleet.sweep()).ended), before))
    for first, _, before in ends:
        ended = sum(count for second, count, _ in ends if first <= second < first + 10)
        assert ended <= before * 15 // 100 + 1, f"{ended} of {before} in the ten seconds from {first}"
    assert sum(count for _, count, _ in ends) > 30


async def test_those_beyond_the_budget_are_suspect_and_get_another_lease(fleet: Fleet) -> None:
    _, swept = await silence(fleet, 40)

    found = await fleet.pass_time(29)

    assert (found.ended, found.held) == ([], [])
    beats = (await invariants(fleet.store)).beats["game:eu"]
    assert beats.keys() == set(swept.held)
    assert all(beat.suspect for beat in beats.values())
    again = await fleet.pass_time(1)
    assert len(again.ended) == 5  # 15 % of 34
    assert sorted(again.ended + again.held) == sorted(swept.held)


async def test_who_was_held_is_told_as_suspect_once(fleet: Fleet) -> None:
    await silence(fleet, 20)
    await fleet.pass_time(40)
    suspected = Counter(e.fields["id"] for e in await fleet.feed() if e.fields.get("status") == "suspect")
    assert set(suspected.values()) == {1}


async def test_who_was_held_and_beats_is_ready_again(fleet: Fleet) -> None:
    _, swept = await silence(fleet, 20)
    await fleet.beat(swept.held[0])
    assert not (await fleet.kept_beat(swept.held[0])).suspect
    assert swept.held[0] not in (await fleet.pass_time(29, beating=swept.held[:1])).ended


async def test_the_order_in_which_they_end_is_random(fleet: Fleet) -> None:
    victims = set()
    for _ in range(5):
        await fleet.store.call("FLUSHALL")
        await fleet.sweep()
        fleet.now += 777
        _, swept = await silence(fleet, 20)
        victims.add(frozenset(swept.ended))
    assert len(victims) > 1


async def test_g2_a_sweep_looks_at_no_more_than_its_limit_and_the_next_ones_at_the_rest(fleet: Fleet) -> None:
    ids = await add_many(fleet, 10)
    for _ in range(14):
        fleet.now += SECOND
        await fleet.sweep()
    fleet.now += SECOND
    found = [await fleet.sweep(limit=4) for _ in range(4)]
    assert [len(swept.suspected) for swept in found] == [4, 4, 2, 0]
    assert sorted(id_ for swept in found for id_ in swept.suspected) == ids
    await invariants(fleet.store)


# -- many sweepers


@pytest.mark.parametrize("sweepers", [2, 5])
async def test_g3_many_sweepers_advance_time_once_and_tell_each_death_once(
    server: RunningServer, fleet: Fleet, sweepers: int
) -> None:
    ids = await add_many(fleet, 30)
    stores = [await Store.open(parse_store_url(server.url)) for _ in range(sweepers)]
    fleets = [Fleet(store) for store in stores]
    ended: list[str] = []
    suspected: list[str] = []
    try:
        for second in range(1, 121):
            now = fleet.now + second * SECOND
            for sweeper in fleets:
                sweeper.now = now
            found = await asyncio.gather(*(sweeper.sweep() for sweeper in fleets))
            assert {swept.clock_ms for swept in found} == {second * 1000}
            ended += [id_ for swept in found for id_ in swept.ended]
            suspected += [id_ for swept in found for id_ in swept.suspected]
    finally:
        for store in stores:
            await store.close()

    assert sorted(suspected) == ids
    assert len(ended) == len(set(ended)) >= 10
    removed = [e.fields["id"] for e in await fleet.feed() if e.fields["event"] == "removed"]
    assert sorted(removed) == sorted(ended)
    await invariants(fleet.store)


async def test_g3_sweepers_whose_looks_interleave_add_up_to_real_time(fleet: Fleet) -> None:
    """Five sweepers at odd moments: no microsecond is counted twice, and none is lost for good."""
    start = fleet.now
    swept = await fleet.sweep()
    for n in range(1, 1001):
        fleet.now = start + n * 12_345
        swept = await fleet.sweep()
    assert swept.clock_ms == 12_345
