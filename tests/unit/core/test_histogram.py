"""Counts by latency."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.histogram import SECONDS, Histogram


def test_an_observation_counts_at_or_below_its_bound() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 3.0):
        histogram.observe(value)

    assert histogram.cumulative() == [("1.0", 2), ("2.0", 4), ("+Inf", 5)]
    assert histogram.count == 5
    assert histogram.total == 8.0


def test_an_empty_histogram_has_all_its_buckets() -> None:
    rows = Histogram().cumulative()
    assert [count for _, count in rows] == [0] * (len(SECONDS) + 1)
    assert rows[-1][0] == "+Inf"


def test_the_bounds_grow() -> None:
    assert list(SECONDS) == sorted(set(SECONDS))


@given(st.lists(st.floats(0, 10)))
def test_the_last_bucket_holds_every_observation(values: list[float]) -> None:
    histogram = Histogram()
    for value in values:
        histogram.observe(value)
    counts = [count for _, count in histogram.cumulative()]
    assert counts == sorted(counts)
    assert counts[-1] == histogram.count == len(values)
    assert histogram.total == pytest.approx(sum(values))
