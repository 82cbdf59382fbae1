"""register.lua: an instance is there with all that belongs to it, or not at all."""

from __future__ import annotations

import asyncio

import pytest

from roost.discovery.model import beat_of
from roost.discovery.scripts import Fenced, Registered, Removed, Taken, Unknown
from tests.store.discovery.fleet import SECOND, T0, Fleet, invariants


async def test_a_registered_instance_is_in_every_index(any_fleet: Fleet) -> None:
    life = await any_fleet.add("a", server_id="501", load=7, performance=b'{"fps":60}')

    state = await invariants(any_fleet.store)
    assert state.index["a"].life == life
    assert state.names == {"game:501": "a"}
    assert state.services == {"game:eu"}
    beat = state.beats["game:eu"]["a"]
    assert (beat.status, beat.load, beat.suspect, beat.performance) == ("ready", 7, False, {"fps": 60})
    assert beat.beat_ms == T0 // 1000
    assert await any_fleet.told() == [("added", "a", "ready")]


async def test_the_feed_entry_carries_record_and_beat(fleet: Fleet) -> None:
    life = await fleet.add("a", server_id="501")
    fields = (await fleet.feed())[0].fields
    assert (fields["service"], fields["life"], fields["serverId"]) == ("game:eu", str(life), "501")
    assert '"serverId":"501"' in fields["record"]
    assert beat_of(fields["beat"]).life == life
    assert fields["override"] == ""


async def test_without_a_server_id_the_id_stands_for_it(fleet: Fleet) -> None:
    await fleet.add("a")
    assert (await fleet.feed())[0].fields["serverId"] == "a"
    assert (await invariants(fleet.store)).names == {}


# -- lives


async def test_the_same_attempt_gives_the_same_life_and_is_told_once(fleet: Fleet) -> None:
    """The reply was lost and the link repeated the call."""
    first = await fleet.register("a", nonce="x")
    fleet.now += SECOND
    assert await fleet.register("a", nonce="x") == first
    assert len(await fleet.feed()) == 1


async def test_a_repeated_attempt_is_answered_also_when_it_named_its_former_life(fleet: Fleet) -> None:
    former = await fleet.add("a")
    second = await fleet.register("a", nonce="x", former_life=former)
    assert await fleet.register("a", nonce="x", former_life=former) == second


async def test_another_attempt_gives_a_larger_life(fleet: Fleet) -> None:
    lives = [await fleet.add("a") for _ in range(5)]
    assert lives == sorted(set(lives))
    await invariants(fleet.store)


async def test_lives_grow_also_when_the_clock_goes_back(fleet: Fleet) -> None:
    lives = []
    for step in (0, -3600 * SECOND, -1, 5 * SECOND, -7200 * SECOND):
        fleet.now += step
        lives.append(await fleet.add("a"))
        lives.append(await fleet.add("b"))
    assert lives == sorted(set(lives))
    await invariants(fleet.store)


async def test_a_life_after_a_loss_of_all_data_is_larger_than_those_before(fleet: Fleet) -> None:
    before = await fleet.add("a")
    await fleet.store.call("FLUSHALL")
    fleet.now += 1
    assert await fleet.add("a", former_life=before) > before
    await invariants(fleet.store)


async def test_concurrent_registrations_have_lives_of_their_own(fleet: Fleet) -> None:
    lives = await asyncio.gather(*(fleet.add(f"i{n}") for n in range(100)))
    assert len(set(lives)) == 100
    await invariants(fleet.store)


# -- server ids


async def test_a_server_id_is_unique_among_the_live_of_a_type(any_fleet: Fleet) -> None:
    await any_fleet.add("a", server_id="501", group="eu")
    assert await any_fleet.register("b", server_id="501", group="us") == Taken("a", 30_000)
    assert (await invariants(any_fleet.store)).index.keys() == {"a"}


async def test_who_waits_for_a_server_id_is_told_how_long(fleet: Fleet) -> None:
    await fleet.add("a", server_id="501", ttl_s=20)
    for left_s in (14, 8, 2):  # before and after it is suspect
        await fleet.pass_time(6)
        assert await fleet.register("b", server_id="501") == Taken("a", left_s * 1000)


async def test_another_type_may_use_the_same_server_id(fleet: Fleet) -> None:
    await fleet.add("a", server_id="501", type="game")
    await fleet.add("b", server_id="501", type="gate")
    assert (await invariants(fleet.store)).names == {"game:501": "a", "gate:501": "b"}


async def test_of_many_who_want_a_server_id_one_gets_it(fleet: Fleet) -> None:
    answers = await asyncio.gather(*(fleet.register(f"i{n}", server_id="501") for n in range(20)))
    assert sum(isinstance(answer, Registered) for answer in answers) == 1
    await invariants(fleet.store)


async def test_a_server_id_is_free_after_a_clean_stop(fleet: Fleet) -> None:
    await fleet.add("a", server_id="501")
    await fleet.remove("a")
    await fleet.add("b", server_id="501")
    assert (await invariants(fleet.store)).names == {"game:501": "b"}


async def test_a_server_id_is_free_after_a_death(fleet: Fleet) -> None:
    await fleet.add("a", server_id="501")
    await fleet.pass_time(29)
    assert isinstance(await fleet.register("b", server_id="501"), Taken)
    await fleet.pass_time(1)
    await fleet.add("b", server_id="501")
    assert (await invariants(fleet.store)).names == {"game:501": "b"}


async def test_a_server_id_whose_bearer_does_not_exist_can_be_taken(fleet: Fleet) -> None:
    """A person deleted the bearer's entry; the name must not be lost for ever."""
    await fleet.add("a", server_id="501")
    await fleet.damage("HDEL", "index", "a")
    await fleet.add("b", server_id="501")


# -- registering again


@pytest.mark.parametrize(
    "change",
    [{"group": "us"}, {"type": "gate"}, {"server_id": "502"}, {"server_id": ""}, {"capacity": 5}],
    ids=["group", "type", "serverId", "no serverId", "capacity"],
)
async def test_registering_again_as_something_else_leaves_nothing_behind(
    any_fleet: Fleet, change: dict[str, str]
) -> None:
    await any_fleet.add("a", server_id="501")
    await any_fleet.add("a", **{"server_id": "501", **change})
    await invariants(any_fleet.store)


async def test_a_place_that_others_still_live_in_stays_when_one_moves_out(fleet: Fleet) -> None:
    await fleet.add("a")
    await fleet.add("b")
    await fleet.add("a", group="us")
    assert (await invariants(fleet.store)).services == {"game:eu", "game:us"}


async def test_g1_who_watches_the_old_place_is_told_that_it_left(fleet: Fleet) -> None:
    """Else a watcher of one group would keep an instance that moved to another for ever."""
    first = await fleet.add("a", group="eu")
    await fleet.add("a", group="us")

    told = [(e.fields["event"], e.fields["service"]) for e in await fleet.feed()]
    assert told == [("added", "game:eu"), ("removed", "game:eu"), ("added", "game:us")]
    left = (await fleet.feed())[1].fields
    assert (left["life"], left["record"]) == (str(first), "")


async def test_g1_who_watches_a_label_is_told_when_the_label_is_gone(fleet: Fleet) -> None:
    await fleet.add("a", labels={"map": "desert"})
    await fleet.add("a", labels={"map": "ice"})
    assert [event for event, *_ in await fleet.told()] == ["added", "removed", "added"]


async def test_registering_again_as_the_same_is_told_as_one_addition(fleet: Fleet) -> None:
    await fleet.add("a")
    await fleet.add("a")
    assert [event for event, *_ in await fleet.told()] == ["added", "added"]


async def test_a_refused_registration_changes_nothing(fleet: Fleet) -> None:
    await fleet.add("a", server_id="501")
    await fleet.add("b", server_id="502")
    before = await invariants(fleet.store)

    assert isinstance(await fleet.register("b", server_id="501", group="us"), Taken)

    assert await invariants(fleet.store) == before


async def test_a_new_registration_takes_the_new_lease_also_when_it_is_shorter(fleet: Fleet) -> None:
    await fleet.add("a", ttl_s=3600)
    await fleet.add("a", ttl_s=10)
    assert (await fleet.pass_time(10)).ended == ["a"]


async def test_a_new_registration_ends_suspicion(fleet: Fleet) -> None:
    await fleet.add("a")
    await fleet.pass_time(20)
    await fleet.add("a")
    assert not (await fleet.kept_beat("a")).suspect


# -- coming back by oneself


@pytest.mark.parametrize("cause", ["terminated", "removed"])
async def test_g4_who_was_removed_on_purpose_does_not_come_back_by_itself(fleet: Fleet, cause: str) -> None:
    life = await fleet.add("a")
    await fleet.remove("a", cause=cause)

    assert await fleet.register("a", former_life=life) == Removed(cause)
    assert (await invariants(fleet.store)).index == {}


async def test_who_was_removed_and_is_started_anew_may_register(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await fleet.remove("a", cause="removed")
    assert await fleet.add("a") > life
    assert (await invariants(fleet.store)).gone == {}


async def test_g4_who_was_taken_for_dead_comes_back(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await fleet.die("a", life)
    assert await fleet.add("a", former_life=life) > life
    assert (await invariants(fleet.store)).gone == {}


async def test_g4_whom_the_store_forgot_comes_back(fleet: Fleet) -> None:
    assert await fleet.add("a", former_life=T0 - 5) == T0


async def test_who_comes_back_while_it_is_known_gets_a_new_life(fleet: Fleet) -> None:
    life = await fleet.add("a")
    assert await fleet.add("a", former_life=life) > life


async def test_a_former_life_is_fenced_by_a_later_one(fleet: Fleet) -> None:
    former = await fleet.add("a")
    later = await fleet.add("a")
    assert await fleet.register("a", former_life=former) == Fenced(later)
    assert (await invariants(fleet.store)).index["a"].life == later


async def test_g4_who_comes_back_twice_from_one_life_has_one_life(fleet: Fleet) -> None:
    """The answer to the first attempt was lost, and the process tries anew."""
    former = T0 - 5
    life = await fleet.add("a", former_life=former)
    fleet.now += SECOND
    assert await fleet.register("a", former_life=former) == Registered(life)
    assert await fleet.told() == [("added", "a", "ready")]


async def test_g4_a_second_process_fences_who_did_not_hear_that_it_is_back(fleet: Fleet) -> None:
    former = T0 - 5
    await fleet.add("a", former_life=former)
    later = await fleet.add("a")
    assert await fleet.register("a", former_life=former) == Fenced(later)
    assert await fleet.beat("a", former) == Fenced(later)


async def test_a_removal_of_an_earlier_life_does_not_refuse_a_later_one(fleet: Fleet) -> None:
    """The removal that counts is that of its own life or of one after it."""
    life = await fleet.add("a")
    await fleet.remove("a", cause="removed")
    assert isinstance(await fleet.register("a", former_life=life + 1), Registered)


# -- history


async def test_the_history_stays_over_lives_and_expires_only_after_the_end(fleet: Fleet) -> None:
    await fleet.add("a")
    await fleet.remove("a")
    assert 0 < (await invariants(fleet.store)).ages["a"] <= 86_400
    await fleet.add("a", status="initializing")
    assert (await invariants(fleet.store)).ages["a"] == -1
    assert await fleet.history("a") == [
        ("added", "ready"),
        ("removed", "terminated"),
        ("added", "initializing"),
    ]


async def test_the_history_keeps_the_newest_32_lines(fleet: Fleet) -> None:
    await fleet.add("a")
    for n in range(40):
        await fleet.override("a", b"{}", f"order {n}")
    assert await fleet.history("a") == [("override", f"order {n}") for n in range(8, 40)]


async def test_the_empty_store_knows_nobody(fleet: Fleet) -> None:
    await invariants(fleet.store)
    assert await fleet.beat("a") == Unknown()


# -- one id, one server


async def test_an_id_that_is_the_server_id_of_another_is_taken(fleet: Fleet) -> None:
    await fleet.add("a", server_id="501")
    assert await fleet.register("501") == Taken("a", 30_000)
    assert await fleet.register("501", type="chat") != Taken("a", 30_000)


async def test_a_server_id_that_is_the_id_of_another_is_taken(fleet: Fleet) -> None:
    await fleet.add("501")
    assert await fleet.register("a", server_id="501") == Taken("501", 30_000)


async def test_an_instance_may_bear_its_own_id_as_server_id(fleet: Fleet) -> None:
    await fleet.add("501")
    await fleet.add("501", server_id="501")
    assert (await invariants(fleet.store)).names == {"game:501": "501"}
