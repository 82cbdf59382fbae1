"""Order ids: what is packed comes out again, no lane repeats one, and most foreign ones are told apart."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.lanes import ids
from roost.lanes.ids import ClockBehind, LaneIds, OrderIds
from tests.unit.lanes.foreign import foreign_ids

NOW_MS = 1_795_000_000_123
YEAR_MS = 365 * 86_400_000
shards = st.integers(0, ids.SHARDS - 1)
lanes = st.integers(0, ids.LANES - 1)
times = st.integers(ids.EPOCH_MS, ids.LAST_MS)


@given(ms=times, shard=shards, lane=lanes, sequence=st.integers(0, ids.SEQUENCES - 1))
def test_what_is_packed_comes_out_again(ms: int, shard: int, lane: int, sequence: int) -> None:
    order_id = ids.pack(ms, shard, lane, sequence)

    assert 0 <= order_id < 2**63
    assert ids.unpack(order_id) == (ms, shard, lane, sequence)
    assert ids.extract_time(order_id) == ms
    assert ids.extract_shard(order_id) == shard
    assert ids.extract_lane(order_id) == lane


@given(st.integers(0, 2**63 - 1))
def test_every_number_of_63_bits_is_some_id(number: int) -> None:
    assert ids.pack(*ids.unpack(number)) == number


@given(st.integers(-(2**63), 2**64))
def test_bits_of_any_number_are_in_range_negative_ones_too(number: int) -> None:
    assert 0 <= ids.extract_shard(number) < ids.SHARDS
    assert 0 <= ids.extract_lane(number) < ids.LANES


@pytest.mark.parametrize(
    "parts",
    [
        (ids.EPOCH_MS - 1, 0, 0, 0),
        (ids.LAST_MS + 1, 0, 0, 0),
        (NOW_MS, 16, 0, 0),
        (NOW_MS, -1, 0, 0),
        (NOW_MS, 0, 64, 0),
        (NOW_MS, 0, -1, 0),
        (NOW_MS, 0, 0, 4096),
        (NOW_MS, 0, 0, -1),
    ],
)
def test_a_part_that_its_bits_do_not_hold_is_refused(parts: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="is not in 0"):
        ids.pack(*parts)


def test_the_number_of_shards_is_the_documented_one() -> None:
    assert ids.logical_shard_count() == 16


@given(shard=shards, lane=lanes, age_ms=st.integers(0, YEAR_MS))
def test_an_id_of_ours_is_plausible(shard: int, lane: int, age_ms: int) -> None:
    order_id = ids.pack(NOW_MS - age_ms, shard, lane, 0)
    assert ids.is_plausible(order_id, NOW_MS)


@pytest.mark.parametrize("name", foreign_ids(NOW_MS))
def test_a_foreign_id_has_a_legal_shard_and_is_not_plausible(name: str) -> None:
    for age_ms in (0, YEAR_MS // 2):
        foreign = foreign_ids(NOW_MS - age_ms)[name]
        assert 0 <= ids.extract_shard(foreign) < ids.logical_shard_count()
        assert not ids.is_plausible(foreign, NOW_MS)


@pytest.mark.parametrize("name", foreign_ids(NOW_MS))
def test_two_years_on_foreign_ids_are_still_told_apart(name: str) -> None:
    later_ms = NOW_MS + 2 * YEAR_MS
    assert not ids.is_plausible(foreign_ids(later_ms)[name], later_ms)


def test_what_is_no_id_at_all_is_not_plausible() -> None:
    good = ids.pack(NOW_MS, 3, 17, 5)
    for number in (0, -good, good | 1 << 63, good | 1 << 64, 2**63):
        assert not ids.is_plausible(number, NOW_MS)


def test_an_id_of_the_future_is_plausible_as_far_as_clocks_may_differ() -> None:
    at_most = ids.pack(NOW_MS + ids.FUTURE_MS, 0, 0, 0)
    assert ids.is_plausible(at_most, NOW_MS)
    assert not ids.is_plausible(at_most + ids.ONE_MS, NOW_MS)


def test_a_later_launch_is_a_stricter_filter() -> None:
    order_id = ids.pack(NOW_MS - YEAR_MS, 0, 0, 0)
    assert not ids.is_plausible(order_id, NOW_MS, launched_ms=NOW_MS - 1000)


def taken(source: LaneIds, lane: int, now_ms: int, count: int) -> Iterator[int]:
    for _ in range(count):
        order_id = source.next(lane, now_ms)
        assert isinstance(order_id, int)
        yield order_id


def test_ids_of_a_lane_carry_its_shard_its_lane_and_the_time() -> None:
    first, second = taken(LaneIds(7), 33, NOW_MS, 2)
    assert ids.unpack(first) == (NOW_MS, 7, 33, 0)
    assert ids.unpack(second) == (NOW_MS, 7, 33, 1)


def test_a_full_millisecond_borrows_the_next_one() -> None:
    *_, last, borrowed = taken(LaneIds(7), 63, NOW_MS, ids.SEQUENCES + 1)
    assert ids.unpack(last) == (NOW_MS, 7, 63, 4095)
    assert ids.unpack(borrowed) == (NOW_MS + 1, 7, 63, 0)


def test_lanes_do_not_share_their_sequences() -> None:
    source = LaneIds(1)
    assert [ids.unpack(next(taken(source, lane, NOW_MS, 1))).sequence for lane in range(3)] == [0, 0, 0]


def test_a_clock_that_goes_back_a_second_repeats_nothing() -> None:
    source = LaneIds(0)
    before = list(taken(source, 0, NOW_MS, 10))
    after = list(taken(source, 0, NOW_MS - 1000, 10))
    assert sorted({*before, *after}) == before + after


def test_a_clock_that_goes_back_ten_seconds_is_refused_visibly_until_it_is_near() -> None:
    source = LaneIds(0)
    (last,) = taken(source, 0, NOW_MS, 1)

    assert source.next(0, NOW_MS - 10_000) == ClockBehind(10_000)
    assert source.refusals == 1
    assert source.next(0, NOW_MS - 5_001) == ClockBehind(5_001)
    assert source.next(0, NOW_MS - 5_000) == last + 1
    assert source.refusals == 2


def test_other_lanes_go_on_while_one_is_refused() -> None:
    source = LaneIds(0)
    list(taken(source, 0, NOW_MS, 1))
    assert isinstance(source.next(0, NOW_MS - 10_000), ClockBehind)
    assert list(taken(source, 1, NOW_MS - 10_000, 1)) == [ids.pack(NOW_MS - 10_000, 0, 1, 0)]


def test_a_frozen_clock_gives_what_may_be_borrowed_and_not_one_more() -> None:
    source = LaneIds(0, max_ahead_ms=2)
    given_out = list(taken(source, 5, NOW_MS, 3 * ids.SEQUENCES))

    assert source.next(5, NOW_MS) == ClockBehind(3)
    assert source.ahead_ms(NOW_MS) == 2
    assert len(set(given_out)) == 3 * ids.SEQUENCES
    assert ids.extract_time(given_out[-1]) == NOW_MS + 2


def test_a_restart_goes_on_above_the_tail_of_the_log() -> None:
    *_, tail = taken(LaneIds(4), 9, NOW_MS, 100)
    restarted = LaneIds(4)
    restarted.seed(tail)
    assert list(taken(restarted, 9, NOW_MS - 3_000, 1)) == [tail + 1]


def test_a_seed_below_what_is_known_changes_nothing() -> None:
    source = LaneIds(4)
    first, *_, last = taken(source, 9, NOW_MS, 100)
    source.seed(first)
    assert list(taken(source, 9, NOW_MS, 1)) == [last + 1]


def test_an_id_of_another_shard_is_no_seed() -> None:
    with pytest.raises(ValueError, match="shard 3, not of 4"):
        LaneIds(4).seed(ids.pack(NOW_MS, 3, 0, 0))


def test_a_new_owner_starts_above_the_mark_of_the_lease_in_every_lane() -> None:
    source = LaneIds(15)
    source.raise_floor(NOW_MS + 3_000)

    assert source.high_water_ms == NOW_MS + 3_000
    for lane in range(ids.LANES):
        assert list(taken(source, lane, NOW_MS, 1)) == [ids.pack(NOW_MS + 3_001, 15, lane, 0)]


def test_a_clock_before_the_epoch_is_a_refusal_and_no_negative_id() -> None:
    assert isinstance(LaneIds(0).next(0, 0), ClockBehind)


def test_the_first_id_of_all_is_not_zero() -> None:
    assert list(taken(LaneIds(0), 0, ids.EPOCH_MS, 1)) == [1]


def test_after_2093_there_are_no_ids() -> None:
    assert list(taken(LaneIds(15), 63, ids.LAST_MS, 1)) == [ids.pack(ids.LAST_MS, 15, 63, 0)]
    with pytest.raises(OverflowError, match="2093"):
        LaneIds(0).next(0, ids.LAST_MS + 1)


steps = st.lists(
    st.tuples(
        st.sampled_from(["next", "next", "next", "burst", "restart", "new owner"]),
        st.integers(0, 2),
        st.integers(-12_000, 12_000) | st.sampled_from([0, 1, -1, -10_000, YEAR_MS, -YEAR_MS]),
    ),
    max_size=60,
)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_ids_grow_in_every_lane_across_clock_steps_restarts_and_owners(
    story: list[tuple[str, int, int]],
) -> None:
    now_ms, source = NOW_MS, LaneIds(6)
    last: dict[int, int] = {}
    refusals = 0
    for what, lane, step_ms in story:
        now_ms += step_ms
        if what == "restart":
            source, refusals = LaneIds(6), 0
            for tail in last.values():
                source.seed(tail)
        elif what == "new owner":  # the log's tail is lost, the lease is not
            mark_ms, source, refusals = source.high_water_ms, LaneIds(6), 0
            source.raise_floor(mark_ms)
        for _ in range(5_000 if what == "burst" else 1):
            order_id = source.next(lane, now_ms)
            if isinstance(order_id, ClockBehind):
                refusals += 1
                assert order_id.ahead_ms > ids.MAX_AHEAD_MS
                continue
            assert last.get(lane, 0) < order_id < 2**63
            assert ids.unpack(order_id)[1:3] == (6, lane)
            assert now_ms <= ids.extract_time(order_id) <= now_ms + ids.MAX_AHEAD_MS
            last[lane] = order_id
    assert source.refusals == refusals


def test_the_documented_generator_makes_ids_of_the_shard_that_is_asked_for() -> None:
    generator = OrderIds(lambda: NOW_MS)
    assert generator.generate(3, 17) == ids.pack(NOW_MS, 3, 17, 0)
    assert generator.generate(shard=3) == ids.pack(NOW_MS, 3, 0, 0)


def test_the_documented_form_without_arguments_means_shard_0_and_is_deprecated() -> None:
    generator = OrderIds(lambda: NOW_MS)
    with pytest.warns(DeprecationWarning, match="shard 0"):
        assert generator.generate() == ids.pack(NOW_MS, 0, 0, 0)
    assert generator.generate(0) == ids.pack(NOW_MS, 0, 0, 1)


def test_the_documented_generator_refuses_what_is_no_shard_or_lane() -> None:
    generator = OrderIds(lambda: NOW_MS)
    for shard, lane in ((16, 0), (-1, 0), (0, 64), (0, -1)):
        with pytest.raises(ValueError, match="is not in 0"):
            generator.generate(shard, lane)
