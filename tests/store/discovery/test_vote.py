"""vote.lua: the majority of the checkers assigned to an instance decides, and each turn is told once."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from roost.core.ids import new_ulid
from roost.discovery.assignment import assigned_checkers
from roost.discovery.health import HealthChecker
from roost.discovery.probes import Prober
from roost.discovery.scripts import Alive, Ok, Registered
from roost.discovery.service import CHECKER_TTL_MS, Discovery
from roost.discovery.voting import MAX_VOTES, Voting
from roost.store.keys.discovery import discovery_keys
from roost.store.store import Store
from roost.testing import RunningServer, eventually
from tests.store.discovery.fleet import SECOND, Fleet, invariants
from tests.store.examples import SEEDS, StoreMachine, for_each, run_machine
from tests.store.reading import pairs

CHECKER_TTL_S = CHECKER_TTL_MS // 1000


async def join(fleet: Fleet, *checkers: str) -> None:
    for checker in checkers:
        await fleet.vote(checker)


async def leave(fleet: Fleet, checker: str) -> list[str]:
    return await fleet.vote(checker, ttl_ms=0)


async def acquit(fleet: Fleet, checker: str, *well: tuple[str, int]) -> list[str]:
    return await fleet.vote(checker, *well, finding="healthy")


async def told_of(fleet: Fleet, id_: str = "a") -> list[str]:
    """Every status that the feed gave this instance, in order."""
    return [status for _, id_told, status in await fleet.told() if id_told == id_]


async def suspicion(fleet: Fleet, id_: str = "a") -> set[str]:
    beat = await fleet.kept_beat(id_)
    return {name for name in ("silent", "unhealthy") if getattr(beat, name)}


async def kept_votes(store: Store) -> dict[str, str]:
    key = discovery_keys(store.keys)["votes"]
    return pairs(await store.call("HGETALL", key, key=key))


# -- the majority


async def test_one_checker_alone_decides(any_fleet: Fleet) -> None:
    life = await any_fleet.add("a")

    assert await any_fleet.vote("x", ("a", life)) == ["x"]

    assert await suspicion(any_fleet) == {"unhealthy"}
    assert await told_of(any_fleet) == ["ready", "suspect"]
    assert await any_fleet.history("a") == [("added", "ready"), ("unhealthy", "suspect")]
    await invariants(any_fleet.store)


async def test_of_two_both_must_agree_to_condemn_and_to_acquit(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await join(fleet, "y")

    assert await fleet.vote("x", ("a", life)) == ["x", "y"]
    assert await told_of(fleet) == ["ready"]
    await fleet.vote("y", ("a", life))
    assert await told_of(fleet) == ["ready", "suspect"]

    await acquit(fleet, "x", ("a", life))
    assert await told_of(fleet) == ["ready", "suspect"]
    await acquit(fleet, "y", ("a", life))
    assert await told_of(fleet) == ["ready", "suspect", "ready"]


async def test_two_of_three_decide_and_the_third_adds_nothing(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await join(fleet, *"xyz")

    await fleet.vote("x", ("a", life))
    assert await told_of(fleet) == ["ready"]
    await fleet.vote("y", ("a", life))
    assert await told_of(fleet) == ["ready", "suspect"]
    await fleet.vote("z", ("a", life))
    assert await told_of(fleet) == ["ready", "suspect"]


async def test_who_says_nothing_counts_for_neither_side(fleet: Fleet) -> None:
    """It has not finished its first judgement of the instance."""
    life = await fleet.add("a")
    await fleet.vote("x", ("a", life))
    await join(fleet, "y", "z")
    await acquit(fleet, "y", ("a", life))
    await fleet.vote("x", ("a", life), finding="none")
    assert await suspicion(fleet) == {"unhealthy"}
    await acquit(fleet, "z", ("a", life))
    assert await suspicion(fleet) == set()


async def test_only_the_three_assigned_count(fleet: Fleet) -> None:
    life = await fleet.add("a")
    checkers = [f"c{n}" for n in range(9)]
    await join(fleet, *checkers)
    assigned = assigned_checkers(checkers, "a")
    for checker in set(checkers) - set(assigned):
        await fleet.vote(checker, ("a", life))
    assert await told_of(fleet) == ["ready"]
    await fleet.vote(assigned[0], ("a", life))
    assert await told_of(fleet) == ["ready"]
    await fleet.vote(assigned[2], ("a", life))
    assert await told_of(fleet) == ["ready", "suspect"]
    assert await Discovery(fleet.store).votes() == {"a": 2}


async def test_votes_about_one_instance_do_not_count_for_another(fleet: Fleet) -> None:
    a, b = await fleet.add("a"), await fleet.add("b")
    await join(fleet, "x")
    await fleet.vote("y", ("a", a))
    await fleet.vote("x", ("b", b))
    assert await Discovery(fleet.store).votes() == {"a": 1, "b": 1}
    assert await told_of(fleet, "a") == await told_of(fleet, "b") == ["ready"]


async def test_a_checker_that_names_an_instance_twice_has_one_vote(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await join(fleet, "y")
    await fleet.vote("x", ("a", life), ("a", life), ("a", life))
    assert await told_of(fleet) == ["ready"]


async def test_what_a_checker_does_not_name_stays_as_it_said_last(fleet: Fleet) -> None:
    a, b = await fleet.add("a"), await fleet.add("b")
    await fleet.vote("x", ("a", a), ("b", b))
    await acquit(fleet, "x", ("b", b))
    assert (await suspicion(fleet, "a"), await suspicion(fleet, "b")) == ({"unhealthy"}, set())


async def test_many_who_vote_at_once_tell_it_once(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await asyncio.gather(*(fleet.vote(f"c{n}", ("a", life)) for n in range(9)))
    await asyncio.gather(*(fleet.vote(f"c{n}", ("a", life)) for n in range(9)))
    assert await told_of(fleet) == ["ready", "suspect"]


async def test_more_than_a_thousand_unhealthy_are_all_voted_on(store: Store) -> None:
    fleet, discovery = Fleet(store), Discovery(store)
    lives = {f"i{n}": await fleet.add(f"i{n}") for n in range(1_250)}
    voting = Voting(discovery)
    for id_, life in lives.items():
        voting.say(id_, str(life), "unhealthy")

    assert await voting.send()

    found = await invariants(store)
    assert all(beat.unhealthy for beat in found.beats["game:eu"].values())
    assert voting.untold == []
    assert len(lives) > 6 * MAX_VOTES


# -- who counts


async def test_a_silent_checker_stops_counting_and_the_others_decide_when_they_speak_again(
    fleet: Fleet,
) -> None:
    life = await fleet.add("a", ttl_s=3600)
    await join(fleet, "silent")
    await fleet.vote("x", ("a", life))
    await fleet.pass_time(CHECKER_TTL_S)
    assert await fleet.vote("x", ("a", life)) == ["silent", "x"]
    assert await told_of(fleet) == ["ready"]

    await fleet.pass_time(1)

    assert await fleet.vote("x", ("a", life)) == ["x"]
    assert await told_of(fleet) == ["ready", "suspect"]


async def test_the_votes_of_a_silent_checker_stop_counting_too(fleet: Fleet) -> None:
    life = await fleet.add("a", ttl_s=3600)
    await fleet.vote("silent", ("a", life))
    await fleet.pass_time(CHECKER_TTL_S + 1)
    await join(fleet, "y")
    await fleet.vote("x", ("a", life))
    assert await Discovery(fleet.store).votes() == {"a": 1}
    assert "silent" not in (await kept_votes(fleet.store))["a"]


async def test_without_lease_time_no_checker_falls_silent(fleet: Fleet) -> None:
    """Nobody sweeps: the store was away, or its clock was stepped."""
    life = await fleet.add("a")
    await fleet.vote("x", ("a", life))
    fleet.now += 3600 * SECOND
    assert await fleet.vote("y") == ["x", "y"]


async def test_of_three_checkers_a_clean_leave_does_not_acquit_the_sick(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await join(fleet, *"xyz")
    await fleet.vote("x", ("a", life))
    await fleet.vote("y", ("a", life))
    assert await suspicion(fleet) == {"unhealthy"}

    assert await leave(fleet, "x") == ["y", "z"]
    await fleet.vote("y", ("a", life))
    await acquit(fleet, "z", ("a", life))

    assert await suspicion(fleet) == {"unhealthy"}
    assert await told_of(fleet) == ["ready", "suspect"]


async def test_the_last_one_that_leaves_changes_nothing(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await fleet.vote("x", ("a", life))

    assert await leave(fleet, "x") == []

    assert await suspicion(fleet) == {"unhealthy"}
    await join(fleet, "y")
    assert await told_of(fleet) == ["ready", "suspect"], "it has not judged it yet"
    await acquit(fleet, "y", ("a", life))
    assert await told_of(fleet) == ["ready", "suspect", "ready"]


async def test_a_caller_hears_that_it_did_not_count_before(fleet: Fleet) -> None:
    """It was silent for too long, or the store was wiped: what it said may be lost."""
    discovery = Discovery(fleet.store)
    await fleet.add("a", ttl_s=3600)
    assert (await discovery.vote("x", ())).joined
    assert not (await discovery.vote("x", ())).joined
    await fleet.pass_time(CHECKER_TTL_S + 1)
    await discovery.vote("y", ())
    assert (await discovery.vote("x", ())).joined


async def test_after_a_wipe_a_checker_says_again_what_it_found(store: Store) -> None:
    discovery, fleet = Discovery(store), Fleet(store)
    life = await fleet.add("a")
    voting = Voting(discovery)
    voting.say("a", str(life), "unhealthy")
    await voting.send()
    for part in ("votes", "checkers"):
        key = discovery_keys(store.keys)[part]
        await store.call("DEL", key, key=key)
    await voting.send()
    assert await discovery.votes() == {"a": 1}


async def test_a_checker_counts_while_it_runs(store: Store) -> None:
    discovery, key = Discovery(store), discovery_keys(store.keys)["checkers"]
    checker = HealthChecker(discovery, Prober(allow_local=True), ballot=discovery)

    async def counts() -> bool:
        return bool(await store.call("ZCARD", key, key=key) == 1)

    checker.start()
    await eventually(counts, "its first vote")
    await checker.stop()
    assert not await counts()


# -- who is assigned


def test_script_and_checkers_agree_on_who_is_assigned(server: RunningServer) -> None:
    """Of many checkers exactly the assigned can decide."""

    async def check(store: Store, rng: random.Random) -> None:
        fleet = Fleet(store)
        checkers = sorted({f"{rng.getrandbits(48):x}" for _ in range(rng.randint(1, 12))})
        id_ = rng.choice([new_ulid(), f"501-{rng.random()}"])
        life = await fleet.add(id_)
        await join(fleet, *checkers)
        assigned = assigned_checkers(checkers, id_)
        assert len(assigned) == min(3, len(checkers))
        majority = assigned[: len(assigned) // 2 + 1]
        for checker in {*checkers} - {majority[-1]} - {*assigned[len(majority) :]}:
            await fleet.vote(checker, (id_, life))
        assert await suspicion(fleet, id_) == set()
        await fleet.vote(majority[-1], (id_, life))
        assert await suspicion(fleet, id_) == {"unhealthy"}

    for_each(server, SEEDS, check, examples=60)


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
    await fleet.pass_time(15)

    assert await fleet.beat("a") == Ok()
    assert await suspicion(fleet) == {"unhealthy"}
    assert await told_of(fleet) == ["ready", "suspect"]

    await acquit(fleet, "x", ("a", life))
    assert await told_of(fleet) == ["ready", "suspect", "ready"]


async def test_who_the_checkers_find_well_stays_suspect_until_it_beats(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await fleet.vote("x", ("a", life))
    await fleet.pass_time(15)
    await acquit(fleet, "x", ("a", life))
    assert await suspicion(fleet) == {"silent"}
    assert await told_of(fleet) == ["ready", "suspect"]
    await fleet.beat("a")
    assert await told_of(fleet) == ["ready", "suspect", "ready"]


async def test_a_recovery_is_told_once(fleet: Fleet) -> None:
    life = await fleet.add("a", status="draining")
    for checker in "xyz":
        await fleet.vote(checker, ("a", life))
    for checker in "xyz":
        await acquit(fleet, checker, ("a", life))
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
    await acquit(fleet, "x", ("a", life))
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
    await fleet.vote("x", ("a", former), ("nobody", former), ("a", later + 1))
    assert await kept_votes(fleet.store) == {}
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
    await acquit(fleet, "x", ("a", later))
    assert await told_of(fleet) == ["ready", "suspect", "no-response", "ready", "suspect", "ready"]


async def test_nothing_is_kept_of_who_ended_nor_of_another_life(fleet: Fleet) -> None:
    a, b, c = await fleet.add("a"), await fleet.add("b"), await fleet.add("c")
    await fleet.vote("x", ("a", a), ("b", b), ("c", c))
    await fleet.remove("a")
    await fleet.remove("b")
    await fleet.add("c")
    await fleet.vote("x", ("a", a), finding="none")
    assert "a" not in await kept_votes(fleet.store)
    await leave(fleet, "x")

    async def is_tidy() -> bool:
        await fleet.vote("y")
        return await kept_votes(fleet.store) == {}

    await eventually(is_tidy, "a look at every vote")


async def test_a_repeated_call_changes_nothing(fleet: Fleet) -> None:
    """The reply was lost, and the same vote comes again."""
    life = await fleet.add("a")
    first = await fleet.vote("x", ("a", life))
    before = await invariants(fleet.store)
    assert await fleet.vote("x", ("a", life)) == first
    assert await invariants(fleet.store) == before
    await leave(fleet, "x")
    before = await invariants(fleet.store)
    assert await leave(fleet, "x") == []
    assert await invariants(fleet.store) == before


# -- any order

IDS = ("a", "b", "c", "d")
CHECKERS = ("c1", "c2", "c3", "c4", "c5")


class Votes(StoreMachine):
    """Who counts, what each said last, and what follows from it; the store must agree after every step."""

    def __init__(self, server: RunningServer) -> None:
        super().__init__(server)
        self.fleet = Fleet(self.store)
        self.clock_ms = self.do(self.fleet.sweep()).clock_ms
        self.live: dict[str, int] = {}
        """Id → its life."""
        self.lives: dict[str, list[int]] = {id_: [1] for id_ in IDS}
        self.counts_until: dict[str, int] = {}
        self.said: dict[tuple[str, int], dict[str, str]] = {}
        """(id, life) → checker → what it said last."""
        self.unhealthy: set[tuple[str, int]] = set()

    @rule(id_=st.sampled_from(IDS), ttl_s=st.sampled_from([6, 600]))
    def register(self, id_: str, ttl_s: int) -> None:
        answer = self.do(self.fleet.register(id_, ttl_s=ttl_s))
        assert isinstance(answer, Registered)
        self.live[id_] = answer.life
        self.lives[id_].append(answer.life)

    @rule(
        checker=st.sampled_from(CHECKERS),
        ids=st.sets(st.tuples(st.sampled_from(IDS), st.sampled_from([-1, -1, -1, -2]))),
        finding=st.sampled_from(["unhealthy", "unhealthy", "healthy", "healthy", "none"]),
    )
    def vote(self, checker: str, ids: set[tuple[str, int]], finding: str) -> None:
        named = sorted((id_, self.lives[id_][max(which, -len(self.lives[id_]))]) for id_, which in ids)
        found = self.do(self.fleet.vote(checker, *named, finding=finding))
        self.counts_until[checker] = self.clock_ms + CHECKER_TTL_MS
        assert found == self.counting()
        for who in named:
            if who in self.live.items():
                self.count(who, checker, finding)

    def counting(self) -> list[str]:
        for silent in [c for c, until in self.counts_until.items() if until < self.clock_ms]:
            del self.counts_until[silent]
        return sorted(self.counts_until)

    def count(self, who: tuple[str, int], checker: str, finding: str) -> None:
        """It turns iff most of the assigned said so last; else it stays."""
        said, counting = self.said.setdefault(who, {}), self.counting()
        for gone in [other for other in said if other not in counting]:
            del said[gone]
        said[checker] = finding
        assigned = assigned_checkers(counting, who[0])
        if sum(said.get(one) == "unhealthy" for one in assigned) * 2 > len(assigned):
            self.unhealthy.add(who)
        elif sum(said.get(one) == "healthy" for one in assigned) * 2 > len(assigned):
            self.unhealthy.discard(who)

    @rule(checker=st.sampled_from(CHECKERS))
    def leave(self, checker: str) -> None:
        self.counts_until.pop(checker, None)
        assert self.do(self.fleet.vote(checker, ttl_ms=0)) == self.counting()

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
            if fields["event"] in ("removed", "panic"):
                continue
            who, is_suspect = (fields["id"], fields["life"]), fields["status"] == "suspect"
            assert last.get(who) is not is_suspect, f"{who} was told twice that it is {fields['status']}"
            last[who] = is_suspect
        seen = {
            (id_, str(life)): self.do(self.fleet.kept_beat(id_)).suspect for id_, life in self.live.items()
        }
        assert {who: last[who] for who in seen} == seen, "the feed and the store differ"


@pytest.mark.timeout(400)
def test_whoever_votes_and_dies_in_whatever_order_the_majority_decides(server: RunningServer) -> None:
    run_machine(Votes, server)
