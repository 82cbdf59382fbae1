from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from roost.servers.entity.lease import Lease, usable_s


class Now:
    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def test_it_counts_from_when_the_beat_was_sent_and_stops_early() -> None:
    now = Now()
    lease = Lease(now)
    sent_at = now.at
    now.at += 3.0

    lease.renewed(sent_at, 6000)

    assert lease.is_valid
    now.at = sent_at + 4.0
    assert not lease.is_valid


def test_a_lapse_is_a_new_generation_and_a_renewal_in_time_is_none() -> None:
    now = Now()
    lease = Lease(now)
    lease.renewed(now.at, 6000)
    first = lease.generation
    now.at += 2
    lease.renewed(now.at, 6000)
    assert lease.generation == first

    now.at += 60
    lease.renewed(now.at, 6000)

    assert lease.generation == first + 1


def test_an_answer_that_comes_after_the_end_is_a_lapse_also_if_its_beat_was_sent_before() -> None:
    now = Now()
    lease = Lease(now)
    lease.renewed(now.at, 6000)
    first, sent_at = lease.generation, now.at + 3.9
    now.at += 4.1

    lease.renewed(sent_at, 6000)

    assert (lease.is_valid, lease.generation) == (True, first + 1)


def test_an_ended_life_is_not_held_and_a_new_one_begins_with_a_lapse() -> None:
    now = Now()
    lease = Lease(now)
    lease.renewed(now.at, 6000)
    lease.end()
    assert (lease.is_valid, lease.ended) == (False, True)

    lease.begin_again()
    lease.renewed(now.at, 6000)

    assert (lease.is_valid, lease.ended, lease.generation) == (True, False, 2)


@given(st.integers(3000, 600_000))
def test_a_tenth_at_least_is_left_and_a_step_of_the_clock_where_it_can_be(ttl_ms: int) -> None:
    left_ms = ttl_ms - usable_s(ttl_ms) * 1000
    assert left_ms >= ttl_ms * 0.1 - 0.001
    assert left_ms >= min(2000, ttl_ms / 3) - 0.001
