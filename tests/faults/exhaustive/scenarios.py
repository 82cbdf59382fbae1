"""What is explored: with all rules, and with one of them taken away."""

from __future__ import annotations

from typing import NamedTuple

from tests.faults.exhaustive.explore import KINDS, Bounds


class Without(NamedTuple):
    """A rule, where its loss shows, and what it breaks."""

    rule: str
    bounds: Bounds
    breaks: str


def kinds(*names: str) -> frozenset[str]:
    assert KINDS.issuperset(names)
    return frozenset(names)


HOLDS = {
    "no fault, two operations": Bounds(faults=0, ops=2),
    "any fault, one operation": Bounds(faults=1, ops=1),
    "any fault, two operations": Bounds(faults=1, ops=2),
    "two pauses or lost replies of the store": Bounds(faults=2, ops=1, kinds=kinds("pause", "store")),
    "two crashes or lost messages": Bounds(faults=2, ops=1, kinds=kinds("crash", "gate", "wire")),
    "no move, any two faults": Bounds(faults=2, ops=2, moves=0),
    "pauses and failovers": Bounds(faults=2, ops=1, kinds=kinds("pause", "failover"), states=90_000),
}
"""For every run of the tests."""

HOLDS_TOO = {
    "any two faults": Bounds(faults=2, ops=1),
    "any fault, three operations": Bounds(faults=1, ops=3),
    "any fault, three servers": Bounds(faults=1, ops=1, servers=3),
    "any fault, there and back": Bounds(faults=1, ops=1, moves=2),
    "failovers and the database, two operations": Bounds(
        faults=2, ops=2, kinds=kinds("database", "failover"), states=700_000
    ),
    "no move, any three faults": Bounds(faults=3, ops=1, moves=0),
}
"""Larger."""

ONE = Bounds(faults=1, ops=1)
TWO = Bounds(faults=1, ops=2)

TAKEN_AWAY = [
    Without("db_fence", Bounds(faults=1, ops=1, moves=0), "I3"),
    Without("repair", ONE, "I1"),
    Without("epoch_on_abort", TWO, "I2"),
    Without("dedupe", ONE, "I2"),
    Without("r1", ONE, "I1"),
    Without("r2", ONE, "I1"),
    Without("r3", ONE, "I1"),
    Without("r4", TWO, "I2"),
    Without("r5", ONE, "I1"),
    Without("r6", Bounds(faults=2, ops=1, kinds=kinds("pause", "failover")), "I1"),
    Without("r7", ONE, "I4"),
    Without("r8", ONE, "I4"),
    Without("r9", TWO, "I2"),
    Without("r10", ONE, "I5"),
    Without("look_first", Bounds(faults=3, ops=2, moves=0, kinds=kinds("pause", "failover", "idle")), "I1"),
    Without("reassert", ONE, "I4"),
]
"""Re-assert: repair heals what a request finds. It is for those of whom no request comes, whose server the
map would never name again, and for the journal."""
