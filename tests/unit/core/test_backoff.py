"""Delays between attempts."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from roost.core.backoff import Backoff, jittered


def test_delays_double_up_to_the_cap() -> None:
    backoff = Backoff(base_s=1.0, cap_s=8.0, rng=random.Random(1))
    ceilings = [1.0, 2.0, 4.0, 8.0, 8.0]
    for delay, ceiling in zip([backoff.next() for _ in ceilings], ceilings, strict=True):
        assert ceiling / 2 <= delay <= ceiling


def test_after_success_it_begins_anew() -> None:
    backoff = Backoff(base_s=1.0, cap_s=100.0)
    for _ in range(5):
        backoff.next()

    backoff.reset()

    assert backoff.next() <= 1.0


def test_two_fleets_with_one_seed_agree_and_with_two_do_not() -> None:
    def delays(seed: int) -> list[float]:
        backoff = Backoff(rng=random.Random(seed))
        return [backoff.next() for _ in range(5)]

    assert delays(7) == delays(7)
    assert delays(7) != delays(8)


@given(st.integers(6, 5000))
def test_it_may_be_asked_for_ever(attempts: int) -> None:
    backoff = Backoff(cap_s=2.0, _attempt=attempts)
    assert 1.0 <= backoff.next() <= 2.0


@given(st.floats(0.001, 1000), st.floats(0, 1))
def test_jitter_stays_within_its_share(interval_s: float, share: float) -> None:
    low, high = interval_s * (1 - share), interval_s * (1 + share)
    assert low - 1e-9 <= jittered(interval_s, share) <= high * (1 + 1e-9)
    assert jittered(interval_s, share, random.Random(1)) == jittered(interval_s, share, random.Random(1))
