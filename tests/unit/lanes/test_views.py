"""Lanes as operators see them."""

from __future__ import annotations

import pytest

from roost.core.errors import InvalidId
from roost.lanes.ids import pack
from roost.lanes.placement import Table
from roost.lanes.scripts import Shard
from roost.lanes.selector import Spot
from roost.lanes.views import id_view, parse_id, place_view, placement_view, shard_view, status_of

NOW_MS = 1_794_960_000_000
OWNED = Shard("901-abc", 7, "127.0.0.1:8440", "901", '{"seq": 12, "hot": {"ACME": 3.5}}', 4000)


@pytest.mark.parametrize("text", ["", "-1", "1e3", "٣", "9" * 20, "ACME"])
def test_what_is_no_order_id_is_refused(text: str) -> None:
    with pytest.raises(InvalidId):
        parse_id(text)


def test_an_id_is_text_and_taken_apart() -> None:
    number = pack(NOW_MS - 5, 14, 40, 3)
    view = id_view(parse_id(str(number)), NOW_MS)
    assert (view.id, view.plausible, view.shard, view.lane, view.sequence) == (str(number), True, 14, 40, 3)


def test_a_place_says_how_it_came_about_and_who_owns_it() -> None:
    table = Table(4).with_pin("ACME", Spot(3, 9))
    pinned = place_view(table, "ACME", {3: OWNED})
    assert (pinned.how, pinned.shard, pinned.lane, pinned.owner) == ("pinned", 3, 9, "901")
    moving = place_view(table.with_move("ACME", Spot(5, 1), "m1"), "ACME")
    assert moving.to is not None
    assert (moving.how, moving.shard, moving.to.shard, moving.move_id) == ("moving", 3, 5, "m1")
    assert place_view(table, "OTHER").how == "hash"
    unreadable = place_view(Table(1, unreadable={"BAD": "x"}), "BAD")
    assert (unreadable.how, unreadable.record) == ("unreadable", "x")


def test_the_placement_lists_what_the_table_names() -> None:
    table = Table(1, pins={"B": Spot(1, 1), "A": Spot(2, 2)}, unreadable={"C": "?"})
    assert [one.symbol for one in placement_view(table).symbols] == ["A", "B", "C"]


def test_a_lease_that_is_over_has_no_owner() -> None:
    assert shard_view(3, OWNED).owner == "901"
    over = Shard("901-abc", 7, "127.0.0.1:8440", "901", "", 0)
    assert (shard_view(3, over).owner, shard_view(3, over).address) == ("", "")


def test_a_status_that_cannot_be_read_costs_nothing_but_itself() -> None:
    assert (status_of(OWNED.status).seq, status_of(OWNED.status).hot) == (12, {"ACME": 3.5})
    assert status_of("{").seq == status_of('{"seq": "x"}').seq == status_of("").seq == 0
