"""The clock of order ids: whatever the store's clock does, time goes on and never back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.errors import StartFailed
from roost.lanes.clock import ADOPT_AFTER, MAX_ADOPTED_MS, MAX_STEP_MS, IdClock, check_start
from roost.lanes.ids import LaneIds

START_MS = 1_795_000_000_000
YEAR_MS = 365 * 86_400_000
RENEWAL_S = 3


class Renewals:
    """An owner that renews its lease every three seconds; `shift_ms` is the error of the store's clock."""

    def __init__(self) -> None:
        self.at = 100.0
        self.shift_ms = 0
        self.clock = IdClock(START_MS, self.at)

    @property
    def true_ms(self) -> int:
        return START_MS + int((self.at - 100) * 1000)

    @property
    def error_ms(self) -> int:
        return self.clock.now_ms(self.at) - self.true_ms

    def renew(self, times: int = 1) -> list[bool]:
        believed = []
        for _ in range(times):
            self.at += RENEWAL_S
            believed.append(self.clock.anchor(self.true_ms + self.shift_ms, self.at))
        return believed


def test_time_is_the_stores_and_goes_on_between_renewals() -> None:
    clock = IdClock(START_MS, 100.0)
    assert clock.now_ms(100.0) == START_MS
    assert clock.now_ms(101.5) == START_MS + 1500


def test_a_small_step_ahead_is_drift_and_is_taken_over() -> None:
    owner = Renewals()
    owner.shift_ms = 40
    assert owner.renew() == [True]
    assert owner.error_ms == 40
    assert owner.clock.jumps == 0


def test_a_small_step_back_is_made_up_for_at_half_speed() -> None:
    owner = Renewals()
    owner.shift_ms = -400
    owner.renew()
    assert owner.error_ms == 0
    owner.at += 0.4
    assert owner.error_ms == -200
    owner.at += 0.6
    assert owner.error_ms == -400


def test_a_year_ahead_and_back_is_counted_and_not_believed() -> None:
    owner = Renewals()
    owner.shift_ms = YEAR_MS
    assert owner.renew(100) == [False] * 100
    assert owner.error_ms == 0
    assert (owner.clock.jumps, owner.clock.offset_ms) == (1, YEAR_MS)

    owner.shift_ms = 0
    assert owner.renew() == [True]
    assert owner.error_ms == 0
    assert (owner.clock.jumps, owner.clock.offset_ms) == (1, 0)


def test_ten_seconds_back_and_there_again_changes_nothing() -> None:
    owner = Renewals()
    owner.shift_ms = -10_000
    assert owner.renew(3) == [False] * 3
    owner.shift_ms = 0
    owner.renew()
    assert owner.error_ms == 0
    assert owner.clock.jumps == 1


def test_ten_seconds_back_for_good_is_taken_over_without_a_step() -> None:
    owner = Renewals()
    owner.shift_ms = -10_000
    assert owner.renew(ADOPT_AFTER) == [False] * (ADOPT_AFTER - 1) + [True]
    assert owner.error_ms == 0
    owner.at += 2
    assert owner.error_ms == -1_000
    owner.at += 18
    assert owner.error_ms == -10_000


def test_a_minute_ahead_for_good_is_taken_over() -> None:
    owner = Renewals()
    owner.shift_ms = 60_000
    assert owner.renew(ADOPT_AFTER)[-1]
    assert owner.error_ms == 60_000


def test_a_jump_that_does_not_stand_still_is_never_taken_over() -> None:
    owner = Renewals()
    for turn in range(5 * ADOPT_AFTER):
        owner.shift_ms = 10_000 if turn % 2 else 20_000
        assert owner.renew() == [False]
    assert owner.error_ms == 0
    assert owner.clock.jumps == 5 * ADOPT_AFTER


def test_a_frozen_store_does_not_freeze_the_ids() -> None:
    owner = Renewals()
    for _ in range(50):
        owner.at += RENEWAL_S
        owner.clock.anchor(START_MS, owner.at)
    assert owner.error_ms == 0
    assert owner.clock.jumps == 49 + 1


def test_a_frozen_store_that_is_asked_often_leaves_half_the_speed() -> None:
    clock = IdClock(START_MS, 0.0)
    for n in range(1, 101):
        clock.anchor(START_MS, n * 0.5)
    assert clock.now_ms(50.0) >= START_MS + 24_750
    assert clock.jumps == 0


def test_ids_are_never_refused_through_all_of_it() -> None:
    owner, source = Renewals(), LaneIds(0)
    given_out = []
    for owner.shift_ms in (0, YEAR_MS, 0, -10_000, -10_000, 0, -YEAR_MS, 500, -500):
        owner.renew(2 * ADOPT_AFTER)
        given_out.append(source.next(0, owner.clock.now_ms(owner.at)))
    assert source.refusals == 0
    assert len(set(given_out)) == len(given_out)


@given(
    st.lists(
        st.tuples(
            st.floats(0, 10),
            st.booleans(),
            st.integers(-20_000, 20_000) | st.sampled_from([YEAR_MS, -YEAR_MS]),
        )
    )
)
def test_time_never_goes_back_and_never_stops(story: list[tuple[float, bool, int]]) -> None:
    at = 1000.0
    clock = IdClock(START_MS, at)
    told = START_MS
    for passed_s, anchors, shift_ms in story:
        at += passed_s
        if anchors:
            clock.anchor(START_MS + int((at - 1000) * 1000) + shift_ms, at)
        now = clock.now_ms(at)
        assert now >= told + int(passed_s * 1000) // 2 - 2
        told = now


@given(st.lists(st.integers(-MAX_STEP_MS // 4, MAX_STEP_MS // 4), max_size=50))
def test_a_jittering_store_is_followed(jitters: list[int]) -> None:
    owner = Renewals()
    for owner.shift_ms in jitters:
        assert owner.renew() == [True]
    assert abs(owner.error_ms) <= MAX_STEP_MS // 2


@pytest.mark.parametrize("apart_ms", [YEAR_MS, MAX_ADOPTED_MS + 1, -MAX_ADOPTED_MS - 1])
def test_a_start_between_two_clocks_that_differ_widely_is_refused_and_says_what_each_says(
    apart_ms: int,
) -> None:
    with pytest.raises(StartFailed, match="2026-11-18T") as refused:
        check_start(START_MS + apart_ms, START_MS)
    assert "ROOST_ORDERS__CLOCK=store" in refused.value.hint


def test_a_start_says_both_times() -> None:
    with pytest.raises(StartFailed) as refused:
        check_start(START_MS + YEAR_MS, START_MS)
    assert refused.value.message == (
        "the store's clock says 2027-11-18T11:06:40Z, this host's 2026-11-18T11:06:40Z: one of them is wrong"
    )


@pytest.mark.parametrize("apart_ms", [0, MAX_ADOPTED_MS, -MAX_ADOPTED_MS])
def test_clocks_that_differ_by_what_a_running_server_would_take_over_are_no_reason_not_to_start(
    apart_ms: int,
) -> None:
    check_start(START_MS + apart_ms, START_MS)
