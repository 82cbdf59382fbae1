"""The rules of a waiting room, without a store."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.errors import InvalidInput
from roost.waitingroom.rules import (
    ABSOLUTE_PRIORITY,
    Policy,
    eta_seconds,
    line_of,
    parse_classes,
    parse_worlds,
    poll_ms,
    wait_seconds,
)

RANKS = st.integers(1, 3_000_000)
PACES = st.integers(0, 10_000_000)


def test_classes_are_read_in_their_order() -> None:
    assert parse_classes("staff=first, vip=1,base=3") == {"staff": ABSOLUTE_PRIORITY, "vip": 1, "base": 3}


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "base",
            "vip=1",
            "base=first",
            "base=0",
            "base=-1",
            "base=1001",
            "base=x",
            "base=3,base=2",
            "Base=1",
        ),
        *("vip=1,,base=3", "vi p=1,base=3", "{x}=1,base=3", "a:b=1,base=3", "x" * 17 + "=1,base=3"),
    ],
)
def test_odd_classes_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_classes(text)


def test_worlds_are_names_that_differ() -> None:
    assert parse_worlds("main, eu-1=pvp") == {"main": "game", "eu-1": "pvp"}
    for text in ("", "a,,b", "a,a", "{x}", "a:b", "w" * 33, "a b"):
        with pytest.raises(InvalidInput):
            parse_worlds(text)


def test_the_base_class_has_the_keys_without_a_suffix() -> None:
    policy = Policy(classes={"staff": ABSOLUTE_PRIORITY, "vip": 1, "base": 3})
    assert (line_of("base"), line_of("vip")) == ("", ":vip")
    assert policy.lines == [":staff", ":vip", ""]
    assert policy.weights == ":staff=0 :vip=1 =3"
    assert [policy.class_of(line) for line in policy.lines] == ["staff", "vip", "base"]


@given(st.dictionaries(st.sampled_from(["vip", "gold", "new"]), st.integers(1, 1000)), st.integers(1, 1000))
def test_shares_are_those_of_the_weights(others: dict[str, int], base: int) -> None:
    policy = Policy(classes={**others, "base": base})
    assert sum(map(policy.share_of, policy.classes)) == pytest.approx(1)
    assert policy.share_of("base") >= 1 / 3001


@given(RANKS, RANKS, PACES)
def test_who_is_further_back_asks_less_often_within_bounds(one: int, other: int, fast: int) -> None:
    near, far = sorted((one, other))
    assert 2000 <= poll_ms(near, fast) <= poll_ms(far, fast) <= 30_000


def test_near_the_front_one_asks_every_two_seconds_also_in_a_line_that_stands() -> None:
    assert poll_ms(1, 0) == poll_ms(100, 0) == 2000
    assert poll_ms(101, 0) == 30_000
    assert poll_ms(1000, 10_000) == 10_000  # ten a second: a hundred seconds left


@given(RANKS, RANKS, PACES, PACES)
def test_the_told_time_grows_with_the_rank_and_its_end_is_not_before_it(
    one: int, other: int, fast: int, slow: int
) -> None:
    near, far = (eta_seconds(rank, fast, slow) for rank in sorted((one, other)))
    if near is None or far is None:
        assert near is None
        assert far is None
        assert 0 in (fast, slow)
        return
    assert near[0] <= far[0]
    assert near[1] <= far[1]
    assert near[0] <= near[1]


def test_no_time_is_told_while_nobody_moves() -> None:
    assert eta_seconds(5, 0, 100) is None
    assert eta_seconds(5, 100, 0) is None
    assert eta_seconds(600, 10_000, 10_000) == (60, 90)


@given(RANKS, st.integers(1, 10_000_000))
def test_the_told_time_is_rounded_up(rank: int, pace: int) -> None:
    told = eta_seconds(rank, pace, pace)
    assert told is not None
    assert told[0] >= rank * 1000 / pace


@pytest.mark.parametrize(
    ("people", "free", "leaving", "issue", "seconds"),
    [
        (0, 0, 0.0, 100.0, 0.0),
        (50, 50, 0.0, 100.0, 0.5),
        (50, 0, 5.0, 100.0, 10.0),
        (50, 40, 5.0, 100.0, 2.0),
        (50, 50, 5.0, 1.0, 50.0),
        (50, 0, 0.0, 100.0, None),
        (50, 50, 1.0, 0.0, None),
    ],
)
def test_the_last_waits_for_free_places_for_those_who_leave_and_for_the_rate(
    people: int, free: int, leaving: float, issue: float, seconds: float | None
) -> None:
    assert wait_seconds(people, free, leaving, issue) == seconds
