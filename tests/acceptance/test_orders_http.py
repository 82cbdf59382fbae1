"""`/orders/v1` beside a running order server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from roost.lanes.commands import Side
from roost.testing import wait_until
from tests.acceptance.conftest import Home
from tests.acceptance.orders import SERVER, Market, open_market
from tests.acceptance.test_discovery_http import Api

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Market]:
    with open_market(tmp_path_factory.mktemp("orders")) as market:
        yield market


def test_every_shard_says_who_owns_it_and_how_it_is_doing(market: Market) -> None:
    made = market.new("ann", "SHOWN", 100, 5)

    def is_told() -> bool:
        status = market.ask("GET", "/shards").json["shards"][made.shard]["status"]
        return bool(status["seq"] >= made.seq and status["lanes"])

    wait_until(is_told, "the owner to tell of the order")
    shards = market.ask("GET", "/shards").json["shards"]
    assert [one["shard"] for one in shards] == list(range(16))
    assert {one["owner"] for one in shards} == {SERVER}
    assert all(one["leaseLeftMs"] > 0 and one["address"].endswith(str(market.port)) for one in shards)
    assert {one["status"]["violations"] for one in shards} == {0}
    assert {one["status"]["waitMs"] for one in shards} == {0}
    assert shards[made.shard]["status"]["lanes"].keys() == {str(made.lane)}


def test_an_order_is_found_by_its_id_also_after_its_symbol_moved(market: Market) -> None:
    made = market.new("ann", "WANDERER", 100, 5)
    target = (made.shard + 1) % 16

    moved = market.ask("PUT", "/placement/wanderer", {"shard": target})
    assert (moved.status, moved.json["changed"]) == (200, True)
    wait_until(lambda: market.has_arrived("WANDERER", target), "the symbol to arrive")

    order = market.ask("GET", f"/orders/{made.order_id}?account=ann").json
    assert (order["id"], order["symbol"], order["state"]) == (str(made.order_id), "WANDERER", "open")
    assert order["shard"] == target
    assert market.ask("GET", f"/orders/{made.order_id}?account=bob").refusal == (404, "UNKNOWN_ORDER")
    assert market.ask("GET", "/orders/42?account=ann").refusal == (404, "UNKNOWN_ORDER")


def test_a_place_is_changed_once_and_only_as_it_was_seen(market: Market) -> None:
    place = market.place("PINNED")
    assert (place["how"], place["owner"]) == ("hash", SERVER)
    target = (place["shard"] + 1) % 16
    there = {"shard": target, "lane": 5}

    stale = market.ask("PUT", "/placement/PINNED", {**there, "expected": place["version"] + 7})
    assert stale.refusal == (409, "PLACEMENT_CONFLICT")
    assert market.ask("PUT", "/placement/PINNED", there).json["changed"]
    wait_until(lambda: market.has_arrived("PINNED", target), "the symbol to arrive")
    assert not market.ask("PUT", "/placement/PINNED", there).json["changed"]
    listed = market.ask("GET", "/placement").json["symbols"]
    assert ("PINNED", target, 5) in [(one["symbol"], one["shard"], one["lane"]) for one in listed]

    assert market.ask("DELETE", "/placement/PINNED").json["changed"]
    wait_until(lambda: market.has_arrived("PINNED", place["shard"]), "the symbol to come back")
    assert market.ask("DELETE", "/placement/PINNED").json["place"]["how"] == "hash"
    assert not market.ask("DELETE", "/placement/PINNED").json["changed"]


@pytest.mark.parametrize("body", [{"shard": 16}, {"shard": -1}, {"shard": 1, "lane": 64}])
def test_there_are_16_shards_with_64_lanes(market: Market, body: dict[str, int]) -> None:
    assert market.ask("PUT", "/placement/ACME", body).refusal == (400, "INVALID_INPUT")


def test_a_book_is_replayed_as_it_stood_at_any_command(market: Market) -> None:
    first = market.new("ann", "REPLAYED", 100, 5)
    market.new("ann", "REPLAYED", 101, 2)
    market.new("bob", "REPLAYED", 101, 2, Side.SELL)

    def bids(to: int) -> list[tuple[int, int]]:
        book = market.ask("GET", f"/symbols/REPLAYED/replay?to={to}").json
        return [(level["price"], level["quantity"]) for level in book["bids"]]

    assert bids(first.seq) == [(100, 5)]
    assert bids(first.seq + 1) == [(101, 2), (100, 5)]
    assert bids(0) == [(100, 5)]
    book = market.ask("GET", "/symbols/replayed/replay").json
    assert book["bids"][0]["orders"][0]["orderId"] == str(first.order_id)


def test_a_halted_symbol_is_halted_in_the_log(market: Market) -> None:
    market.new("ann", "HALTED", 100, 5)
    halted = market.ask("POST", "/symbols/HALTED/halt", {"why": "news"}).json
    assert (halted["halted"], halted["why"], halted["durability"]) == (True, "news", "everysec")
    assert market.ask("GET", "/symbols/HALTED/replay").json["halted"] == "news"
    resumed = market.ask("POST", "/symbols/HALTED/resume").json
    assert (resumed["halted"], resumed["seq"] > halted["seq"]) == (False, True)
    assert market.ask("GET", "/symbols/HALTED/replay").json["halted"] is None
    before = market.ask("GET", f"/symbols/HALTED/replay?to={halted['seq']}").json
    assert before["halted"] == "news"


def test_an_id_is_explained(market: Market) -> None:
    made = market.new("ann", "EXPLAINED", 100, 5)
    found = market.ask("GET", f"/ids/{made.order_id}").json
    assert (found["plausible"], found["shard"], found["lane"]) == (True, made.shard, made.lane)
    assert not market.ask("GET", "/ids/42").json["plausible"]
    assert market.ask("GET", "/ids/no-number").refusal == (400, "INVALID_ID")


def test_advice_and_metrics_are_there(market: Market) -> None:
    advice = market.ask("GET", "/advice").json
    assert advice["unowned"] == []
    assert advice["after"] <= advice["before"]
    page = market.api.ask("GET", "/metrics").body.decode()
    assert "roost_lanes_shards_unowned 0.0" in page


def test_without_an_order_server_owners_are_not_asked(home: Home) -> None:
    up = home.up()
    api = Api(home, up.url, home.token())
    answer = api.ask("POST", "/orders/v1/symbols/ACME/halt", {})
    assert answer.refusal == (503, "SHARD_UNOWNED")
    assert answer.headers["Retry-After"]
    assert api.ask("GET", "/orders/v1/placement/ACME").json["owner"] == ""
    assert {one["owner"] for one in api.ask("GET", "/orders/v1/shards").json["shards"]} == {""}
