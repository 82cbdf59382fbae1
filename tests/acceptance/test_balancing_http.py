"""Balancing over HTTP and on the command line, on servers that come and go."""

from __future__ import annotations

import json
from typing import Any

import pytest

from roost.testing import wait_until
from tests.acceptance.conftest import Home
from tests.acceptance.test_discovery_http import Api

KEYS = [f"user-{n}" for n in range(200)]


@pytest.fixture
def fleet(home: Home) -> Api:
    up = home.up()
    api = Api(home, up.url, home.token())
    for server in ("501", "502", "503"):
        api.register(serverId=server)
    return api


def select(api: Api, **fields: Any) -> dict[str, str | None]:
    answer = api.ask("POST", "/lb/v1/select", {"type": "game", "group": "kr-1", "keys": KEYS, **fields})
    assert answer.status == 200, answer.body
    return {one["key"]: one["serverId"] for one in answer.json["selections"]}


def test_a_key_has_one_server_however_it_is_asked_for(fleet: Api) -> None:
    many = select(fleet)
    assert set(many.values()) == {"501", "502", "503"}
    one = fleet.ask("GET", "/lb/v1/select?type=game&group=kr-1&key=user-7&n=2").json
    assert one["serverId"] == many["user-7"]
    assert one["candidates"][0] == one["serverId"]
    assert len(one["candidates"]) == 2
    assert one["ports"] == {"udp": 7777}


def test_g6_a_drained_server_gets_no_new_user_and_only_its_keys_move(fleet: Api) -> None:
    before = select(fleet)
    listed = fleet.ask("GET", "/sd/v1/instances").json["instances"]
    drained = next(i["instanceId"] for i in listed if i["serverId"] == "502")
    fleet.ask("PUT", f"/sd/v1/instances/{drained}/override", {"drain": True})
    wait_until(lambda: "502" not in select(fleet).values(), "the balancer to hear of it")
    after = select(fleet)
    assert all(after[key] == server for key, server in before.items() if server != "502")
    told = fleet.ask("GET", "/lb/v1/explain?type=game&group=kr-1&key=user-7").json
    assert {"serverId": "502", "whyNot": "not open"} in told["considered"]
    fleet.ask("PUT", f"/sd/v1/instances/{drained}/override", {})
    wait_until(lambda: select(fleet) == before, "every key to come back")


def test_nobody_to_choose_is_a_refusal_with_its_reason(fleet: Api) -> None:
    answer = fleet.ask("GET", "/lb/v1/select?type=chat&key=a")
    assert (answer.status, answer.json["serverId"]) == (200, None)
    assert answer.json["refusal"] == "no server is registered"


def test_a_preview_tells_what_would_move_and_changes_nothing(fleet: Api) -> None:
    before = select(fleet)
    wanted = {"type": "game", "group": "kr-1", "add": [{"serverId": "504"}]}
    preview = fleet.ask("POST", "/lb/v1/preview", wanted).json
    assert 0.2 < preview["moved"] < 1.3 / 4
    assert {move["target"] for move in preview["moves"]} == {"504"}
    assert select(fleet) == before


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/lb/v1/select?type=game", None),
        ("GET", "/lb/v1/select?type=game&key=a&strategy=magic", None),
        ("GET", "/lb/v1/select?type=ga{me&key=a", None),
        ("POST", "/lb/v1/select", {"type": "game", "keys": ["k"] * 10_001}),
        ("POST", "/lb/v1/preview", {"type": "game", "remove": ["nobody"]}),
        ("POST", "/lb/v1/preview", {"type": "game", "add": [{"serverId": ""}]}),
        ("POST", "/lb/v1/preview", {"type": "game", "add": [{"serverId": "x", "weight": -1}]}),
    ],
)
def test_bad_questions_are_refused(fleet: Api, method: str, path: str, body: Any) -> None:
    assert fleet.code(method, path, body)[0] == 400


def test_the_command_line_shows_the_ring(fleet: Api) -> None:
    shown = json.loads(fleet.home.run("ring", "show", "--type", "game", "--json").stdout)
    assert [node["serverId"] for node in shown["nodes"]] == ["501", "502", "503"]
    assert abs(sum(node["share"] for node in shown["nodes"]) - 1) < 0.001
    assert "%" in fleet.home.run("ring", "show", "--type", "game").stdout
    previewed = fleet.home.run(
        "ring", "preview", "--type", "game", "--add", "504=200", "--remove", "501"
    ).stdout
    assert "of all keys would move" in previewed
    explained = fleet.home.run("ring", "explain", "user-7", "--type", "game").stdout
    assert "user-7 → 50" in explained
    assert fleet.home.run("ring", "preview", "--type", "game").returncode == 1


def test_the_ring_is_told_place_by_place_and_a_key_lies_on_it(fleet: Api) -> None:
    ring = fleet.ask("GET", "/lb/v1/ring?type=game&group=kr-1&points=360").json
    assert len(ring["points"]) == 360
    assert {ring["nodes"][at]["serverId"] for at in ring["points"]} == {"501", "502", "503"}
    assert fleet.ask("GET", "/lb/v1/ring?type=game&group=kr-1").json["points"] == []
    assert fleet.ask("GET", "/lb/v1/ring?type=game&group=kr-1&points=5000").status == 400
    told = fleet.ask("GET", "/lb/v1/explain?type=game&group=kr-1&key=user-7").json
    assert 0 < told["position"] < 1
