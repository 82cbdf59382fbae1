"""A world as operators see and change it, without a store."""

from __future__ import annotations

import hashlib

import pytest

from roost.api.queue import ForecastInput, WorldPatch
from roost.core.errors import InvalidInput
from roost.waitingroom.rules import Policy
from roost.waitingroom.scripts import Seen
from roost.waitingroom.views import changes_in, forecast_view, person_view, world_view
from tests.unit.waitingroom.desk import board_of, long_line

OPENS_US = 1_800_000_000_000_000


def test_the_seed_of_the_draw_is_secret_until_the_world_opens() -> None:
    board = board_of(long_line(), opens_at=str(OPENS_US), seed="s3cr3t")
    before, after = (world_view("main", "game", board, Policy(), OPENS_US + us) for us in (-1, 0))
    assert (before.draw_seed, after.draw_seed) == ("", "s3cr3t")
    assert before.draw_digest == after.draw_digest == hashlib.sha256(b"s3cr3t").hexdigest()
    assert before.opens_at == "2027-01-15T08:00:00Z"


def test_what_is_left_out_of_a_patch_stays_and_null_takes_away() -> None:
    assert set(changes_in(WorldPatch()).values()) == {""}
    taken = changes_in(WorldPatch(message=None, limit=None, rate=None, opens_at=None))
    assert [name for name, value in taken.items() if value == "-"] == ["message", "limit", "rate", "opens_at"]
    given = changes_in(
        WorldPatch(mode="hold", limit=0, rate=0.5, opens_at="2027-01-15T08:00:00Z", revision=3)
    )
    assert given == {
        "mode": "hold",
        "message": "",
        "limit": "0",
        "rate": "0.5",
        "opens_at": str(OPENS_US),
        "expected": "3",
    }


@pytest.mark.parametrize(
    "patch",
    [
        WorldPatch(limit=-2),
        WorldPatch(limit=2**31 + 1),
        WorldPatch(rate=0),
        WorldPatch(rate=-0.5),
        WorldPatch(rate=1e9),
        WorldPatch(opens_at="tomorrow"),
        WorldPatch(opens_at="2027-01-15T08:00:00"),
        WorldPatch(opens_at="9999-12-31T23:59:59-14:00"),
        WorldPatch(opens_at="0001-01-01T00:00:00+14:00"),
    ],
)
def test_odd_changes_are_refused(patch: WorldPatch) -> None:
    with pytest.raises(InvalidInput):
        changes_in(patch)


@pytest.mark.parametrize("opens_at", ["9999-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"])
def test_an_opening_is_kept_and_shown_to_the_microsecond(opens_at: str) -> None:
    """As a float it was rounded into the year 10000, and the world could be shown to nobody."""
    us = changes_in(WorldPatch(opens_at=opens_at))["opens_at"]
    assert us == {"9999": "253402300799999999", "1969": "-1"}[opens_at[:4]]
    view = world_view("main", "game", board_of(long_line(), opens_at=us), Policy(), OPENS_US)
    assert view.opens_at == opens_at.replace(".999999", "")


def test_a_person_is_told_a_time_only_where_the_line_moves() -> None:
    seen = Seen("waiting", "", 100, 3, "Ann", "", 0, "")
    moving = person_view("main", "ann", seen, board_of(long_line()), Policy(), OPENS_US)
    assert (moving.state, moving.class_name, moving.rank, moving.away_ahead) == ("waiting", "base", 100, 3)
    assert (moving.eta_seconds, moving.eta_high_seconds) == (5, 5)
    held = person_view("main", "ann", seen, board_of(long_line(), mode="hold"), Policy(), OPENS_US)
    assert held.eta_seconds is None
    nobody = person_view("main", "bob", Seen("", "", 0, 0, "", "", 0, ""), board_of(long_line()), Policy(), 0)
    assert (nobody.state, nobody.class_name) == ("unknown", "")


def test_a_forecast_takes_what_is_asked_about_and_else_what_is() -> None:
    board = board_of(long_line(1000, fast=2000), rate="4")
    as_it_is = forecast_view(board, Policy(), ForecastInput())
    assert (as_it_is.waiting, as_it_is.free, as_it_is.issue_per_second) == (1000, 0, 4.0)
    assert (as_it_is.leaving_per_second, as_it_is.last_seconds, as_it_is.median_seconds) == (
        2.0,
        500.0,
        250.0,
    )
    faster = ForecastInput(waiting=100, rate=None, leaving_per_second=50.0)
    assert forecast_view(board, Policy(), faster).last_seconds == 2.0
    with pytest.raises(InvalidInput):
        forecast_view(board, Policy(), ForecastInput(limit=-2))
