"""Advice from measured rates: never worse, the same for the same rates, few moves, a named ceiling."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.lanes.advice import LEAST_GAIN, Advice, advise
from roost.lanes.ids import SHARDS
from roost.lanes.placement import Place, Table, decode
from roost.lanes.selector import Spot

rates_of_symbols = st.dictionaries(
    st.integers(0, 300).map(lambda n: f"S{n:03d}"),
    st.floats(0, 1e6, allow_nan=False) | st.integers(0, 10).map(float),
    max_size=80,
)


def unevenness(rates: dict[str, float], table: Table) -> float:
    """The fullest shard by the mean, counted anew."""
    loads = [0.0] * SHARDS
    for symbol, rate in rates.items():
        place = table.of(symbol)
        assert isinstance(place, Place)
        loads[place.shard] += rate
    mean = math.fsum(loads) / SHARDS
    return max(loads) / mean if mean else 1.0


@given(rates_of_symbols, st.integers(0, 12))
def test_advice_is_never_worse_and_what_it_says_comes_true(rates: dict[str, float], most: int) -> None:
    table = Table()
    advice = advise(rates, table, most_moves=most)

    assert len(advice.moves) <= most
    assert len({move.symbol for move in advice.moves}) == len(advice.moves)
    assert advice.before == pytest.approx(unevenness(rates, table))
    assert advice.after == pytest.approx(unevenness(rates, advice.applied_to(table)))
    assert advice.after <= advice.before
    assert advice.after >= advice.ceiling * (1 - 1e-9)
    assert not advice.moves or advice.before - advice.after >= LEAST_GAIN * (1 - 1e-9)


@given(rates_of_symbols, st.randoms(use_true_random=False))
def test_the_order_of_the_rates_does_not_matter(rates: dict[str, float], dice: random.Random) -> None:
    shuffled = list(rates.items())
    dice.shuffle(shuffled)
    assert advise(dict(shuffled), Table()) == advise(rates, Table())


@given(rates_of_symbols)
def test_moves_say_where_a_symbol_is_now(rates: dict[str, float]) -> None:
    for move in advise(rates, Table()).moves:
        place = Table().of(move.symbol)
        assert isinstance(place, Place)
        assert (place.shard, place.lane) == move.source
        assert move.target.shard != move.source.shard
        assert move.rate == rates[move.symbol]


def test_two_hot_symbols_of_one_shard_are_put_apart() -> None:
    table = Table().with_pin("BTCUSDT", Spot(3, 1)).with_pin("ETHUSDT", Spot(3, 2))
    rates = {"BTCUSDT": 1_000.0, "ETHUSDT": 900.0} | {f"S{n}": 1.0 for n in range(500)}

    advice = advise(rates, table, most_moves=1)

    assert [move.symbol for move in advice.moves] == ["BTCUSDT"]
    assert advice.hottest == "BTCUSDT"
    assert advice.before > 12
    assert advice.after < 7.2
    assert advice.ceiling == pytest.approx(1_000 / (2_400 / 16))


def test_one_symbol_alone_cannot_be_helped_and_is_named() -> None:
    assert advise({"BTCUSDT": 5_000.0}, Table()) == Advice((), 16.0, 16.0, "BTCUSDT", 16.0)


def test_zipf_load_comes_near_its_ceiling() -> None:
    rates = {f"S{n:03d}": 1_000 / (n + 1) for n in range(500)}
    advice = advise(rates, Table(), most_moves=100)
    assert advice.ceiling == pytest.approx(2.355, abs=0.001)
    assert advice.before > 1.1 * advice.ceiling
    assert advice.after == pytest.approx(advice.ceiling, rel=0.06)


def test_even_load_needs_no_moves() -> None:
    table = Table()
    for shard in range(SHARDS):
        table = table.with_pin(f"S{shard}", Spot(shard, 0))
    assert advise({f"S{shard}": 10.0 for shard in range(SHARDS)}, table).moves == ()


def test_no_load_is_even() -> None:
    assert advise({}, Table()) == advise({"AAPL": 0.0}, Table()) == Advice((), 1.0, 1.0, "", 0.0)


def test_rates_that_are_no_rates_are_left_out() -> None:
    advice = advise({"AAPL": 10.0, "TSLA": math.nan, "X": math.inf, "Y": -5.0}, Table())
    assert advice.hottest == "AAPL"
    assert advice.before == 16


def test_a_symbol_on_its_way_counts_where_it_goes_and_is_not_moved_again() -> None:
    table = Table().with_pin("BTC", Spot(3, 1)).with_pin("ETH", Spot(3, 2)).with_move("ETH", Spot(4, 2), "m")
    assert advise({"BTC": 10.0, "ETH": 10.0}, table).before == 8
    assert advise({"BTC": 10.0, "ETH": 10.0}, table).moves == ()


def test_a_symbol_whose_place_is_unreadable_is_left_alone() -> None:
    table = decode({"BTC": "nonsense"})
    assert advise({"BTC": 10.0, "ETH": 1.0}, table).hottest == "ETH"


def test_what_a_shard_does_for_other_symbols_stays_where_it_is() -> None:
    table = Table().with_pin("HOT", Spot(0, 0)).with_pin("WARM", Spot(0, 1))
    rest = dict.fromkeys(range(1, 15), 100.0)
    found = advise({"HOT": 50.0, "WARM": 40.0}, table, rest=rest)
    assert {move.target.shard for move in found.moves} <= {15}
    assert advise({}, table, rest={0: 10.0}).moves == ()
