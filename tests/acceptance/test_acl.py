"""Everything that Roost does, under the users of its roles, and under the one user of docs/operations.md."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import roost
from roost.app import Platform, open_platform
from roost.cli.doctor import examine
from roost.servers.hosting import Identity, game_server
from roost.settings import Settings
from roost.testing import Gateway, RunningServer, eventually, free_port, open_gateway, run_cluster, run_valkey
from tests.acceptance.queue import TOKEN, proof, settings_for
from tests.acceptance.store_users import PASSWORD, denials, permit, permit_roles, url_of

OPERATIONS = Path(__file__).resolve().parents[2] / "docs" / "operations.md"
MAIN = "/queue/v1/worlds/main"


def documented_rules() -> list[str]:
    """The words after `ACL SETUSER roost` in the sample, with a password of ours."""
    found = re.search(r"```\nACL SETUSER roost (.+?)```", OPERATIONS.read_text(encoding="utf-8"), re.DOTALL)
    assert found, "docs/operations.md has no ACL sample"
    return found[1].replace(">PASSWORD", f">{PASSWORD}").split()


Url = Callable[[str], str]
"""Role → the URL of its user."""


@dataclass(frozen=True)
class Fleet:
    """Servers, and the URL under which a role uses them."""

    servers: list[RunningServer]
    url: Url


def user_url(url: str) -> str:
    """Of the one user for all roles."""
    return url.replace("://", f"://roost:{PASSWORD}@", 1)


def fleet_of(url: str, servers: list[RunningServer], *, of_roles: bool) -> Fleet:
    if of_roles:
        permit_roles(servers)
        return Fleet(servers, lambda role: url_of(role, url))
    permit(servers, "roost", documented_rules())
    return Fleet(servers, lambda role: user_url(url))


@pytest.fixture(params=["standalone roles", "cluster roles", "standalone one user"])
def fleet(request: pytest.FixtureRequest) -> Iterator[Fleet]:
    of_roles = request.param.endswith("roles")
    if request.param.startswith("standalone"):
        with run_valkey() as server:
            yield fleet_of(server.url, [server], of_roles=of_roles)
    else:
        with run_cluster(primaries=3, replicas=0) as cluster:
            yield fleet_of(cluster.url, cluster.servers, of_roles=of_roles)


@asynccontextmanager
async def everything(url: Url, folder: Path) -> AsyncIterator[tuple[Gateway, Platform, Settings]]:
    """A gateway and a manager with all their loops."""
    settings = replace(settings_for(folder), store=url("gateway"))
    async with open_platform(replace(settings, store=url("manager")), roles=("manager",)) as manager:
        async with open_gateway(url("gateway"), settings, loops=True) as gateway:
            yield gateway, manager, settings


async def asked(gateway: Gateway, method: str, path: str, body: Any = None, **more: Any) -> Any:
    answer = await gateway.ask(method, path, body, token=TOKEN, **more)
    assert answer.status < 300, (path, answer.body)
    return (
        answer.json if answer.body and answer.headers["Content-Type"].startswith("application/json") else None
    )


async def test_the_whole_path_works_and_nothing_is_refused(fleet: Fleet, tmp_path: Path) -> None:
    async with everything(fleet.url, tmp_path) as (gateway, manager, settings):
        await _discovery(gateway)
        await _straight_to_the_store(fleet.url("sdk"), tmp_path)
        await _waiting_room(gateway)
        await _game_server(replace(settings, store=fleet.url("gameserver")), gateway)
        await _operators(gateway)
        await _tokens(gateway)
        await _pages(gateway, settings)
        await eventually(lambda: _exported(fleet.servers), "the status for others")
        for platform in (manager, gateway.platform):
            assert {loop.name: loop.reason for loop in platform.store.loops.all() if loop.failures} == {}

    assert denials(fleet.servers) == []


async def _discovery(gateway: Gateway) -> None:
    given = {
        "type": "game",
        "group": "kr-1",
        "serverId": "501",
        "privateIp": "127.0.0.1",
        "ports": {"tcp": 1},
    }
    born = await asked(gateway, "POST", "/sd/v1/instances", given)
    one = f"/sd/v1/instances/{born['instanceId']}"
    await asked(gateway, "POST", f"{one}/heartbeat", {"life": born["life"], "load": 3})
    listed = await asked(gateway, "GET", "/sd/v1/instances?type=game")
    assert [found["serverId"] for found in listed["instances"]] == ["501"]
    async with gateway.session.get("/sd/v1/watch", headers={"X-API-Token": TOKEN}) as changes:
        assert changes.status == 200
        await asked(gateway, "PUT", f"{one}/override", {"drain": True})
        seen = b""
        while b'"drain":true' not in seen:
            seen += await changes.content.readany()
    await asked(gateway, "GET", "/lb/v1/ring?type=game")
    await asked(gateway, "GET", "/sd/v1/health")
    await asked(gateway, "DELETE", f"{one}?life={born['life']}")
    assert (await asked(gateway, "GET", one))["history"]


async def _straight_to_the_store(url: str, folder: Path) -> None:
    async with roost.connect(url, cache_folder=folder / "cache", sweeps=True) as client:
        async with client.registered(type="game", group="kr-2", ports={"udp": 7777}, capacity=2):
            assert len(await client.discover("game", "kr-2")) == 1


async def _waiting_room(gateway: Gateway) -> None:
    given = {"type": "game", "group": "kr-1", "serverId": "503", "capacity": 5}
    life = (await asked(gateway, "POST", "/sd/v1/instances", given))["life"]
    report = {"life": life, "number": 1, "capacity": 5, "users": 0, "counted": 0}
    held = await asked(gateway, "PATCH", MAIN, {"mode": "queue-all"})
    assert held["mode"] == "queue-all"
    placed = await asked(gateway, "POST", "/api/queue/entry", {"userId": "ann"})
    assert placed["status"] == "WAITING"
    await asked(gateway, "POST", f"{MAIN}/servers/503/report", report)
    ticket = await _promoted(gateway, "ann", placed["receipt"])
    consumed = {"ticketId": ticket, "serverId": "503", "life": life, "connection": "c1"}
    assert (await asked(gateway, "POST", "/api/queue/tickets/consume", consumed))["userId"] == "ann"
    released = {"userId": "ann", "life": life, "connection": "c1", "how": "dropped"}
    assert (await asked(gateway, "POST", f"{MAIN}/servers/503/release", released))["heldMs"] > 0
    bob = await asked(gateway, "POST", "/api/queue/entry", {"userId": "bob"})
    await asked(gateway, "DELETE", "/api/queue/entry?userId=bob", headers=proof(bob["receipt"]))
    assert (await asked(gateway, "GET", MAIN))["counters"]["overadmit"] == 0


async def _promoted(gateway: Gateway, user: str, receipt: str) -> str:
    """The ticket that the manager's tick issues, as it is pushed."""
    path = f"/api/queue/events?userId={user}"
    async with gateway.session.get(path, headers=proof(receipt)) as events:
        async for line in events.content:
            if found := re.search(rb'"ticketId":"([^"]+)"', line):
                break
        else:
            raise AssertionError("the stream ended without a ticket")
    status = await asked(gateway, "GET", f"/api/queue/status?userId={user}", headers=proof(receipt))
    assert status["status"] == "PROMOTED"
    return found[1].decode()


async def _game_server(settings: Settings, gateway: Gateway) -> None:
    """The reference game server straight on the store: a person gets in with a ticket, and leaves."""
    port = free_port()
    own = replace(settings, gameserver=replace(settings.gameserver, port=port, capacity=5))
    identity = Identity(server_id="504")
    async with game_server(own, own.store, TOKEN, identity, on_end=lambda: None, wait_s=10) as server:
        assert server.game is not None
        entered = await asked(gateway, "POST", "/api/queue/entry", {"userId": "cas"})
        ticket = entered.get("ticketId") or await _promoted(gateway, "cas", entered["receipt"])
        given = {"X-Queue-Ticket": ticket}
        async with gateway.session.ws_connect(f"ws://127.0.0.1:{port}/gameserver", headers=given) as line:
            await line.send_str("hello")
            assert (await line.receive_json())["message"] == "hello"
        await eventually(lambda: not server.game or not server.game.door.guests, "the seat to be given back")


LOOKED_AT = (
    *("/bind/v1/users/ann", "/bind/v1/users/ann/history", "/bind/v1/users/ann/moves", "/bind/v1/servers"),
    *("/bind/v1/servers/501/users", "/drain/v1/jobs", "/drain/v1/jobs/none", "/drain/v1/jobs/none/report"),
    *("/orders/v1/shards", "/orders/v1/advice", "/orders/v1/placement", "/orders/v1/placement/BTCUSDT"),
    *(
        "/orders/v1/orders/380104982312345601",
        "/audit/v1/export",
        "/queue/v1/worlds",
        "/lb/v1/select?type=game&key=a",
    ),
)
"""What operators look at; the store asks for the rights whether anything is there or not."""


async def _operators(gateway: Gateway) -> None:
    for path in LOOKED_AT:
        answer = await gateway.ask("GET", path, token=TOKEN)
        assert answer.status < 500, (path, answer.body)
    await asked(gateway, "PUT", "/orders/v1/placement/BTCUSDT", {"shard": 1})
    assert (await asked(gateway, "GET", "/orders/v1/placement/BTCUSDT"))["how"] == "moving"
    assert (await gateway.ask("DELETE", "/bind/v1/users/ann", token=TOKEN)).status == 404
    refused = await gateway.ask("POST", "/drain/v1/jobs", {"servers": ["501"]}, token=TOKEN)
    assert refused.status in (404, 409), refused.body
    async with gateway.session.get("/events/v1", headers={"X-API-Token": TOKEN}) as happening:
        assert happening.status == 200
        assert await happening.content.readline()


async def _tokens(gateway: Gateway) -> None:
    made = await asked(gateway, "POST", "/auth/v1/tokens", {"name": "tools", "scopes": ["read"]})
    assert (await gateway.ask("GET", "/sd/v1/instances", token=made["token"])).status == 200
    listed = await asked(gateway, "GET", "/auth/v1/tokens")
    assert [token["id"] for token in listed["tokens"]] == [made["id"]]
    await asked(gateway, "DELETE", f"/auth/v1/tokens/{made['id']}")


async def _pages(gateway: Gateway, settings: Settings) -> None:
    assert (await asked(gateway, "GET", "/readyz"))["status"] == "ready"
    page = (await gateway.ask("GET", "/metrics", token=TOKEN)).body
    assert b'queue_waiting_size{world="main"}' in page
    assert (await asked(gateway, "GET", "/admin/v1/status"))["store"]["server"].startswith("Valkey")
    assert (await asked(gateway, "GET", "/overview/v1"))["health"]["store"] == "ok"
    acts = (await asked(gateway, "GET", "/audit/v1/entries"))["entries"]
    assert "world.govern" in {act["action"] for act in acts}
    found = {finding.what: finding.state for finding in await examine(settings)}
    assert "fail" not in found.values()
    assert found["store server"] == "ok"


def _exported(servers: Sequence[RunningServer]) -> bool:
    """Whether some server has the key: on a cluster one of them does."""
    return any(b"server:status" in server.command_reply("KEYS", "server:*") for server in servers)


async def test_what_sentinel_needs_is_permitted_and_what_harms_is_not(valkey: RunningServer) -> None:
    permit([valkey], "roost", documented_rules())

    def may(*command: str) -> bool:
        return bool(valkey.command_reply("ACL", "DRYRUN", "roost", *command) == b"OK")

    assert may("ROLE")
    assert may("CLUSTER", "SLOTS")
    assert not may("FLUSHALL")
    assert not may("CONFIG", "GET", "maxmemory")
    assert not may("GET", "somebody:else")
    assert not may("SPUBLISH", "somebody:else", "x")


async def test_without_the_keys_of_the_waiting_room_it_would_be_seen(
    valkey: RunningServer, tmp_path: Path
) -> None:
    permit([valkey], "roost", [rule for rule in documented_rules() if rule != "~queue:*"])
    async with everything(lambda role: user_url(valkey.url), tmp_path) as (gateway, _, _):
        answer = await gateway.ask("POST", "/api/queue/entry", {"userId": "ann"})
        assert answer.refusal == (503, "STORE_ACCESS_DENIED")
    assert denials([valkey])


async def test_without_the_optional_rules_only_what_the_table_says_is_missing(
    valkey: RunningServer, tmp_path: Path
) -> None:
    optional = {"~server:status*", "+info", "+role", "+cluster|slots"}
    assert optional < set(documented_rules())
    permit([valkey], "roost", [rule for rule in documented_rules() if rule not in optional])
    async with everything(lambda role: user_url(valkey.url), tmp_path) as (gateway, manager, settings):
        await _discovery(gateway)
        await _waiting_room(gateway)
        assert (await asked(gateway, "GET", "/readyz"))["status"] == "ready"
        found = {finding.what: finding.state for finding in await examine(settings)}
        assert found["store server"] == "warn"
        export = manager.store.loops.loop("status export main")
        await eventually(lambda: export.failures > 0, "the export to fail and be counted")
