"""What a job says of itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.binding.drain.model import Order, Pauses, Progress, RunningJob, job_of
from roost.binding.drain.views import job_view

ORDER = Order(
    id="j1",
    type="entity",
    kind="drain",
    sources=["501"],
    lives={"501": "7"},
    to=[],
    version="",
    rate=100,
    canary=0,
    max_block_ms=500,
    deadline_s=10.0,
    quota={},
    by="ann",
)


@given(st.lists(st.floats(0, 20_000), min_size=1, max_size=200))
def test_a_quantile_is_no_less_than_the_pauses_below_it(pauses: list[float]) -> None:
    seen = Pauses()
    for ms in pauses:
        seen.observe(ms)
    assert sum(seen.counts) == len(pauses)
    assert seen.max_ms == max(pauses)
    for share in (0.5, 0.95, 0.99, 1.0):
        bound = seen.quantile(share)
        assert bound <= seen.max_ms
        assert sum(ms <= bound for ms in pauses) >= share * len(pauses) - 1e-9


def test_of_no_pauses_there_is_no_quantile() -> None:
    assert Pauses().quantile(0.99) == 0.0


@pytest.mark.parametrize(
    ("state", "rate", "eta"), [("running", 20.0, 3.0), ("running", 0.0, None), ("paused", 20.0, None)]
)
def test_how_long_it_takes_at_the_rate_of_now(state: Any, rate: float, eta: float | None) -> None:
    counts = {"users": 100, "moved": 30, "released": 8, "gone": 2, "returned": 50}
    job = job_of(ORDER, Progress(counts=counts, rate_now=rate), state, "", 2_000_000, 0)
    assert (job.left, job.eta_s, job.made_at, job.is_over) == (60, eta, 2.0, False)


@pytest.mark.parametrize(
    ("state", "rate"),
    [
        ("running", 20.0),
        ("rolling-back", 20.0),
        ("paused", 0.0),
        ("reconciling", 0.0),
        ("cancelled", 0.0),
        ("done", 0.0),
        ("failed", 0.0),
    ],
)
def test_a_rate_is_told_only_while_users_move(state: Any, rate: float) -> None:
    job = job_of(ORDER, Progress(rate_now=20.0), state, "", 2_000_000, 0)
    assert (job.rate_now, job_view(job).rate_now) == (rate, rate)


def test_a_rollback_has_those_left_whom_it_has_not_brought_back() -> None:
    counts = {"users": 100, "moved": 80, "back": 20}
    job = job_of(ORDER, Progress(counts=counts, rate_now=20.0), "rolling-back", "", 2_000_000, 0)
    assert (job.left, job.eta_s) == (60, 3.0)


@pytest.mark.parametrize(
    ("state", "is_last"),
    [
        ("running", False),
        ("paused", False),
        ("rolling-back", False),
        ("cancelled", False),  # moves are still under way; once they are not it is reconciling
        ("reconciling", True),
        ("done", True),
    ],
)
def test_when_the_last_reports_are_wanted(state: Any, is_last: bool) -> None:
    assert RunningJob("j1", "entity", (), state, 1).is_settled is is_last


def test_a_cancelled_job_moves_nobody_new() -> None:
    assert RunningJob("j1", "entity", (), "cancelled", 1).moves_nobody
