"""The holder's side of a lease: it has always stopped when the store lets go."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from roost.core.lease import MAX_STEP_MS, MIN_TTL_MS, Tenure, renew_interval_s


def test_a_tenure_ends_one_step_before_the_store_lets_go() -> None:
    tenure = Tenure("m", epoch=3, asked_at=100.0, ttl_ms=10_000)

    assert tenure.ends_at == 108.0
    assert tenure.holds(107.999)
    assert not tenure.holds(108.0)


def test_it_is_measured_from_before_the_request_left() -> None:
    early = Tenure("m", 1, asked_at=5.0, ttl_ms=4000)
    late = Tenure("m", 1, asked_at=6.0, ttl_ms=4000)
    assert early.ends_at < late.ends_at


def test_the_shortest_lease_still_leaves_its_holder_time_to_act() -> None:
    assert Tenure("m", 1, 0.0, MIN_TTL_MS).ends_at > 0
    assert renew_interval_s(MIN_TTL_MS) > 0


@given(st.integers(MIN_TTL_MS, 3_600_000), st.floats(0, 1e6))
def test_a_holder_has_three_chances_to_renew(ttl_ms: int, asked_at: float) -> None:
    tenure = Tenure("m", 1, asked_at, ttl_ms)
    third = asked_at + 3 * renew_interval_s(ttl_ms)
    assert third <= tenure.ends_at + 1e-6


@given(
    ttl_ms=st.integers(MIN_TTL_MS, 60_000),
    request_s=st.floats(0, 30),
    step_ms=st.integers(0, MAX_STEP_MS),
    at_s=st.floats(0, 120),
)
def test_no_holder_acts_when_the_lease_may_be_anothers(
    ttl_ms: int, request_s: float, step_ms: int, at_s: float
) -> None:
    """The store grants when the request arrives; a step of its clock then takes away at most one step."""
    tenure = Tenure("m", 1, 0.0, ttl_ms)
    store_lets_go_s = request_s + (ttl_ms - step_ms) / 1000
    if at_s >= store_lets_go_s:
        assert not tenure.holds(at_s)
