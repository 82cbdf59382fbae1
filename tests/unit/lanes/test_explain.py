"""What a client sent instead of an order id, in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.lanes import ids
from roost.lanes.explain import explain
from tests.unit.lanes.foreign import foreign_ids

NOW_MS = 1_795_000_000_123


@pytest.mark.parametrize(("name", "number"), foreign_ids(NOW_MS).items())
def test_a_foreign_id_is_named_after_its_format(name: str, number: int) -> None:
    said = explain(number, NOW_MS)
    assert said.startswith(f"{number} is no order id: it looks like {name}")
    assert name == "an auto-increment number" or "2026" in said


def test_an_id_of_ours_is_taken_apart() -> None:
    number = ids.pack(NOW_MS, 3, 17, 5)
    said = explain(number, NOW_MS)
    assert said == f"{number} can be an order id: shard 3, lane 17, 2026-11-18T11:06:40.123Z, sequence 5"


def test_an_id_of_the_future_says_how_far() -> None:
    number = ids.pack(NOW_MS + 60_000, 3, 17, 5)
    assert f"{number} is an order id of the future, 60000 ms ahead" in explain(number, NOW_MS)


def test_the_launch_decides_whether_an_old_id_is_ours() -> None:
    number = ids.pack(NOW_MS - 1_000, 3, 17, 5)
    assert "can be an order id" in explain(number, NOW_MS)
    assert "can be an order id" not in explain(number, NOW_MS, launched_ms=NOW_MS)


def test_what_fits_nothing_is_called_random() -> None:
    assert "looks random; read as one it would be shard 1, lane 0, 2091" in explain(9 * 10**18, NOW_MS)


def test_two_formats_that_fit_are_both_named() -> None:
    said = explain(foreign_ids(NOW_MS)["a Discord snowflake"], NOW_MS)
    assert said.endswith("a Discord snowflake of 2026 or a Twitter snowflake of 2022")


@pytest.mark.parametrize(("number", "why"), [(0, "above 0"), (-7, "above 0"), (2**63, "below 2^63")])
def test_numbers_out_of_range_are_named(number: int, why: str) -> None:
    assert explain(number, NOW_MS).endswith(why)


@given(st.integers(-(2**70), 2**70), st.integers(0, ids.LAST_MS))
def test_every_number_has_an_explanation_at_any_time(number: int, now_ms: int) -> None:
    said = explain(number, now_ms)
    assert said.startswith(str(number))
    assert ("can be an order id" in said) == ids.is_plausible(number, now_ms)
