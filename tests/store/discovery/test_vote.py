"""vote.lua: the majority of the live checkers decides who is unhealthy, and each turn is told once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from roost.discovery.health import HealthChecker
from roost.discovery.probes import Prober
from roost.discovery.scripts import Alive, Ok, Registered, Voted
from roost.discovery.service import CHECKER_TTL_MS, Discovery
from roost.store.keys.discovery import discovery_keys
from roost.store.store import Store
from roost.testing import RunningServer, eventually
from tests.store.discovery.fleet import SECOND, Fleet, invariants
from tests.store.examples import StoreMachine, run_machine

CHECKER_TTL_S = CHECKER_TTL_MS // 1000


async def leave(fleet: Fleet, checker: str) -> Voted:
    return await fleet.vote(checker, ttl_ms=0)


async def told_of(fleet: Fleet, id_: str = "a") -> list[str]:
    """Every status that the feed gave this instance, in order."""
    return [status for _, id_told, status in await fleet.told() if id_told == id_]


async def suspicion(fleet: Fleet, id_: str = "a") -> set[str]:
    beat = await fleet.kept_beat(id_)
    return {name for name in ("silent", "unhealthy") if getattr(beat, name)}


# -- the majority


async def test_one_checker_alone_decides(any_fleet: Fleet) -> None:
    life = await any_fleet.add("a")

    assert await any_fleet.vote("x", ("a", life)) == Voted(1, ["a", "1"])

    assert await suspicion(any_fleet) == {"unhealthy"}
    assert await told_of(any_fleet) == ["ready", "suspect"]
    assert await any_fleet.history("a") == [("added", "ready"), ("unhealthy", "suspect")]
    await invariants(any_fleet.store)


async def test_one_of_two_does_not_decide_and_two_of_two_do(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await fleet.vote("y")

    assert await fleet.vote("x", ("a", life)) == Voted(2, ["a", "1"])
    assert await told_of(fleet) == ["ready"]

    assert await fleet.vote("y", ("a", life)) == Voted(2, ["a", "2"])
    assert await told_of(fleet) == ["ready", "suspect"]


async def test_two_of_three_decide_and_the_third_adds_nothing(fleet: Fleet) -> None:
    life = await fleet.add("a")
    for checker in "xyz":
        await fleet.vote(checker)

    await fleet.vote("x", ("a", life))
    assert await told_of(fleet) == ["ready"]
    await fleet.vote("y", ("a", life))
    assert await told_of(fleet) == ["ready", "suspect"]
    assert await fleet.vote("z", ("a", life)) == Voted(3, ["a", "3"])
    assert await told_of(fleet) == ["ready", "suspect"]


async def test_votes_about_one_instance_do_not_count_for_another(fleet: Fleet) -> None:
    a, b = await fleet.add("a"), await fleet.add("b")
    await fleet.vote("x")
    await fleet.vote("y", ("a", a))
    found = await fleet.vote("x", ("b", b))
    assert (found.live, _as_dict(found.votes)) == (2, {"a": 1, "b": 1})
    assert await told_of(fleet, "a") == await told_of(fleet, "b") == ["ready"]


async def test_a_checker_that_names_an_instance_twice_has_one_vote(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await fleet.vote("y")
    assert await fleet.vote("x", ("a", life), ("a", life), ("a", life)) == Voted(2, ["a", "1"])
    assert await told_of(fleet) == ["ready"]


async def test_a_checkers_later_opinion_takes_the_place_of_its_earlier_one(fleet: Fleet) -> None:
    a, b = await fleet.add("a"), await fleet.add("b")
    await fleet.vote("x", ("a", a), ("b", b))
    assert await fleet.vote("x", ("b", b)) == Voted(1, ["b", "1"])
    assert (await suspicion(fleet, "a"), await suspicion(fleet, "b")) == (set(), {"unhealthy"})


async def test_two_of_four_are_not_a_majority(fleet: Fleet) -> None:
    life = await fleet.add("a")
    for checker in "wxyz":
        await fleet.vote(checker)
    for checker in "wx":
        await fleet.vote(checker, ("a", life))
    assert await told_of(fleet) == ["ready"]
    await fleet.vote("y", ("a", life))
    assert await told_of(fleet) == ["ready", "suspect"]
    await fleet.vote("w")
    assert await told_of(fleet) == ["ready", "suspect", "ready"]


async def test_many_who_vote_at_once_tell_it_once(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await asyncio.gather(*(fleet.vote(f"c{n}", ("a", life)) for n in range(9)))
    assert await told_of(fleet) == ["ready", "suspect"]


# -- who counts


async def test_a_silent_checker_stops_counting_and_the_majority_is_counted_anew(fleet: Fleet) -> None:
    life = await fleet.add("a", ttl_s=3600)
    await fleet.vote("silent")
    await fleet.vote("x", ("a", life))
    await fleet.pass_time(CHECKER_TTL_S)
    assert await fleet.vote("x", ("a", life)) == Voted(2, ["a", "1"])
    assert await told_of(fleet) == ["ready"]

    await fleet.pass_time(1)

    assert await fleet.vote("x", ("a", life)) == Voted(1, ["a", "1"])
    assert await told_of(fleet) == ["ready", "suspect"]


async def test_the_votes_of_a_silent_checker_stop_counting_too(fleet: Fleet) -> None:
    life = await fleet.add("a", ttl_s=3600)
    await fleet.vote("silent", ("a", life))
    await fleet.pass_time(CHECKER_TTL_S)
    await fleet.vote("x", ("a", life))
    assert await fleet.vote("y") == Voted(3, ["a", "2"])

    await fleet.pass_time(1)

    assert await fleet.vote("y") == Voted(2, ["a", "1"])
    assert await told_of(fleet) == ["ready", "suspect", "ready"]


async def test_without_lease_time_no_checker_falls_silent(fleet: Fleet) -> None:
    """Nobody sweeps: the store was away, or its clock was stepped."""
    life = await fleet.add("a")
    await fleet.vote("x", ("a", life))
    fleet.now += 3600 * SECOND
    assert await fleet.vote("y") == Voted(2, ["a", "1"])


async def test_a_checker_that_leaves_does_not_count_nor_do_its_votes(fleet: Fleet) -> None:
    a, b = await fleet.add("a"), await fleet.add("b")
    await fleet.vote("x", ("a", a))
    await fleet.vote("y", ("b", b))
    assert (await told_of(fleet, "a"), await told_of(fleet, "b")) == (
        ["ready", "suspect", "ready"],
        ["ready"],
    )

    assert await leave(fleet, "x") == Voted(1, ["b", "1"])

    assert (await suspicion(fleet, "a"), await suspicion(fleet, "b")) == (set(), {"unhealthy"})
    assert await told_of(fleet, "b") == ["ready", "suspect"]


async def test_the_last_one_that_leaves_changes_nothing(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await fleet.vote("x", ("a", life))

    assert await leave(fleet, "x") == Voted(0, [])

    assert await suspicion(fleet) == {"unhealthy"}
    assert await told_of(fleet) == ["ready", "suspect"]
    assert await fleet.vote("y") == Voted(1, [])
    assert await told_of(fleet) == ["ready", "suspect", "ready"]


async def test_a_checker_counts_while_it_runs(store: Store) -> None:
    discovery, key = Discovery(store), discovery_keys(store.keys)["checkers"]
    checker = HealthChecker(discovery, Prober(allow_local=True), ballot=discovery)

    async def counts() -> bool:
        return bool(await store.call("ZCARD", key, key=key) == 1)

    checker.start()
    await eventually(counts, "its first vote")
    await checker.stop()
    assert not await counts()


# -- beats and silence


async def test_a_beat_keeps_the_lease_and_does_not_clear_what_the_checkers_found(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await fleet.vote("x", ("a", life))

    found = await fleet.pass_time(40, beating=["a"])

    assert (found.suspected, found.ended) == ([], [])
    assert await suspicion(fleet) == {"unhealthy"}
    assert await told_of(fleet) == ["ready", "suspect"]


async def test_the_silent_and_unhealthy_is_told_once_and_ends_when_its_lease_ends(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await fleet.vote("x", ("a", life))
    assert (await fleet.pass_time(15)).suspected == ["a"]
    assert await suspicion(fleet) == {"silent", "unhealthy"}
    assert (await fleet.pass_time(14)).ended == []
    assert (await fleet.pass_time(1)).ended == ["a"]
    assert await told_of(fleet) == ["ready", "suspect", "no-response"]


async def test_the_unhealthy_after_the_silent_is_told_once_too(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await fleet.pass_time(15)
    await fleet.vote("x", ("a", life))
    assert await suspicion(fleet) == {"silent", "unhealthy"}
    assert await told_of(fleet) == ["ready", "suspect"]
    assert (await fleet.history("a"))[-1] == ("unhealthy", "suspect")


async def test_who_beats_again_stays_suspect_until_the_checkers_agree(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await fleet.vote("x", ("a", life))
    await fleet.vote("y", ("a", life))
    await fleet.pass_time(15)

    assert await fleet.beat("a") == Ok()
    assert await suspicion(fleet) == {"unhealthy"}
    assert await told_of(fleet) == ["ready", "suspect"]

    await fleet.vote("x")
    assert await told_of(fleet) == ["ready", "suspect", "ready"]


async def test_who_the_checkers_find_well_stays_suspect_until_it_beats(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await fleet.vote("x", ("a", life))
    await fleet.pass_time(15)
    await fleet.vote("x")
    assert await suspicion(fleet) == {"silent"}
    assert await told_of(fleet) == ["ready", "suspect"]
    await fleet.beat("a")
    assert await told_of(fleet) == ["ready", "suspect", "ready"]


async def test_a_recovery_is_told_once(fleet: Fleet) -> None:
    life = await fleet.add("a", status="draining")
    for checker in "xyz":
        await fleet.vote(checker, ("a", life))
    for checker in "xyz":
        await fleet.vote(checker)
    await fleet.beat("a")
    assert await told_of(fleet) == ["draining", "suspect", "draining"]
    assert await fleet.history("a") == [
        ("added", "draining"),
        ("unhealthy", "suspect"),
        ("recovered", "draining"),
    ]


async def test_a_change_of_the_unhealthy_is_told_as_suspect(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await fleet.vote("x", ("a", life))
    await fleet.beat("a", status="draining")
    await fleet.beat("a", load=50)
    assert await told_of(fleet) == ["ready", "suspect", "suspect", "suspect"]
    await fleet.vote("x")
    assert (await told_of(fleet))[-1] == "draining"


async def test_the_unhealthy_that_still_beats_is_not_ended(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await fleet.vote("x", ("a", life))
    await fleet.beat("a")
    assert await fleet.end_silent("a", life) == Alive()
    assert (await invariants(fleet.store)).index.keys() == {"a"}


# -- lives


async def test_a_vote_about_another_life_counts_nothing(fleet: Fleet) -> None:
    former = await fleet.add("a")
    later = await fleet.add("a")
    assert await fleet.vote("x", ("a", former), ("nobody", former), ("a", later + 1)) == Voted(1, [])
    assert await told_of(fleet) == ["ready", "ready"]


async def test_a_new_life_starts_well_and_can_fall_ill_in_its_turn(fleet: Fleet) -> None:
    former = await fleet.add("a")
    await fleet.vote("x", ("a", former))

    later = await fleet.add("a")

    assert await suspicion(fleet) == set()
    await fleet.vote("x", ("a", former))
    assert await told_of(fleet) == ["ready", "suspect", "ready"]
    await fleet.vote("x", ("a", later))
    assert await told_of(fleet) == ["ready", "suspect", "ready", "suspect"]


async def test_a_new_life_after_a_death_starts_well_also_where_nobody_voted_meanwhile(fleet: Fleet) -> None:
    former = await fleet.add("a")
    await fleet.vote("x", ("a", former))
    await fleet.die("a", former)
    later = await fleet.add("a")
    assert await suspicion(fleet) == set()
    await fleet.vote("x", ("a", later))
    await fleet.vote("x")
    assert await told_of(fleet) == ["ready", "suspect", "no-response", "ready", "suspect", "ready"]


async def test_nothing_is_kept_of_who_ended(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await fleet.vote("x", ("a", life))
    await fleet.remove("a")
    await fleet.vote("x", ("a", life))
    unhealthy = discovery_keys(fleet.store.keys)["unhealthy"]
    assert await fleet.store.call("HGETALL", unhealthy, key=unhealthy) == []
    assert (await invariants(fleet.store)).index == {}


async def test_a_repeated_call_changes_nothing(fleet: Fleet) -> None:
    """The reply was lost, and the same vote comes again."""
    life = await fleet.add("a")
    first = await fleet.vote("x", ("a", life))
    before = await invariants(fleet.store)
    assert await fleet.vote("x", ("a", life)) == first
    assert await invariants(fleet.store) == before
    await leave(fleet, "x")
    before = await invariants(fleet.store)
    assert await leave(fleet, "x") == Voted(0, [])
    assert await invariants(fleet.store) == before


# -- any order

IDS = ("a", "b", "c", "d")
CHECKERS = ("c1", "c2", "c3", "c4", "c5")


class Voting(StoreMachine):
    """Who counts, what each said last, and what follows from it; the store must agree after every step."""

    def __init__(self, server: RunningServer) -> None:
        super().__init__(server)
        self.fleet = Fleet(self.store)
        self.clock_ms = self.do(self.fleet.sweep()).clock_ms
        self.live: dict[str, int] = {}
        """Id → its life."""
        self.lives: dict[str, list[int]] = {id_: [1] for id_ in IDS}
        self.counts_until: dict[str, int] = {}
        self.opinions: dict[str, set[tuple[str, int]]] = {}
        self.unhealthy: set[tuple[str, int]] = set()

    @rule(id_=st.sampled_from(IDS), ttl_s=st.sampled_from([6, 600]))
    def register(self, id_: str, ttl_s: int) -> None:
        answer = self.do(self.fleet.register(id_, ttl_s=ttl_s))
        assert isinstance(answer, Registered)
        self.live[id_] = answer.life
        self.lives[id_].append(answer.life)

    @rule(
        checker=st.sampled_from(CHECKERS),
        ill=st.sets(st.tuples(st.sampled_from(IDS), st.sampled_from([-1, -1, -1, -2]))),
        leaves=st.sampled_from([False] * 5 + [True]),
    )
    def vote(self, checker: str, ill: set[tuple[str, int]], leaves: bool) -> None:
        named = sorted((id_, self.lives[id_][max(which, -len(self.lives[id_]))]) for id_, which in ill)
        found = self.do(self.fleet.vote(checker, *named, ttl_ms=0 if leaves else CHECKER_TTL_MS))
        self.opinions[checker] = set(named)
        self.counts_until[checker] = -1 if leaves else self.clock_ms + CHECKER_TTL_MS
        for silent in [c for c, until in self.counts_until.items() if until < self.clock_ms]:
            del self.counts_until[silent], self.opinions[silent]
        votes = {
            who: sum(who in opinion for opinion in self.opinions.values())
            for who in self.live.items()
            if any(who in opinion for opinion in self.opinions.values())
        }
        assert found.live == len(self.counts_until)
        assert _as_dict(found.votes) == {id_: count for (id_, _), count in votes.items()}
        if found.live:
            self.unhealthy = {who for who, count in votes.items() if count * 2 > found.live}

    @rule(ids=st.sets(st.sampled_from(IDS)), hangs=st.sampled_from([False, False, True]))
    def beat(self, ids: set[str], hangs: bool) -> None:
        for id_ in sorted(ids):
            self.do(self.fleet.beat(id_, tick_age_ms=3_600_000 if hangs else 0))

    @rule(seconds=st.integers(1, 12), beating=st.sets(st.sampled_from(IDS)))
    def lease_time_passes(self, seconds: int, beating: set[str]) -> None:
        found = self.do(self.fleet.pass_time(seconds, beating=sorted(beating)))
        self.clock_ms = found.clock_ms
        for id_ in found.ended:
            del self.live[id_]

    @rule(id_=st.sampled_from(IDS))
    def die(self, id_: str) -> None:
        if id_ in self.live:
            self.do(self.fleet.die(id_, self.live.pop(id_)))

    @rule(id_=st.sampled_from(IDS))
    def stop(self, id_: str) -> None:
        if self.live.pop(id_, None) is not None:
            self.do(self.fleet.remove(id_))

    @invariant()
    def the_majority_of_the_last_count_decides(self) -> None:
        state = self.do(invariants(self.store))
        beats = {id_: beat for service in state.beats.values() for id_, beat in service.items()}
        assert {id_: beat.life for id_, beat in beats.items()} == self.live
        found = {(id_, beat.life) for id_, beat in beats.items() if beat.unhealthy}
        assert found == self.unhealthy & self.live.items()

    @invariant()
    def nothing_is_told_twice(self) -> None:
        last: dict[tuple[str, str], bool] = {}
        for entry in self.do(self.fleet.feed()):
            fields = entry.fields
            if fields["event"] == "removed":
                continue
            who, is_suspect = (fields["id"], fields["life"]), fields["status"] == "suspect"
            assert last.get(who) is not is_suspect, f"{who} was told twice that it is {fields['status']}"
            last[who] = is_suspect
        seen = {
            (id_, str(life)): self.do(self.fleet.kept_beat(id_)).suspect for id_, life in self.live.items()
        }
        assert {who: last[who] for who in seen} == seen, "the feed and the store differ"


def _as_dict(flat: Sequence[str]) -> dict[str, int]:
    return {id_: int(count) for id_, count in zip(flat[::2], flat[1::2], strict=True)}


def test_whoever_votes_and_dies_in_whatever_order_the_majority_decides(server: RunningServer) -> None:
    run_machine(Voting, server)
