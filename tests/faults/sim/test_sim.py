"""Two thousand drains in virtual time, each with its faults; a seed that fails does so again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from roost.testing import RunningServer
from tests.faults.sim.storage import Valkey
from tests.faults.sim.town import Outcome, Plan, play
from tests.faults.sim.without import without

FEW = 60
MANY = 1200
BATCH = 100
VICTIMS = ("source", "target", "controller", "gate")
WRITE_BACK, WRITE_THROUGH, JOURNAL = 0, 2, 3
CRASHED = [(1, WRITE_BACK), (3, WRITE_BACK), (1, WRITE_THROUGH), (1, JOURNAL)]
"""Seeds whose drain moves four users in several calls, and the durability of the class."""
MISSED = {
    "R1": Plan(0, holds_up=0.6),
    "R2": Plan(0, loses="commit", holds_up=0.5),
    "R9": Plan(0, database=0.25, cuts=3),
    "database fence": Plan(0, pause="target", database=0.25),
    "own lease": Plan(0, pause="target"),
    "repair": Plan(0, loses="commit", cuts=3),
    "dedupe": Plan(0, database=0.1, cuts=3, doubles=0.3),
}
"""Safeties, and in what weather their loss is found; that of others is found by the model."""
ENOUGH = 300


@pytest.fixture(scope="module")
def valkey(shared_server: RunningServer) -> Iterator[Valkey]:
    valkey = Valkey(shared_server.port)
    yield valkey
    valkey.close()


def story(outcome: Outcome) -> str:
    shown = "\n".join(outcome.trace[-60:])
    return f"{outcome.plan}\n{shown}\n{'; '.join(outcome.faults)}"


def held(plans: Iterator[Plan], valkey: Valkey) -> list[Outcome]:
    outcomes = []
    for plan in plans:
        outcome = play(plan, valkey)
        assert not outcome.faults, story(outcome)
        outcomes.append(outcome)
    return outcomes


def test_a_drain_without_faults_moves_everybody(valkey: Valkey) -> None:
    outcomes = held((Plan(seed) for seed in range(4)), valkey)
    assert all(set(outcome.moves) == {"moved"} for outcome in outcomes)
    assert all(outcome.departed == 1 for outcome in outcomes)


def test_the_same_seed_does_the_same(valkey: Valkey) -> None:
    plan = Plan(11, failover=True, database=0.2, store=0.1, cuts=2, doubles=0.5)
    first, again = play(plan, valkey), play(plan, valkey)
    assert first.trace == again.trace
    assert first.steps == again.steps


def test_every_invariant_holds_under_drawn_faults(valkey: Valkey) -> None:
    outcomes = held(map(Plan.drawn, range(FEW)), valkey)
    moves = sum(outcome.moves.get("moved", 0) for outcome in outcomes)
    assert moves > FEW
    print(f"{FEW} seeds, {sum(one.steps for one in outcomes)} steps, {moves} moves")


def crashes(victim: str, drain: Plan, every: int, valkey: Valkey) -> list[Outcome]:
    """The same drain again and again; the victim dies at another of its steps each time."""
    [calm] = held(iter([drain]), valkey)
    steps = range(1, calm.lengths[victim] + 1, every)
    outcomes = held((drain._replace(crash=victim, at_step=step) for step in steps), valkey)
    assert all(outcome.reached for outcome in outcomes)
    return outcomes


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_crash_at_some_steps_of_a_drain(victim: str, valkey: Valkey) -> None:
    assert crashes(victim, Plan(1, durability=WRITE_BACK), 13, valkey)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("seed", "durability"), CRASHED)
@pytest.mark.parametrize("victim", VICTIMS)
def test_a_crash_at_every_step_of_a_drain(victim: str, seed: int, durability: int, valkey: Valkey) -> None:
    outcomes = crashes(victim, Plan(seed, durability=durability), 1, valkey)
    print(f"{victim}: {len(outcomes)} steps, a crash at each")
    assert len(outcomes) > 10


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("start", range(FEW, FEW + MANY, BATCH))
def test_every_invariant_holds_under_many_drawn_faults(start: int, valkey: Valkey) -> None:
    held(map(Plan.drawn, range(start, start + BATCH)), valkey)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("safety", MISSED)
def test_a_safety_that_is_taken_away_is_missed(safety: str, valkey: Valkey) -> None:
    for seed in range(ENOUGH):
        plan = MISSED[safety]._replace(seed=seed)
        with without(safety):
            outcome = play(plan, valkey)
        if outcome.faults:
            print(f"without {safety} seed {seed}: {outcome.faults[0]}")
            held(iter([plan]), valkey)
            return
    pytest.fail(f"{ENOUGH} seeds do without {safety}")
