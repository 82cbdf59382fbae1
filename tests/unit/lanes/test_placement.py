"""The placement table: the hash decides unless somebody pinned; every change is a new version."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.errors import InvalidId, InvalidInput
from roost.lanes.placement import MAX_CACHED, Moving, Place, Table, Unreadable, decode
from roost.lanes.selector import SELECTORS, Spot

symbols = st.sampled_from(["AAPL", "BTCUSDT", "005930", "삼성전자", "@VERSION", "NYSE:IBM"])
spots = st.builds(Spot, st.integers(0, 15), st.integers(0, 63))
tables = st.builds(
    lambda version, selector, pins, moves: with_moves(Table(version, selector, pins), moves),
    st.integers(0, 10**9),
    st.sampled_from(sorted(SELECTORS)),
    st.dictionaries(symbols, spots),
    st.dictionaries(symbols, spots),
)


def with_moves(table: Table, moves: dict[str, Spot]) -> Table:
    for symbol, target in moves.items():
        table = table.with_move(symbol, target, "01JD-move")
    return table


def by_hash(symbol: str, version: int = 0) -> Place:
    return Place(*SELECTORS["mixed"].spot(symbol), version)


def test_without_pins_the_hash_decides() -> None:
    assert Table().of("AAPL") == by_hash("AAPL")
    assert Table(selector="ring_v1").of("AAPL") == (13, SELECTORS["ring_v1"].spot("AAPL").lane, 0)


def test_a_pin_goes_before_the_hash_and_a_change_is_a_version() -> None:
    pinned = Table().with_pin("AAPL", Spot(3, 17))
    assert pinned.of("AAPL") == Place(3, 17, 1)
    assert pinned.of("TSLA") == by_hash("TSLA", version=1)
    assert pinned.without_pin("AAPL").of("AAPL") == by_hash("AAPL", version=2)


def test_the_table_of_before_stays_as_it_was() -> None:
    before = Table()
    before.of("AAPL")
    before.with_pin("AAPL", Spot(3, 17))
    assert before.of("AAPL") == by_hash("AAPL")
    assert before.pins == {}


def test_a_change_that_changes_nothing_is_no_version() -> None:
    table = Table().with_pin("AAPL", Spot(3, 17))
    assert table.with_pin("AAPL", Spot(3, 17)) is table
    assert table.without_pin("TSLA") is table
    assert table.without_move("AAPL") is table


def test_a_pin_is_for_every_spelling() -> None:
    assert Table().with_pin(" aapl", Spot(3, 17)).of("AAPL") == Place(3, 17, 1)


def test_what_moves_is_at_its_source_until_it_is_pinned_to_the_target() -> None:
    moving = Table().with_move("AAPL", Spot(4, 2), "m1")
    assert moving.of("AAPL") == Moving(by_hash("AAPL", version=1), Spot(4, 2), "m1")
    assert moving.with_pin("AAPL", Spot(4, 2)).of("AAPL") == Place(4, 2, 2)
    assert moving.without_move("AAPL").of("AAPL") == by_hash("AAPL", version=2)


def test_what_moves_cannot_start_another_move() -> None:
    with pytest.raises(InvalidInput, match="cannot move"):
        Table().with_move("AAPL", Spot(4, 2), "m1").with_move("AAPL", Spot(5, 2), "m2")


@pytest.mark.parametrize("spot", [Spot(16, 0), Spot(-1, 0), Spot(0, 64), Spot(0, -1)])
def test_a_lane_that_is_not_there_is_refused(spot: Spot) -> None:
    with pytest.raises(InvalidInput, match="no lane"):
        Table().with_pin("AAPL", spot)
    with pytest.raises(InvalidInput, match="no lane"):
        Table().with_move("AAPL", spot, "m1")


def test_names_that_would_not_be_read_again_are_refused() -> None:
    with pytest.raises(InvalidInput, match="cannot name a move"):
        Table().with_move("AAPL", Spot(4, 2), "a:b")
    with pytest.raises(InvalidInput, match="no selector"):
        Table(selector="md5")
    with pytest.raises(InvalidId, match="symbol"):
        Table().with_pin("A B", Spot(1, 1))


def test_the_fields_in_the_store_are_plain() -> None:
    table = Table().with_pin("BTCUSDT", Spot(3, 17)).with_pin("ETHUSDT", Spot(3, 17))
    assert table.with_move("ETHUSDT", Spot(4, 2), "01JD").encode() == {
        "@version": "3",
        "@selector": "mixed",
        "BTCUSDT": "3:17",
        "ETHUSDT": "3:17>4:2:01JD",
    }


def test_nothing_in_the_store_is_the_first_table() -> None:
    assert decode({}) == Table()


@given(tables)
def test_what_is_encoded_is_decoded_again(table: Table) -> None:
    again = decode(table.encode())
    assert again == table
    assert again.encode() == table.encode()
    for symbol in ("AAPL", "BTCUSDT", "@VERSION", "삼성전자"):
        assert again.of(symbol) == table.of(symbol)


@pytest.mark.parametrize(
    "record", ["", "3", "3:", "16:0", "3:64", "3:17>", "3:17>16:0:m", "-1:3", "3:17>4:2:", "３:1", "3:1 "]
)
def test_a_bad_record_costs_its_own_symbol_only(record: str) -> None:
    table = decode({"@version": "7", "AAPL": record, "TSLA": "3:17"})
    assert table.of("AAPL") == Unreadable(record)
    assert table.of("TSLA") == Place(3, 17, 7)
    assert decode(table.encode()) == table


def test_a_pin_heals_a_bad_record() -> None:
    table = decode({"@version": "7", "AAPL": "nonsense"})
    with pytest.raises(InvalidInput, match="cannot move"):
        table.with_move("AAPL", Spot(1, 1), "m1")
    assert table.with_pin("AAPL", Spot(3, 17)).of("AAPL") == Place(3, 17, 8)
    assert table.without_pin("AAPL").of("AAPL") == by_hash("AAPL", version=8)


@pytest.mark.parametrize("fields", [{"@version": "x"}, {"@version": "-1"}, {"@selector": "md5"}])
def test_a_table_without_a_version_or_selector_that_is_known_is_refused(fields: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        decode(fields)


def test_more_symbols_than_are_remembered_still_have_their_places() -> None:
    table = Table()
    first = table.of("S0")
    for n in range(MAX_CACHED + 10):
        table.of(f"S{n}")
    assert table.of("S0") == first
