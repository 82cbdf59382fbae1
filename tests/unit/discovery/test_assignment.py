"""Who judges whom; that the store agrees is in `tests/store/discovery/test_vote.py`."""

from __future__ import annotations

from collections import Counter

from roost.core.ids import new_ulid
from roost.discovery.assignment import CHECKERS_PER_INSTANCE, assigned_checkers

CHECKERS = [f"{n:012x}" for n in range(10)]
IDS = [new_ulid() for _ in range(3000)]


def test_of_three_or_fewer_everybody_is_assigned() -> None:
    for count in range(4):
        assert assigned_checkers(CHECKERS[:count], "a") == CHECKERS[:count]


def test_each_instance_has_three_and_each_checker_its_share() -> None:
    shares = Counter(checker for id_ in IDS for checker in assigned_checkers(CHECKERS, id_))
    assert sum(shares.values()) == CHECKERS_PER_INSTANCE * len(IDS)
    assert all(0.85 < share * len(CHECKERS) / (3 * len(IDS)) < 1.15 for share in shares.values())


def test_the_order_of_the_list_does_not_matter() -> None:
    for id_ in IDS[:50]:
        assert assigned_checkers(CHECKERS[::-1], id_) == assigned_checkers(CHECKERS, id_)


def test_one_that_leaves_moves_its_own_share_only() -> None:
    gone, rest = CHECKERS[4], [c for c in CHECKERS if c != CHECKERS[4]]
    for id_ in IDS[:300]:
        before, after = set(assigned_checkers(CHECKERS, id_)), set(assigned_checkers(rest, id_))
        assert before - {gone} <= after
