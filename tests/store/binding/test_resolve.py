from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from roost.binding.scripts import Bound, Moving, NoServer, Placed
from roost.core.owner import Owner
from tests.store.binding.town import CLOSED, LEASE_MS, MS, SECOND, T0, Town, invariants


async def test_the_first_request_places_a_user_and_the_next_finds_them(any_town: Town) -> None:
    owner = await any_town.opens("s1", 7)

    placed = await any_town.placed("ann")

    assert (placed.owner, placed.previous, placed.why) == (owner, 0, "new")
    assert placed.epoch >= T0
    assert await any_town.resolve("ann") == Bound("s1", "7", placed.epoch, 0)
    assert await any_town.binders(owner) == ["ann"]
    await invariants(any_town)


async def test_of_many_at_once_all_find_the_same_home(town: Town) -> None:
    for number in range(5):
        await town.opens(f"s{number}")

    answers = await asyncio.gather(*(town.resolve("ann") for _ in range(50)))

    assert len({(a.server_id, a.epoch) for a in answers if isinstance(a, (Bound, Placed))}) == 1
    assert sum(isinstance(answer, Placed) for answer in answers) == 1


async def test_nobody_takes_them_and_the_answer_says_why(town: Town) -> None:
    assert await town.resolve("ann") == NoServer("none registered")

    await town.opens("s1", state="0")
    assert await town.resolve("ann") == NoServer("none willing")

    await town.opens("s2", cap=1)
    await town.placed("bob")
    assert await town.resolve("ann") == NoServer("all full")

    await town.opens("s3", version="1")
    assert await town.resolve("ann", version="2") == NoServer("version")
    assert (await town.placed("ann", version="1")).server_id == "s3"


async def test_a_server_that_has_not_beaten_takes_nobody(town: Town) -> None:
    await town.lead()
    await town.sync(("s1", 7, "1"))

    assert await town.resolve("ann") == NoServer("none willing")

    await town.beat("s1", 7)
    assert (await town.placed("ann")).server_id == "s1"


async def test_a_server_whose_lease_ended_takes_nobody_and_is_ranked_last(town: Town) -> None:
    await town.opens("s1")
    await town.opens("s2")
    await town.pass_ms(LEASE_MS, beating=[("s2", 7)])

    for user in ("a", "b", "c"):
        assert (await town.placed(user)).server_id == "s2"

    state = await invariants(town)
    assert state.ranking["entity"]["s1"] == CLOSED


async def test_whose_owner_is_dead_is_placed_anew_above_the_old_epoch(town: Town) -> None:
    dead = await town.opens("s1")
    was = await town.placed("ann")
    await town.opens("s2")
    await town.pass_ms(LEASE_MS, beating=[("s2", 7)])

    now = await town.placed("ann")

    assert (now.server_id, now.previous, now.why) == ("s2", was.epoch, "failover")
    assert now.epoch > was.epoch
    assert await town.binders(dead) == []
    await invariants(town)


async def test_a_caller_that_saw_a_later_epoch_gets_one_above_it(town: Town) -> None:
    """R7: a store that lost a grant would have every reply dropped for ever."""
    await town.opens("s1")
    was = await town.placed("ann")
    seen = was.epoch + 10 * SECOND

    again = await town.placed("ann", seen=seen)

    assert (again.server_id, again.epoch, again.previous, again.why) == ("s1", seen + 1, was.epoch, "seen")
    assert await town.resolve("ann", seen=seen) == Bound("s1", "7", seen + 1, was.epoch)
    await invariants(town)


async def test_epochs_rise_over_a_clock_that_went_back(town: Town) -> None:
    owner = await town.opens("s1")
    was = await town.placed("ann")
    town.now -= 3600 * SECOND
    await town.release("ann", owner, was.epoch)

    again = await town.placed("ann")

    assert (again.epoch, again.previous, again.why) == (was.epoch + 1, was.epoch, "return")


async def test_without_placing_it_only_says_so(town: Town) -> None:
    await town.opens("s1")
    assert await town.resolve("ann", place=False) == NoServer("unplaced")
    assert await town.read("ann") is None


# -- which server


async def test_the_less_loaded_of_two_is_taken(town: Town) -> None:
    await town.opens("s1")
    for user in ("a", "b"):
        await town.placed(user)
    await town.opens("s2")

    assert [(await town.placed(user)).server_id for user in ("c", "d")] == ["s2", "s2"]


async def test_users_spread_evenly_and_the_seat_counts_at_once(town: Town) -> None:
    for number in range(10):
        await town.opens(f"s{number}")
    for number in range(500):
        town.draw = (number * 7919 * 104_729 + 12_345) % 2**48
        await town.placed(f"u{number}")

    loads = [len(users) for users in (await invariants(town)).binders.values()]

    assert sum(loads) == 500
    assert min(loads) >= 40
    assert max(loads) <= 60


async def test_a_new_server_is_not_flooded(town: Town) -> None:
    town.slow_ms = 30_000
    for number in range(10):
        await town.opens(f"s{number}")
    servers = [(f"s{number}", 7) for number in range(10)]
    for number in range(200):
        town.draw = (number * 7919 * 104_729 + 12_345) % 2**48
        await town.placed(f"u{number}")
    await town.pass_ms(40_000, beating=servers)
    await town.opens("fresh")

    taken = Counter[str]()
    for number in range(200):
        town.draw = ((number + 999) * 7919 * 104_729 + 54_321) % 2**48
        taken[(await town.placed(f"v{number}")).server_id] += 1

    assert taken["fresh"] <= 200 * 2 / 11 * 0.3, "an empty server beside full ones would take all of them"
    await town.pass_ms(40_000, beating=[*servers, ("fresh", 7)])
    for number in range(200):
        town.draw = ((number + 999) * 7919 * 104_729 + 54_321) % 2**48
        taken[(await town.placed(f"w{number}")).server_id] += 1
    assert taken["fresh"] >= 20


async def test_a_new_server_takes_everybody_where_it_is_alone(town: Town) -> None:
    town.slow_ms = 30_000
    await town.opens("s1")
    for draw in range(0, 5000, 100):
        town.draw = draw
        await town.placed(f"u{draw}")
    assert len(await town.binders(Owner("s1", "7"))) == 50


async def test_two_types_have_their_own_servers_and_homes(town: Town) -> None:
    await town.opens("s1", type_="entity")
    await town.opens("r1", type_="room")

    assert (await town.placed("ann", type_="entity")).server_id == "s1"
    assert (await town.placed("ann", type_="room")).server_id == "r1"
    await invariants(town)


# -- marks of a move: built by the next issue, resolved by any reader of this one


async def test_a_user_on_the_move_is_waited_for(town: Town) -> None:
    await town.opens("s1")
    was = await town.placed("ann")
    target = await town.opens("s2")
    await town.marks("ann", target, left_ms=500, next_epoch=was.epoch + 5)

    assert await town.resolve("ann") == Moving("s1", "7", was.epoch, 500)
    await invariants(town)


async def test_any_reader_resolves_a_mark_that_has_ended(town: Town) -> None:
    owner = await town.opens("s1")
    was = await town.placed("ann")
    target = await town.opens("s2")
    await town.marks("ann", target, left_ms=500, next_epoch=was.epoch + 5 * SECOND)
    town.now += 500 * MS

    again = await town.placed("ann")

    assert (again.owner, again.previous, again.why) == (owner, was.epoch, "move-expired")
    assert again.epoch > was.epoch + 5 * SECOND, "the target's late claim under its epoch must fail"
    assert await town.binders(target) == []
    await invariants(town)


async def test_a_mark_whose_source_died_is_resolved_by_placing(town: Town) -> None:
    await town.opens("s1")
    was = await town.placed("ann")
    target = await town.opens("s2")
    await town.marks("ann", target, left_ms=500, next_epoch=was.epoch + 5)
    await town.pass_ms(LEASE_MS, beating=[("s2", 7)])

    again = await town.placed("ann")

    assert (again.owner, again.why) == (target, "failover")
    assert again.epoch > was.epoch + 5
    await invariants(town)


@pytest.mark.parametrize("user", ["a:b", "ünï", "x" * 128])
async def test_any_id_of_a_user_will_do(town: Town, user: str) -> None:
    owner = await town.opens("s1")
    await town.placed(user)
    assert await town.binders(owner) == [user]
    await invariants(town)
