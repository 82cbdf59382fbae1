"""Every interleaving of one user's move, within bounds; and each rule taken away breaks what it should."""

from __future__ import annotations

import pytest

from tests.faults.exhaustive.explore import Bounds, Explorer
from tests.faults.exhaustive.rules import ALL
from tests.faults.exhaustive.scenarios import HOLDS, HOLDS_TOO, TAKEN_AWAY, Without, kinds


def explored(name: str, bounds: Bounds) -> None:
    found = Explorer(bounds).run()
    print(f"{name}: {found}")
    assert not found.fault, str(found)
    assert found.complete or found.states >= bounds.states


LONG = {"any fault, two operations", "two pauses or lost replies of the store", "pauses and failovers", "r6"}
"""Ten seconds and more."""


def marked(name: str) -> tuple[pytest.MarkDecorator, ...]:
    return (pytest.mark.slow,) if name in LONG else ()


@pytest.mark.parametrize("name", [pytest.param(name, marks=marked(name)) for name in HOLDS])
def test_every_invariant_holds_in_every_state(name: str) -> None:
    explored(name, HOLDS[name])


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", HOLDS_TOO)
def test_every_invariant_holds_in_a_larger_world(name: str) -> None:
    explored(name, HOLDS_TOO[name])


@pytest.mark.parametrize(
    "without", [pytest.param(one, marks=marked(one.rule), id=one.rule) for one in TAKEN_AWAY]
)
def test_a_rule_that_is_taken_away_is_missed(without: Without) -> None:
    found = Explorer(without.bounds, ALL.without(without.rule)).run()
    print(f"without {without.rule}: {found}")
    assert found.fault.split(":")[0].split()[:1] == [without.breaks], str(found)
    assert found.story


def test_a_gate_that_crashes_leaves_messages_behind() -> None:
    found = Explorer(Bounds(faults=1, ops=1, moves=0, kinds=kinds("gate")), ALL.without("dedupe")).run()
    print(f"without dedupe: {found}")
    assert found.fault.startswith("I2: an operation was executed twice"), str(found)


def test_every_rule_is_taken_away_once() -> None:
    assert sorted(without.rule for without in TAKEN_AWAY) == sorted(ALL._fields)
