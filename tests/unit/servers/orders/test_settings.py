"""What an order server is told to own."""

from __future__ import annotations

import pytest

from roost.servers.orders.settings import OrdersSettings, parse_shards


def test_a_list_of_shards_holds_numbers_and_ranges() -> None:
    assert parse_shards("0-2, 7,12-12") == {0, 1, 2, 7, 12}


@pytest.mark.parametrize("text", ["", "x", "9-3", "5-2,1", "-1", "16", "0-16", "0-99999999999999", "1,,2"])
def test_what_is_no_list_of_shards_is_a_fault_of_the_settings(text: str) -> None:
    assert OrdersSettings(shards=text).faults() == [
        f"shards is {text!r}, must be auto or a list such as 0-7,12 of 0 to 15"
    ]
