"""heartbeat.lua: a beat renews, says what is new, and never revives."""

from __future__ import annotations

import pytest

from roost.discovery.model import beat_of
from roost.discovery.scripts import Drain, Fenced, Ok, Removed, Unknown
from tests.store.discovery.fleet import SECOND, T0, Fleet, invariants


async def test_a_beat_renews_the_lease(any_fleet: Fleet) -> None:
    life = await any_fleet.add("a")
    await any_fleet.pass_time(14)

    assert await any_fleet.beat("a", life) == Ok()

    found = await any_fleet.pass_time(14)
    assert (found.suspected, found.ended) == ([], [])
    await invariants(any_fleet.store)


async def test_a_beat_by_id_alone_renews_too(fleet: Fleet) -> None:
    await fleet.add("a")
    found = await fleet.pass_time(40, beating=["a"])
    assert (found.suspected, found.ended) == ([], [])


async def test_a_beat_updates_load_status_performance_and_time(fleet: Fleet) -> None:
    life = await fleet.add("a", load=1)
    fleet.now += 5 * SECOND

    await fleet.beat("a", life, status="draining", load=42, performance=b'{"fps":30,"gpu":{"t":1}}')

    beat = await fleet.kept_beat("a")
    assert (beat.status, beat.load, beat.performance) == ("draining", 42, {"fps": 30, "gpu": {"t": 1}})
    assert beat.beat_ms == (T0 + 5 * SECOND) // 1000
    await invariants(fleet.store)


async def test_what_a_beat_leaves_out_stays_as_it_was(fleet: Fleet) -> None:
    await fleet.add("a", status="initializing", load=9, performance=b'{"text":"}\\"{","n":[1,2]}')
    for _ in range(3):
        await fleet.beat("a")
    beat = await fleet.kept_beat("a")
    assert (beat.status, beat.load) == ("initializing", 9)
    assert beat.performance == {"text": '}"{', "n": [1, 2]}


async def test_a_beat_never_shortens_a_lease(fleet: Fleet) -> None:
    """A failover to a replica that lost the last looks sets the lease clock back."""
    await fleet.pass_time(10)
    await fleet.add("a")
    before = (await invariants(fleet.store)).leases["a"]
    await fleet.damage("HSET", "meta", "clock_ms", 2000)
    fleet.now -= 3600 * SECOND
    await fleet.beat("a")
    assert (await invariants(fleet.store)).leases["a"] == before


# -- answers


async def test_an_instance_that_nobody_knows_shall_register(any_fleet: Fleet) -> None:
    assert await any_fleet.beat("a", T0) == Unknown()
    assert await any_fleet.beat("a") == Unknown()
    assert (await invariants(any_fleet.store)).index == {}


@pytest.mark.parametrize("cause", ["terminated", "removed"])
async def test_g4_a_late_beat_of_a_removed_instance_never_revives_it(fleet: Fleet, cause: str) -> None:
    life = await fleet.add("a")
    await fleet.remove("a", cause=cause)
    before = await invariants(fleet.store)

    assert await fleet.beat("a", life, load=5) == Removed(cause)
    assert await fleet.beat("a", load=5) == Removed(cause)

    assert await invariants(fleet.store) == before


async def test_who_died_of_silence_shall_register_again(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await fleet.die("a", life)
    assert await fleet.beat("a", life) == Unknown()
    assert (await invariants(fleet.store)).index == {}


async def test_a_life_after_the_removed_one_is_unknown_not_removed(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await fleet.remove("a")
    assert await fleet.beat("a", life + 1) == Unknown()


async def test_g4_a_beat_of_an_earlier_life_is_fenced_and_renews_nothing(fleet: Fleet) -> None:
    former = await fleet.add("a")
    later = await fleet.add("a")
    before = await invariants(fleet.store)

    assert await fleet.beat("a", former, status="draining", load=99) == Fenced(later)

    assert await invariants(fleet.store) == before


async def test_g4_a_late_beat_does_not_touch_the_life_that_follows_a_removal(fleet: Fleet) -> None:
    former = await fleet.add("a")
    await fleet.remove("a", cause="removed")
    later = await fleet.add("a")
    assert await fleet.beat("a", former) == Fenced(later)


async def test_g4_who_did_not_hear_that_it_is_back_shall_register_again(fleet: Fleet) -> None:
    """The store forgot it, it registered again, and the answer was lost: its beats are of the life before."""
    former = T0 - 5
    life = await fleet.add("a", former_life=former)
    before = await invariants(fleet.store)

    assert await fleet.beat("a", former, load=99) == Unknown()

    assert await invariants(fleet.store) == before
    assert await fleet.beat("a", life) == Ok()


async def test_a_life_that_a_failover_lost_shall_register_again(fleet: Fleet) -> None:
    life = await fleet.add("a")
    assert await fleet.beat("a", life + 10) == Unknown()


async def test_an_instance_without_its_beat_shall_register_again(fleet: Fleet) -> None:
    """Damage by hand: registering again makes it whole."""
    life = await fleet.add("a")
    await fleet.damage("HDEL", "beats", "a", service="game:eu")

    assert await fleet.beat("a", life) == Unknown()

    await fleet.add("a", former_life=life)
    await invariants(fleet.store)


async def test_an_ordered_drain_is_answered_until_it_is_lifted(fleet: Fleet) -> None:
    await fleet.add("a", server_id="501")
    await fleet.override("a", b'{"drain":true}')
    assert await fleet.beat("a") == Drain()
    await fleet.override("a", b"")
    assert await fleet.beat("a") == Ok()


@pytest.mark.parametrize("order", [b'{"drain":false,"outOfService":true}', b'{"weight":5}'])
async def test_other_orders_are_not_a_drain(fleet: Fleet, order: bytes) -> None:
    await fleet.add("a")
    await fleet.override("a", order)
    assert await fleet.beat("a") == Ok()


# -- what is told


async def test_beats_without_news_tell_nothing(fleet: Fleet) -> None:
    await fleet.add("a", load=50, capacity=1000)
    for n in range(20):
        fleet.now += SECOND
        await fleet.beat("a", load=50 + n, status="ready", performance=b'{"n":%d}' % n)
    assert await fleet.told() == [("added", "a", "ready")]
    assert await fleet.history("a") == [("added", "ready")]


async def test_a_change_of_status_is_told_once(fleet: Fleet) -> None:
    await fleet.add("a", status="initializing")
    for _ in range(3):
        await fleet.beat("a", status="ready")
    assert await fleet.told() == [("added", "a", "initializing"), ("changed", "a", "ready")]
    assert await fleet.history("a") == [("added", "initializing"), ("changed", "ready")]


async def test_the_end_of_suspicion_is_told_once(fleet: Fleet) -> None:
    await fleet.add("a")
    await fleet.pass_time(15)
    await fleet.beat("a")
    await fleet.beat("a")
    assert await fleet.told() == [
        ("added", "a", "ready"),
        ("changed", "a", "suspect"),
        ("changed", "a", "ready"),
    ]
    assert not (await fleet.kept_beat("a")).suspect


async def test_load_is_told_when_it_moved_by_a_twentieth_of_the_capacity(fleet: Fleet) -> None:
    await fleet.add("a", load=0, capacity=100)
    for load in range(1, 101):
        await fleet.beat("a", load=load)
    told = [e.fields["beat"] for e in await fleet.feed() if e.fields["event"] == "changed"]
    assert [beat_of(beat).load for beat in told] == list(range(5, 101, 5))
    assert await fleet.history("a") == [("added", "ready")]  # load is no line of a life


async def test_load_that_swings_within_a_twentieth_is_never_told(fleet: Fleet) -> None:
    await fleet.add("a", load=50, capacity=100)
    for n in range(20):
        await fleet.beat("a", load=50 + (4 if n % 2 else -4))
    assert len(await fleet.feed()) == 1


async def test_falling_load_is_told_too(fleet: Fleet) -> None:
    await fleet.add("a", load=50, capacity=100)
    await fleet.beat("a", load=45)
    assert len(await fleet.feed()) == 2


@pytest.mark.parametrize(("capacity", "loads", "news"), [(4, [1, 2, 3], 3), (0, [1, 2], 2), (0, [0, 0], 0)])
async def test_a_step_is_at_least_one_user(fleet: Fleet, capacity: int, loads: list[int], news: int) -> None:
    await fleet.add("a", capacity=capacity)
    for load in loads:
        await fleet.beat("a", load=load)
    assert len(await fleet.feed()) == 1 + news


async def test_without_a_capacity_the_step_is_a_twentieth_of_the_load(fleet: Fleet) -> None:
    await fleet.add("a", capacity=0, load=1000)
    for load in (1020, 1049, 1050, 1099, 1103):
        await fleet.beat("a", load=load)
    assert len(await fleet.feed()) == 3


# -- a main loop that hangs


async def test_g2_a_beat_whose_main_loop_stands_makes_suspect_and_does_not_renew(fleet: Fleet) -> None:
    await fleet.add("a", load=1)
    before = (await invariants(fleet.store)).leases["a"]
    fleet.now += SECOND

    assert await fleet.beat("a", load=50, tick_age_ms=15_001) == Ok()

    state = await invariants(fleet.store)
    assert state.leases["a"] == before + 15_000  # suspect before its time, dead at its time
    beat = state.beats["game:eu"]["a"]
    assert (beat.silent, beat.unhealthy) == (True, False)
    assert await fleet.told() == [("added", "a", "ready"), ("changed", "a", "suspect")]


async def test_a_hung_server_is_told_once_and_dies_though_it_beats(fleet: Fleet) -> None:
    await fleet.add("a")
    ended: list[str] = []
    for second in range(1, 31):
        await fleet.beat("a", tick_age_ms=20_000)
        assert ended == [], f"dead after {second} s"
        ended += (await fleet.pass_time(1)).ended
    assert ended == ["a"]
    assert [event for event, *_ in await fleet.told()] == ["added", "changed", "removed"]


async def test_a_main_loop_that_is_just_slow_renews(fleet: Fleet) -> None:
    await fleet.add("a")
    await fleet.beat("a", tick_age_ms=15_000)
    assert not (await fleet.kept_beat("a")).suspect


async def test_a_main_loop_that_turns_again_ends_suspicion(fleet: Fleet) -> None:
    await fleet.add("a")
    await fleet.beat("a", tick_age_ms=20_000)
    await fleet.beat("a", tick_age_ms=10)
    assert not (await fleet.kept_beat("a")).suspect
    assert [status for *_, status in await fleet.told()] == ["ready", "suspect", "ready"]


async def test_suspicion_that_ended_begins_anew_after_half_a_lease(fleet: Fleet) -> None:
    await fleet.add("a")
    await fleet.pass_time(5)
    await fleet.beat("a", tick_age_ms=20_000)
    await fleet.beat("a")
    assert (await fleet.pass_time(14)).suspected == []
    assert (await fleet.pass_time(1)).suspected == ["a"]
    assert (await fleet.pass_time(14)).ended == []
    assert (await fleet.pass_time(1)).ended == ["a"]


async def test_a_hung_server_is_told_to_drain_all_the_same(fleet: Fleet) -> None:
    await fleet.add("a")
    await fleet.override("a", b'{"drain":true}')
    assert await fleet.beat("a", tick_age_ms=20_000) == Drain()
