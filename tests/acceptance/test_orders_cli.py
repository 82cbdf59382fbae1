"""`roost orders` beside a running order server, in a terminal of 80 columns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from roost.testing import wait_until
from tests.acceptance.conftest import Home
from tests.acceptance.orders import Market, open_market

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Market]:
    with open_market(tmp_path_factory.mktemp("orders")) as market:
        yield market


def said(market: Market, *args: str) -> str:
    """What people read; it fits the terminal."""
    done = market.home.run("orders", *args, COLUMNS="80")
    assert done.returncode == 0, done.stdout + done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    return done.stdout


def shown(market: Market, *args: str) -> Any:
    done = market.home.run("orders", *args, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_shards_and_the_picture_of_them(market: Market) -> None:
    assert "every shard has an owner" in said(market, "shards")
    top = said(market, "top", "--once")
    assert [line.split()[:2] for line in top.splitlines()[1:17]] == [[str(n), "901"] for n in range(16)]
    assert len(shown(market, "top")["shards"]) == 16


def test_a_symbol_is_moved_and_moved_back(market: Market) -> None:
    home = market.place("CARRIED")["shard"]
    away = (home + 1) % 16
    assert "by its hash" in said(market, "place", "carried")
    assert said(market, "move", "CARRIED", str(away), "--lane", "9").startswith("CARRIED is in shard")
    wait_until(lambda: market.has_arrived("CARRIED", away), "the symbol to arrive")
    assert said(market, "move", "CARRIED", str(away), "--lane", "9").startswith("unchanged")
    assert f"{away}:9" in said(market, "place")
    said(market, "unpin", "CARRIED")
    wait_until(lambda: market.has_arrived("CARRIED", home), "the symbol to come back")
    assert shown(market, "unpin", "CARRIED")["place"]["how"] == "hash"


def test_a_symbol_is_halted_replayed_and_resumed(market: Market) -> None:
    made = market.new("ann", "WATCHED", 100, 5)
    assert "cancels go on" in said(market, "halt", "WATCHED", "--why", "news")
    assert "halted: news" in said(market, "replay", "WATCHED")
    before = said(market, "replay", "WATCHED", "--to", str(made.seq))
    assert "halted" not in before
    assert ["bid", "100", "5", "1"] in [line.split() for line in before.splitlines()]
    assert "takes orders" in said(market, "resume", "WATCHED")


def test_an_order_is_shown_to_who_knows_its_account(market: Market) -> None:
    made = market.new("ann", "OWNED", 100, 5)
    assert "buy 5 OWNED at 100, 0 filled" in said(market, "order", str(made.order_id), "--account", "ann")
    refused = market.home.run("orders", "order", str(made.order_id), "--account", "bob")
    assert (refused.returncode, "UNKNOWN_ORDER" in refused.stderr) == (1, True)


def test_advice_is_given(market: Market) -> None:
    assert "fullest shard by mean" in said(market, "advise")


def test_an_id_is_explained_without_anybody_to_ask(home: Home) -> None:
    ours = home.run("orders", "explain-id", "381259342142930944")
    assert "shard 14, lane 40" in ours.stdout
    foreign = home.run("orders", "explain-id", "1700000000000", "--json")
    assert (foreign.returncode, json.loads(foreign.stdout)["plausible"]) == (1, False)
    assert home.run("orders", "explain-id", "ACME").returncode == 1


@pytest.mark.parametrize(
    "command",
    [
        "serve",
        "top",
        "shards",
        "place",
        "move",
        "unpin",
        "advise",
        "explain-id",
        "halt",
        "resume",
        "order",
        "replay",
    ],
)
def test_every_verb_has_help_with_an_example(home: Home, command: str) -> None:
    assert "Example" in home.run("orders", command, "--help").stdout


@pytest.mark.parametrize("who", ["owner", pytest.param("store", marks=pytest.mark.slow)])
def test_a_short_drill_holds_though_one_is_killed(home: Home, who: str) -> None:
    drill = ("drill", "orders", "--seconds", "6", "--rate", "100", "--symbols", "10", "--kill", who)
    done = home.run_for(110, *drill, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert {one["guarantee"]: one["held"] for one in report["verdicts"]} == {
        "G13": True,
        "G14": True,
        "G15": True,
        "G16": True,
        "killed in the middle": True,
    }
    assert report["counts"]["accepted"] > 100
    assert home.run("drill", "orders", "--kill", "nobody").returncode == 1
