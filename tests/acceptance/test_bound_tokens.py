"""Tokens that are bound to worlds, types or one server: what they do not reach."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from roost.gateway.server import all_routes
from roost.testing import Answer, RunningServer, free_port, wait_until
from tests.acceptance.conftest import Home, http
from tests.acceptance.queue import LIFE, TOKEN, Gate, open_gate, settings_for

FORBIDDEN = (403, "FORBIDDEN")
OWN = {"worlds": ["main"], "types": ["game"], "serverId": "501"}


@pytest.fixture
async def gate(server: RunningServer, tmp_path: Path) -> AsyncIterator[Gate]:
    async with open_gate(server, settings_for(tmp_path)) as gate:
        yield gate


async def token(gate: Gate, *scopes: str, **bound: Any) -> str:
    given = {"name": "a server", "scopes": [*scopes], **bound}
    answer = await gate.ask("POST", "/auth/v1/tokens", given, token=TOKEN)
    assert answer.status == 201, answer.body
    return str(answer.json["token"])


async def register(gate: Gate, by: str, **fields: Any) -> Answer:
    return await gate.ask("POST", "/sd/v1/instances", {"type": "game", "group": "main", **fields}, token=by)


async def beat(gate: Gate, by: str, instance_id: str) -> Answer:
    return await gate.ask("POST", f"/sd/v1/instances/{instance_id}/heartbeat", {}, token=by)


async def remove(gate: Gate, by: str, instance_id: str, cause: str = "terminated") -> Answer:
    return await gate.ask("DELETE", f"/sd/v1/instances/{instance_id}?cause={cause}", token=by)


async def test_a_bound_token_does_what_its_server_needs(gate: Gate) -> None:
    own = await token(gate, "register", "gameserver", **OWN)
    me = (await register(gate, own, serverId="501", capacity=5)).json["instanceId"]
    assert (await beat(gate, own, me)).status == 200
    assert (await register(gate, own, serverId="501", instanceId=me, capacity=5)).status == 201
    report = {"life": LIFE, "number": 1, "capacity": 5, "users": 0, "counted": 0}
    answer = await gate.ask("POST", "/queue/v1/worlds/main/servers/501/report", report, token=own)
    assert answer.status == 200
    assert (await remove(gate, own, me)).status == 204


async def test_it_registers_no_other_type_or_server(gate: Gate) -> None:
    own = await token(gate, "register", **OWN)
    assert (await register(gate, own, serverId="502")).refusal == FORBIDDEN
    assert (await register(gate, own)).refusal == FORBIDDEN, "nor one without a name"
    other = await register(gate, own, type="login", serverId="501")
    assert other.refusal == FORBIDDEN
    assert "bound to the type game" in other.json["error"]["message"]
    assert "--type" in other.json["error"]["hint"]


async def test_it_touches_no_instance_of_others(gate: Gate) -> None:
    own = await token(gate, "register", **OWN)
    other = (await register(gate, TOKEN, serverId="502")).json["instanceId"]
    login = (await register(gate, TOKEN, type="login", serverId="501")).json["instanceId"]
    for instance in (other, login):
        assert (await beat(gate, own, instance)).refusal == FORBIDDEN
        assert (await remove(gate, own, instance)).refusal == FORBIDDEN
        taken = await register(gate, own, serverId="501", instanceId=instance)
        assert taken.refusal == FORBIDDEN, "nor takes its id over"
    listed = await gate.ask("GET", "/sd/v1/instances", token=TOKEN)
    assert {one["instanceId"] for one in listed.json["instances"]} == {other, login}


async def test_who_does_not_live_is_answered_as_ever(gate: Gate) -> None:
    own = await token(gate, "register", **OWN)
    assert (await beat(gate, own, "01NOBODY")).refusal == (404, "UNKNOWN")
    me = (await register(gate, own, serverId="501")).json["instanceId"]
    await remove(gate, own, me)
    assert (await beat(gate, own, me)).status in (404, 410)


async def test_only_an_operator_removes_for_good(gate: Gate) -> None:
    fleet = await token(gate, "register")
    other = (await register(gate, TOKEN, serverId="502")).json["instanceId"]
    refused = await remove(gate, fleet, other, "removed")
    assert refused.refusal == FORBIDDEN
    assert "admin" in refused.json["error"]["message"]
    assert (await remove(gate, TOKEN, other, "removed")).status == 204


@pytest.mark.parametrize(("world", "name"), [("main", "502"), ("eu", "501"), ("eu", "ghost")])
async def test_it_counts_for_its_own_world_and_server_only(gate: Gate, world: str, name: str) -> None:
    own = await token(gate, "gameserver", **OWN)
    path = f"/queue/v1/worlds/{world}/servers/{name}"
    report = {"life": LIFE, "number": 1, "capacity": 1_000_000, "users": 0, "counted": 0}
    release = {"userId": "ann", "life": LIFE, "connection": "c1", "how": "clean"}
    consume = {"ticketId": "x", "serverId": name, "life": LIFE, "connection": "c1", "world": world}
    assert (await gate.ask("POST", f"{path}/report", report, token=own)).refusal == FORBIDDEN
    assert (await gate.ask("POST", f"{path}/release", release, token=own)).refusal == FORBIDDEN
    answer = await gate.ask("POST", "/api/queue/tickets/consume", consume, token=own)
    assert answer.refusal == FORBIDDEN
    assert (await gate.seen())["capacity"] == 0


def test_every_route_that_a_server_may_call_says_what_it_acts_on(gate: Gate) -> None:
    bare = [
        r.path for r in all_routes(gate.platform) if r.scope in ("register", "gameserver") and not r.acts_on
    ]
    assert bare == []


async def test_a_backend_asks_for_players_of_its_worlds_only(gate: Gate) -> None:
    backend = await token(gate, "gameserver", worlds=["main"])
    elsewhere = await token(gate, "gameserver", worlds=["eu"])
    one_server = await token(gate, "gameserver", serverId="501")
    entry = {"userId": "ann"}
    placed = await gate.ask("POST", "/api/queue/entry", entry, token=backend)
    assert placed.status == 200
    proof = {"X-Queue-Receipt": placed.json["receipt"]}
    for by in (elsewhere, one_server):
        assert (await gate.ask("POST", "/api/queue/entry", entry, token=by)).refusal == FORBIDDEN
        for method, path in (
            ("GET", "/api/queue/status?userId=ann"),
            ("GET", "/api/queue/events?userId=ann"),
            ("DELETE", "/api/queue/entry?userId=ann"),
        ):
            assert (await gate.ask(method, path, token=by, headers=proof)).refusal == FORBIDDEN
    assert (await gate.seen())["waiting"] == 1


@pytest.mark.parametrize(
    "bound",
    [
        {"worlds": ["a b"]},
        {"types": ["a:b"]},
        {"serverId": "a{b}"},
        {"worlds": ["w"] * 33},
    ],
)
async def test_a_binding_that_fits_nothing_is_refused(gate: Gate, bound: dict[str, Any]) -> None:
    given = {"name": "x", "scopes": ["register"], **bound}
    assert (await gate.ask("POST", "/auth/v1/tokens", given, token=TOKEN)).status == 400


async def test_admin_cannot_be_bound(gate: Gate) -> None:
    given = {"name": "x", "scopes": ["admin"], "worlds": ["main"]}
    answer = await gate.ask("POST", "/auth/v1/tokens", given, token=TOKEN)
    assert answer.refusal == (400, "INVALID_INPUT")


async def test_the_list_shows_what_a_token_is_bound_to(gate: Gate) -> None:
    await token(gate, "register", **OWN)
    (listed,) = (await gate.ask("GET", "/auth/v1/tokens", token=TOKEN)).json["tokens"]
    assert {name: listed[name] for name in OWN} == OWN


def test_a_game_server_runs_with_a_token_of_its_own_and_no_other_does(home: Home) -> None:
    up = home.up()
    bound = ("--world", "main", "--type", "game", "--server", "501")
    made = home.run("token", "create", "game-501", "--scope", "register", "--scope", "gameserver", *bound)
    assert made.returncode == 0, made.stderr
    assert "bound to world main, type game, server 501" in made.stderr
    assert "world main, type game, server 501" in home.run("token", "list").stdout

    own = {"ROOST_API_TOKEN": made.stdout.strip()}
    flags = ("--url", up.url, "--world", "main", "--capacity", "7")
    home.start("gameserver", "--port", str(free_port()), "--server-id", "501", *flags, **own)
    world = f"{up.url}/queue/v1/worlds/main"
    wait_until(lambda: http(world, token=home.token()).json["capacity"] == 7, "the server to be known")
    other = home.run("gameserver", "--port", str(free_port()), "--server-id", "502", *flags, **own)
    assert other.returncode != 0
    assert "bound to the server 501" in other.stderr
