"""`roost top` at 80 and at 200 columns: nothing is cut in the middle, and what nobody knows is no 0."""

from __future__ import annotations

import pytest

from roost.api.events import Happening
from roost.api.overview import (
    Attention,
    HomeNumbers,
    JobNumbers,
    OrderNumbers,
    Overview,
    PlatformHealth,
    ServerNumbers,
    TypeNumbers,
    WorldNumbers,
)
from roost.cli.overview import number, view
from roost.cli.tables import Table
from tests.unit.cli.test_tables import rendered

NOW = "2026-11-18T04:00:00.000Z"
WORLD = WorldNumbers(
    "kr-seoul-1", "queue-all", 98_765, 98_765, 1234, 500, 20, 3000, 4000, 480, 25.0, 24.5, 1_000_000, 77, 9,
    1800, "doors open at eight",
)  # fmt: skip
FULL = Overview(
    NOW,
    [WORLD, WorldNumbers("main")],
    ServerNumbers(1000, 950, 2, 1, 40, 3, 2, [TypeNumbers("game", 1000, 950, 123_456, 200_000)]),
    HomeNumbers(10_000_000, None, 99.5),
    [JobNumbers("01J8ZK3V7Q4M5N6P7R8S9T0VWX", "running", ["501", "502"], 10, 400, 97.3, 4)],
    OrderNumbers(16, 15, 4, 5000.5, None, 0),
    PlatformHealth("ok", [], {}),
    [Attention("warning", "2 servers of game are suspect", "game/501", "roost instances show 501")],
    [Happening("discovery", "registered", NOW, "game/501", "501 (game) registered")],
)


@pytest.mark.parametrize("width", [80, 200])
def test_it_fits_and_tells_what_matters(width: int) -> None:
    parts = list(view(FULL))
    for part in parts:
        if isinstance(part, Table):
            assert max(map(len, rendered(part, width=width))) <= width
    shown = " ".join(" ".join(rendered(*parts, width=width)).split())
    for wanted in (
        "kr-seoul-1",
        "98,765",
        "1,000 servers: 2 suspect, 1 draining, 40 full, 3 out of service",
        "10 of 400",
        "15 of 16 shards",
        "? rejected/s",
        "! 2 servers of game are suspect",
        "501 (game) registered",
    ):
        assert wanted in shown


def test_in_a_wide_terminal_nothing_is_left_out() -> None:
    shown = "\n".join(rendered(*view(FULL), width=200))
    assert "not shown" not in shown
    assert "doors open at eight" in shown


def test_what_nobody_knows_is_a_question_mark() -> None:
    assert (number(None), number(0), number(1234), number(0.5)) == ("?", "0", "1,234", "0.5")
    (world,) = [line for line in rendered(*view(FULL), width=200) if line.startswith("main ")]
    assert set(world.split()) == {"main", "?"}


def test_a_store_that_is_away_is_said_first() -> None:
    away = Overview(
        NOW, [WorldNumbers("main")], ServerNumbers(), HomeNumbers(), [], OrderNumbers(),
        PlatformHealth("away", [], {}), [], [],
    )  # fmt: skip
    first, *rest = rendered(*view(away))
    assert "store away" in first
    assert "? servers" in "\n".join(rest)
