"""`roost queue` as an operator uses it, on a running Roost."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from roost.store import scopes
from roost.store.keys.waitingroom import world_keys
from roost.store.store import Store
from roost.store.url import parse_store_url
from roost.testing import eventually, free_port, wait_until
from tests.acceptance.conftest import open_home
from tests.acceptance.test_discovery_http import Api

VERBS = ("status", "watch", "hold", "resume", "mode", "cap", "rate", "message", "kick", "drop-server")

PATIENCE = {"ROOST_QUEUE__LATE_SECONDS": "120"}
"""Whoever waits is still there when a busy machine has run the next command."""


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with open_home(tmp_path_factory.mktemp("queue")) as home:
        up = home.up(ROOST_QUEUE__WORLDS="main,eu-1", **PATIENCE)
        yield Api(home, up.url, home.token())


def run(api: Api, *args: str) -> subprocess.CompletedProcess[str]:
    return api.home.run("queue", *args)


def view(api: Api, *args: str) -> Any:
    done = run(api, *args, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(api: Api, verb: str) -> None:
    done = run(api, verb, "--help")
    assert done.returncode == 0
    assert "Example" in done.stdout
    assert "--world" in done.stdout


def test_modes_are_kept(api: Api) -> None:
    assert "mode hold" in run(api, "hold").stdout
    assert view(api, "resume")["mode"] == "auto"
    for mode in ("queue-all", "auto"):
        assert view(api, "mode", mode)["mode"] == mode


def test_limits_and_messages_are_kept_and_lifted(api: Api) -> None:
    assert view(api, "cap", "0")["limit"] == 0
    assert view(api, "rate", "0.5")["rate"] == 0.5
    assert "limit 0, rate 0.5/s" in run(api, "message", "back at [20:00]").stdout
    seen = view(api, "status", "--world", "main")
    assert (seen["limit"], seen["rate"], seen["message"]) == (0, 0.5, "back at [20:00]")
    assert view(api, "status", "--world", "eu-1")["message"] == ""
    assert view(api, "cap", "none")["limit"] is None
    assert view(api, "rate", "none")["rate"] is None
    assert view(api, "message", "--clear")["message"] == ""


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("mode", "party"), "queue-all"),
        (("cap", "many"), "none"),
        (("cap", "١"), "none"),
        (("rate", "fast"), "none"),
        (("rate", "0"), "hold"),
        (("rate", "nan"), "above 0"),
        (("message",), "--clear"),
        (("message", "x", "--clear"), "--clear"),
        (("message", "m" * 501), "500"),
        (("hold", "--world", "nowhere"), "UNKNOWN_WORLD"),
        (("status", "--world", "no/where"), "UNKNOWN_WORLD"),
        (("kick", "a{b}"), "INVALID_ID"),
    ],
)
def test_a_wrong_order_is_refused_with_what_to_do(api: Api, args: tuple[str, ...], says: str) -> None:
    done = run(api, *args)
    assert done.returncode == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_status_shows_every_world_its_classes_and_its_servers(api: Api) -> None:
    registration = {"type": "game", "group": "kr", "serverId": "501", "capacity": 3}
    life = api.ask("POST", "/sd/v1/instances", registration).json["life"]
    report = {"life": life, "number": 1, "capacity": 3, "users": 3, "counted": 0, "url": "ws://game/501"}
    assert "no game server has reported" in run(api, "status").stdout
    assert api.ask("POST", "/queue/v1/worlds/eu-1/servers/501/report", report).status == 200
    api.ask("POST", "/api/queue/entry", {"userId": "ann", "world": "eu-1"})
    shown = run(api, "status").stdout
    assert shown.splitlines()[0].split()[:8] == [
        *("world", "waiting", "away", "tickets", "held", "inside", "capacity", "free")
    ]
    (row,) = [line.split() for line in shown.splitlines() if line.startswith("eu-1") and " auto" in line]
    assert row[:9] == ["eu-1", "1", "0", "0", "0", "3", "3", "0", "auto"]
    for part in ("vip", "25%", "base", "75%", "3/3", "ws://game/501"):
        assert part in shown
    assert "OVERADMIT" not in shown
    assert [one["world"] for one in view(api, "status")["worlds"]] == ["main", "eu-1"]


def test_kick_takes_the_place_away(api: Api) -> None:
    api.ask("POST", "/api/queue/entry", {"userId": "a/b", "world": "main"})
    assert view(api, "status", "--world", "main")["waiting"] == 1
    assert "has no place" in run(api, "kick", "a/b").stdout
    assert view(api, "status", "--world", "main")["waiting"] == 0


def test_a_server_is_dropped_from_the_ledger_for_good(api: Api) -> None:
    registration = {"type": "game", "group": "kr", "serverId": "502", "capacity": 3}
    life = api.ask("POST", "/sd/v1/instances", registration).json["life"]
    report = {"life": life, "number": 1, "capacity": 3, "users": 0, "counted": 0}
    path = "/queue/v1/worlds/main/servers/502/report"
    wait_until(lambda: api.ask("POST", path, report).json["known"], "the leader to know the server")
    assert "takes users" in run(api, "status").stdout
    assert "out of the ledger" in run(api, "drop-server", "502").stdout
    assert view(api, "status", "--world", "main")["servers"] == []
    assert api.ask("POST", path, report | {"number": 2}).status == 409
    assert "UNKNOWN" in run(api, "drop-server", "502").stderr


def test_an_invented_server_is_shown_and_counts_for_nothing(api: Api) -> None:
    report = {"life": "9999999999999999", "number": 1, "capacity": 1_000_000, "users": 0, "counted": 0}
    for server in ("ghost", "501"):
        answer = api.ask("POST", f"/queue/v1/worlds/main/servers/{server}/report", report)
        assert (answer.status, answer.json["known"]) == (200, False)
    assert view(api, "status", "--world", "main")["capacity"] == 0
    assert "they count for nothing" in " ".join(run(api, "status").stdout.split())
    assert run(api, "drop-server", "ghost").returncode == 0


def test_watch_follows_until_it_is_interrupted(api: Api) -> None:
    watching = api.home.start("queue", "watch", "--world", "main", "--json", until='"waiting"')
    wait_until(lambda: watching.text.count("\n") >= 2, "the next second", lambda: watching.text)
    first = json.loads(watching.text.splitlines()[0])
    assert first["world"] == "main"
    assert watching.interrupt() == 0
    drawn = api.home.start("queue", "watch", until="capacity")
    assert drawn.interrupt() == 0
    assert "Traceback" not in drawn.text


def test_watch_without_a_gateway_says_how_to_start_one(api: Api) -> None:
    done = api.home.run("queue", "watch", "--url", f"http://127.0.0.1:{free_port()}")
    assert done.returncode == 1
    assert "roost up" in done.stderr


async def test_a_ticket_without_room_is_the_first_thing_to_see(api: Api) -> None:
    store = await Store.open(parse_store_url(api.home.store_url), attach=True)
    key = world_keys(store.keys, scopes.world("main"))["world"]
    await store.call("HSET", key, "overadmit", 3)
    try:
        await eventually(lambda: view(api, "status", "--world", "main")["counters"]["overadmit"] == 3)
        assert run(api, "status").stdout.startswith("OVERADMIT 3 in main")
    finally:
        await store.call("HDEL", key, "overadmit")
        await store.close()
