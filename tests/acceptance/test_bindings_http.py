"""Bindings as operators and clients see them: HTTP, the SDK and the command line, beside a running Roost."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import roost
from roost.api.binding import UnknownBinding
from roost.binding.drain.model import MoveNote
from roost.binding.scripts import Beaten, Placed
from roost.binding.service import Bindings
from roost.binding.settings import BindingSettings
from roost.core.owner import Owner
from roost.discovery.service import Discovery
from roost.settings import Settings
from roost.store.keys.binding import partition_keys
from roost.store.scopes import partition as partition_scope
from roost.store.store import Store
from roost.store.url import parse_store_url
from roost.testing import Gateway, RunningServer, eventually, open_gateway
from roost.testing.bindings import BindingLeader
from tests.acceptance.conftest import Home
from tests.acceptance.test_discovery_http import Api

TOKEN = "secret-secret-secret"


@pytest.fixture
async def gateway(server: RunningServer, tmp_path: Path) -> AsyncIterator[Gateway]:
    """A gateway whose partitions hold two users on 501 (of 502, closed, nobody)."""
    settings = Settings(data=tmp_path, api_token=TOKEN, profile="lan", binding=BindingSettings(partitions=2))
    async with open_gateway(server.url, settings) as gateway:
        bindings = gateway.platform.bindings
        leader = await BindingLeader.of(gateway.platform.store, bindings)
        for server_id, willing in (("501", True), ("502", False)):
            await leader.shows(server_id, "7", willing=willing)
            for number in range(2):
                await bindings.beat(
                    "entity", Owner(server_id, "7"), capacity=4, version="1.0", partition=number
                )
        for user in ("ann", "bob"):
            await bindings.resolve("entity", user)
        yield gateway


async def ask(gateway: Gateway, path: str) -> Any:
    answer = await gateway.ask("GET", path, token=TOKEN)
    assert answer.status == 200, answer.body
    return answer.json


async def test_who_holds_a_user(gateway: Gateway) -> None:
    home = await ask(gateway, "/bind/v1/users/ann?type=entity")
    assert await ask(gateway, "/bind/v1/users?userId=ann") == {"homes": [home]}
    assert await ask(gateway, "/bind/v1/users?userId=nobody") == {"homes": []}

    assert (home["userId"], home["type"], home["state"]) == ("ann", "entity", "held")
    assert (home["serverId"], home["life"], home["why"]) == ("501", "7", "new")
    assert home["epoch"] > 10**15
    assert home["since"].endswith("Z")


async def test_the_documented_views_of_the_servers(gateway: Gateway) -> None:
    found = await ask(gateway, "/bind/v1/servers")

    assert found["availableEntities"] == {"501": True, "502": False}
    assert found["binders"] == {"501": 2, "502": 0}
    assert found["servers"][0] == {
        "serverId": "501",
        "life": "7",
        "accepting": True,
        "open": True,
        "alive": True,
        "users": 2,
        "capacity": 4,
        "version": "1.0",
    }
    assert (await ask(gateway, "/bind/v1/servers?type=room"))["servers"] == []


async def test_the_users_of_a_server_page_by_page(gateway: Gateway) -> None:
    first = await ask(gateway, "/bind/v1/servers/501/users?limit=1")
    second = await ask(gateway, f"/bind/v1/servers/501/users?limit=1&cursor={first['cursor']}")
    third = await ask(gateway, f"/bind/v1/servers/501/users?limit=1&cursor={second['cursor']}")

    assert sorted(first["users"] + second["users"]) == ["ann", "bob"]
    assert third == {"users": [], "cursor": ""}
    assert sorted((await ask(gateway, "/bind/v1/servers/501/users"))["users"]) == ["ann", "bob"]


async def test_an_operator_takes_a_user_away_and_the_history_tells_it(gateway: Gateway) -> None:
    assert (await gateway.ask("DELETE", "/bind/v1/users/ann", token=TOKEN)).status == 204

    home = await ask(gateway, "/bind/v1/users/ann")
    assert (home["state"], home["serverId"], home["why"]) == ("released", "", "unbound")
    changes = (await ask(gateway, "/bind/v1/users/ann/history"))["changes"]
    assert [(c["why"], c["source"], c["serverId"]) for c in changes] == [
        ("unbound", "501", ""),
        ("new", "", "501"),
    ]
    assert (await gateway.ask("DELETE", "/bind/v1/users/ann", token=TOKEN)).refusal == (
        404,
        "UNKNOWN_BINDING",
    )
    assert (await ask(gateway, "/bind/v1/users/nobody/history"))["changes"] == []


async def test_who_is_on_the_move_is_not_taken_away_as_the_description_says(gateway: Gateway) -> None:
    store, bindings = gateway.platform.store, gateway.platform.bindings
    number = bindings.partition_of("entity", "ann")
    key = partition_keys(store.keys, partition_scope(number))["users"] + b"entity:ann"
    mark = ("st", "M", "d", "502", "dl", "7", "ne", 2**52, "m", "m1", "dt", 2**52)
    await store.call("HSET", key, *mark, key=key)

    answer = await gateway.ask("DELETE", "/bind/v1/users/ann", token=TOKEN)

    assert answer.refusal == (503, "UNAVAILABLE")
    told = (await ask(gateway, "/openapi.json"))["paths"]["/bind/v1/users/{userId}"]["delete"]
    assert "UNAVAILABLE" in told["responses"]["503"]["description"].split(", ")


async def test_what_became_of_the_moves_of_a_user(gateway: Gateway) -> None:
    notes = [
        MoveNote(at=1.5, job="j-1", source="501", target="503", outcome="returned", why="flush was too slow"),
        MoveNote(at=2.5, job="j-1", source="501", target="503", outcome="moved", phases={"total": 4.5}),
    ]
    for note in notes:
        await gateway.platform.bindings.note_moves("entity", [("ann", note)])

    moved, returned = (await ask(gateway, "/bind/v1/users/ann/moves"))["moves"]
    assert moved == {
        "at": "1970-01-01T00:00:02.500Z",
        "job": "j-1",
        "source": "501",
        "target": "503",
        "outcome": "moved",
        "why": "",
        "phases": {"total": 4.5},
    }
    assert (returned["outcome"], returned["why"]) == ("returned", "flush was too slow")
    assert (await ask(gateway, "/bind/v1/users/nobody/moves"))["moves"] == []


@pytest.mark.parametrize(
    ("method", "path", "refusal"),
    [
        ("GET", "/bind/v1/users/nobody", (404, "UNKNOWN_BINDING")),
        ("GET", "/bind/v1/users/ann?type=room", (404, "UNKNOWN_BINDING")),
        ("GET", "/bind/v1/users/a%20b", (400, "INVALID_ID")),
        ("GET", "/bind/v1/users?userId=a%20b", (400, "INVALID_ID")),
        ("GET", "/bind/v1/users/ann?type=en:tity", (400, "INVALID_ID")),
        ("GET", f"/bind/v1/users/{'x' * 129}", (400, "INVALID_ID")),
        ("GET", "/bind/v1/users/ann?magic=1", (400, "INVALID_INPUT")),
        ("GET", "/bind/v1/users/a%20b/moves", (400, "INVALID_ID")),
        ("GET", "/bind/v1/servers/999/users", (404, "UNKNOWN_HOLDER")),
        ("GET", "/bind/v1/servers/501/users?limit=0", (400, "INVALID_INPUT")),
        ("GET", "/bind/v1/servers/501/users?limit=1001", (400, "INVALID_INPUT")),
        ("GET", "/bind/v1/servers/501/users?cursor=ann", (400, "INVALID_INPUT")),
        ("GET", "/bind/v1/servers/501/users?cursor=9:ann", (400, "INVALID_INPUT")),
        ("GET", "/bind/v1/servers/501/users?cursor=0:", (400, "INVALID_ID")),
        ("DELETE", "/bind/v1/users/nobody", (404, "UNKNOWN_BINDING")),
        ("PUT", "/bind/v1/users/ann", (405, "METHOD_NOT_ALLOWED")),
    ],
)
async def test_bad_requests_get_a_clear_refusal(
    gateway: Gateway, method: str, path: str, refusal: tuple[int, str]
) -> None:
    assert (await gateway.ask(method, path, token=TOKEN)).refusal == refusal


async def test_everything_needs_a_token_and_unbinding_an_admins(gateway: Gateway) -> None:
    made = await gateway.ask("POST", "/auth/v1/tokens", {"name": "reader", "scopes": ["read"]}, token=TOKEN)
    reader = made.json["token"]
    for path in (
        "/bind/v1/users/ann",
        "/bind/v1/users/ann/moves",
        "/bind/v1/servers",
        "/bind/v1/servers/501/users",
    ):
        assert (await gateway.ask("GET", path)).status == 401
        assert (await gateway.ask("GET", path, token=reader)).status == 200
    assert (await gateway.ask("DELETE", "/bind/v1/users/ann", token=reader)).status == 403


async def test_the_metrics_page_counts_bindings_servers_and_grants(gateway: Gateway) -> None:
    await gateway.platform.bindings.resolve("entity", "ann", seen=2**52)
    page = (await gateway.ask("GET", "/metrics", token=TOKEN)).body.decode()

    assert 'roost_bindings{type="entity"} 2.0' in page
    assert 'roost_binding_servers{state="accepting",type="entity"} 1.0' in page
    assert 'roost_binding_servers{state="closed",type="entity"} 1.0' in page
    assert 'roost_binding_grants_total{type="entity",why="new"} 2.0' in page
    assert 'roost_binding_grants_total{type="entity",why="seen"} 1.0' in page
    assert 'roost_binding_refusals_total{type="entity"} 0.0' in page
    assert 'roost_binding_leading{partition="0"} 0.0' in page


async def test_clients_ask_for_a_home_over_http_and_on_the_store(
    gateway: Gateway, server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOST_BINDING__PARTITIONS", "2")
    for url in (gateway.url, server.url):
        async with roost.connect(url, token=TOKEN) as client:
            home = await client.home_of("ann")
            assert (home.server_id, home.type) == ("501", "entity")
            with pytest.raises(UnknownBinding):
                await client.home_of("ann", type="room")


# -- beside real processes


@contextlib.asynccontextmanager
async def store_of(home: Home) -> AsyncIterator[Store]:
    store = await Store.open(parse_store_url(home.store_url), attach=True)
    try:
        yield store
    finally:
        await store.close()


def on_the_store(home: Home, act: Callable[[Bindings], Coroutine[Any, Any, None]]) -> None:
    """Its leases outlast the commands of a test."""

    async def run() -> None:
        async with store_of(home) as store:
            await act(Bindings(store, BindingSettings(lease_ms=60_000), Discovery(store)))

    asyncio.run(run())


async def forget_record(home: Home, who: str) -> None:
    """As when the tombstone of a released user has expired."""
    async with store_of(home) as store:
        key = partition_keys(store.keys, partition_scope(0))["users"] + who.encode()
        assert await store.call("DEL", key, key=key) == 1


def test_the_command_line_tells_where_a_user_is_and_how_they_came_there(home: Home) -> None:
    up = home.up()
    api = Api(home, up.url, home.token())
    life = api.register(type="entity", serverId="501", capacity=10)["life"]

    async def place(bindings: Bindings) -> None:
        async def is_known() -> bool:
            return isinstance(await bindings.beat("entity", Owner("501", life), capacity=10), Beaten)

        await eventually(is_known, "the manager to write the server")
        assert isinstance(await bindings.resolve("entity", "ann"), Placed)

    on_the_store(home, place)

    held = home.run("bindings", "of", "501")
    assert (held.returncode, held.stdout) == (0, "ann\n1 user\n"), held.stderr
    told = home.run("bindings", "explain", "ann")
    assert told.stdout.startswith(f"ann → 501 (life {life}), held: new, ")
    shown = json.loads(home.run("bindings", "servers", "--json").stdout)
    assert shown["availableEntities"] == {"501": True}
    assert "1 server, 1 users" in home.run("bindings", "servers").stdout
    assert home.run("bindings", "release", "ann").stdout == "ann: released\n"
    explained = home.run("bindings", "explain", "ann")
    assert "unbound" in explained.stdout
    assert "new" in explained.stdout
    changes = json.loads(home.run("bindings", "explain", "ann", "--json").stdout)["changes"]["changes"]
    assert [change["why"] for change in changes] == ["unbound", "new"]

    async def note(bindings: Bindings) -> None:
        move = MoveNote(at=1.0, job="j-1", source="501", target="502", outcome="pinned", why="in a match")
        await bindings.note_moves("entity", [("ann", move)])

    on_the_store(home, note)
    asyncio.run(forget_record(home, "entity:ann"))
    after = home.run("bindings", "explain", "ann").stdout
    assert after.startswith("nobody holds them")
    assert "unbound" in after
    assert "pinned" in after
    told_json = json.loads(home.run("bindings", "explain", "ann", "--json").stdout)
    assert told_json["home"] is None
    moves = told_json["moves"]["moves"]
    assert [(move["outcome"], move["why"]) for move in moves] == [("pinned", "in a match")]

    assert "UNKNOWN_HOLDER" in home.run("bindings", "of", "502").stderr
    refused = home.run("bindings", "explain", "nobody")
    assert refused.returncode != 0
    assert "UNKNOWN_BINDING" in refused.stderr
    assert "roost bindings of 501" in home.run("bindings", "of", "--help").stdout
