"""The rate stays in its bounds, falls at once and rises slowly, and no window sees more than it allows."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.binding.drain.line import Line, Surveyed
from roost.binding.drain.pace import BURST_S, FLOOR, Bucket, Pace, Window, p95

judgements = st.tuples(
    st.floats(0, 2000),
    st.floats(0, 2000),
    st.floats(0, 1),
    st.floats(0, 5),
)
"""Freeze p95, database p95, abort ratio, seconds since the last."""


@given(st.floats(0.1, 10_000), st.lists(judgements, max_size=60))
def test_the_rate_stays_between_one_and_the_cap(cap: float, told: list[tuple[float, ...]]) -> None:
    pace, now = Pace(cap, 500), 0.0
    for freeze_ms, database_ms, aborts, passed in told:
        now += passed
        before = pace.rate
        rate, why = pace.judge(freeze_ms, database_ms, aborts, now)
        assert FLOOR <= rate <= max(FLOOR, cap)
        assert why
        assert max(FLOOR, before / 2) <= rate <= before * 1.1 + 1e-9, "a step is a tenth up or a half down"


@given(st.lists(judgements, min_size=1, max_size=60))
def test_it_falls_when_something_is_wrong_and_only_then(told: list[tuple[float, ...]]) -> None:
    pace, now = Pace(100, 500), 0.0
    pace.judge(0, 0, 0, now)
    for freeze_ms, database_ms, aborts, passed in told:
        now += passed + 1.001
        before = pace.rate
        rate, _ = pace.judge(freeze_ms, database_ms, aborts, now)
        is_bad = freeze_ms > 250 or database_ms > 100 or aborts > 0.01
        assert rate < before or before == FLOOR if is_bad else rate >= before


@pytest.mark.parametrize(
    ("freeze_ms", "database_ms", "aborts", "says"),
    [
        (0, 150, 0, "halved: database p95 150 ms"),
        (300, 0, 0, "halved: pause p95 300 ms"),
        (0, 0, 0.25, "halved: 25% of the moves came back"),
    ],
)
def test_it_says_why_it_changed(freeze_ms: float, database_ms: float, aborts: float, says: str) -> None:
    pace = Pace(100, 500)
    pace.judge(0, 0, 0, 0.0)
    assert pace.judge(freeze_ms, database_ms, aborts, 1.0) == (50.0, says)
    assert pace.judge(freeze_ms, database_ms, aborts, 1.5) == (50.0, says), "once a second"
    rate, why = pace.judge(0, 0, 0, 2.5)
    assert (round(rate, 6), why) == (55.0, "rising: all is well")


def test_it_comes_back_to_what_was_asked_for() -> None:
    pace = Pace(100, 500)
    pace.judge(0, 999, 0, 0.0)
    pace.judge(0, 999, 0, 1.0)
    for second in range(2, 12):
        pace.judge(0, 0, 0, float(second))
    assert (pace.rate, pace.why) == (100.0, "as asked for")


def test_a_new_controller_goes_on_at_the_rate_of_the_old() -> None:
    assert Pace(100, 500, rate=12.5).rate == 12.5
    assert Pace(100, 500, rate=400.0).rate == 100.0
    assert Pace(100, 500, rate=0.0).rate == 100.0


@given(st.floats(1, 5000), st.lists(st.tuples(st.floats(0, 0.5), st.integers(0, 500)), max_size=80))
def test_no_time_sees_more_than_the_rate_and_a_burst(rate: float, asks: list[tuple[float, int]]) -> None:
    bucket, now, taken = Bucket(0.0), 0.0, list[tuple[float, int]]()
    for passed, most in asks:
        now += passed
        got = bucket.take(rate, now, most)
        assert 0 <= got <= most
        taken.append((now, got))
    for first in range(len(taken)):
        for last in range(first, len(taken)):
            span = taken[last][0] - taken[first][0]
            allowed = max(1.0, rate * BURST_S) + span * rate
            assert sum(got for _, got in taken[first : last + 1]) <= allowed + 1e-6


def in_parties(sizes: list[int]) -> Line:
    line, names = Line(), (f"p{number}" for number, size in enumerate(sizes) for _ in range(size))
    line.fill([Surveyed(f"u{n}", True, 0, False, "now", party) for n, party in enumerate(names)], [], 0.0)
    return line


def sent(line: Line, rate: float, steps: list[float], most: int = 64) -> list[tuple[float, int]]:
    """(when, how many users) of each step, where whole parties go as the tokens allow."""
    bucket, now, found = Bucket(0.0), 0.0, list[tuple[float, int]]()
    for passed in steps:
        now += passed
        tokens = bucket.take(rate, now, most)
        users = sum(len(group) for group in line.take(tokens))
        bucket.overdraw(users - tokens)
        found.append((now, users))
    return found


def most_above(found: list[tuple[float, int]], rate: float) -> float:
    """By how many users the busiest of all spans of time was above the rate."""
    total, least, most = 0, math.inf, 0.0
    for now, users in found:
        least = min(least, total - rate * now)
        total += users
        most = max(most, total - rate * now - least)
    return most


@given(
    st.lists(st.integers(1, 64), max_size=200),
    st.floats(1, 2000),
    st.lists(st.floats(0, 2), max_size=100),
)
def test_parties_go_above_the_rate_by_one_of_them_at_most(
    sizes: list[int], rate: float, steps: list[float]
) -> None:
    allowed = max(1.0, rate * BURST_S) + max(sizes, default=1) - 1
    assert most_above(sent(in_parties(sizes), rate, steps), rate) <= allowed + 1e-6


@pytest.mark.parametrize("size", [1, 2, 4, 16, 64])
@pytest.mark.parametrize("rate", [1.0, 100.0, 1000.0])
def test_the_rate_is_that_of_users_whatever_the_size_of_their_parties(size: int, rate: float) -> None:
    seconds = max(10, int(10 * size / rate))
    wanted = rate * seconds
    line = in_parties([size] * int(2 * wanted / size + 2))
    users = sum(count for _, count in sent(line, rate, [0.05] * (seconds * 20)))
    assert abs(users - wanted) <= size + max(1.0, rate * BURST_S)


def test_one_move_that_came_back_says_nothing() -> None:
    window = Window()
    window.returned()
    assert window.abort_ratio == 0.0
    window.returned()
    window.moved({"total": 8.0, "flush": 1.0, "accept": 3.0})
    assert window.abort_ratio == pytest.approx(2 / 3)
    assert (window.freeze_ms, window.database_ms) == ([8.0], [3.0])


def test_p95() -> None:
    assert p95([]) == 0.0
    assert p95([float(number) for number in range(100)]) == 95.0


def test_one_slow_move_says_nothing_and_two_do() -> None:
    assert p95([900.0]) == 0.0
    assert p95([900.0, 5.0]) == 5.0
    assert p95([900.0, 5.0, 900.0]) == 900.0


def test_it_leaves_the_floor_though_a_move_now_and_then_is_slow() -> None:
    """One in twelve, as on a busy machine: judged by its slowest move alone the rate would stay near it."""
    pace, seconds = Pace(100.0, 500.0, rate=FLOOR), 0
    moves = itertools.cycle([150.0] + [5.0] * 11)
    while pace.rate < 10.0 and seconds < 300:
        seconds += 1
        pace.judge(5.0, p95([next(moves) for _ in range(int(pace.rate))]), 0.0, float(seconds))
    assert pace.rate >= 10.0
