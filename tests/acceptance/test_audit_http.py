"""The audit log: every act of an operator is in it, nothing else, and no secret."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from roost.demo.fleet import Fleet as Demo
from roost.demo.routes import routes as demo_routes
from roost.gateway.server import all_routes
from roost.testing import RunningServer, eventually, run_valkey
from roost.web.acts import REFUSED_BURST
from tests.acceptance.queue import LIFE, TOKEN, Gate, open_gate, settings_for
from tests.acceptance.sessions import log_in, make_token

WORLD = "/queue/v1/worlds/main"
ENTRIES = "/audit/v1/entries"


@pytest.fixture
async def gate(server: RunningServer, tmp_path: Path) -> AsyncIterator[Gate]:
    async with open_gate(server, settings_for(tmp_path)) as gate:
        yield gate


async def acts(gate: Gate, query: str = "") -> list[dict[str, Any]]:
    answer = await gate.ask("GET", ENTRIES + query, token=TOKEN)
    assert answer.status == 200, answer.body
    entries: list[dict[str, Any]] = answer.json["entries"]
    return entries


async def test_an_act_is_kept_with_who_and_how_it_was_before(gate: Gate) -> None:
    sent = {"X-Request-Id": "mine-1", "User-Agent": "roost-cli/0"}
    await gate.ask("PATCH", WORLD, {"mode": "hold", "limit": 5}, token=TOKEN, headers=sent)
    (act,) = await acts(gate)
    assert act.pop("at")
    assert act == {
        "id": "1",
        "name": "root",
        "tokenId": "root",
        "scopes": ["admin", "gameserver", "read", "register"],
        "from": "127.0.0.1",
        "action": "world.govern",
        "target": "world/main",
        "before": {"mode": "auto", "message": "", "limit": None, "rate": None, "opensAt": None},
        "after": {"mode": "hold", "message": "", "limit": 5, "rate": None, "opensAt": None},
        "outcome": "done",
        "code": "",
        "requestId": "mine-1",
        "via": "cli",
    }


async def test_a_refusal_is_kept_too_and_a_strangers_attempt_is_not(gate: Gate) -> None:
    token_id, token = await make_token(gate, "read", name="ann")
    assert (await gate.ask("PATCH", WORLD, {"mode": "hold"}, token=token)).status == 403
    assert (await gate.ask("DELETE", f"{WORLD}/servers/501", token=TOKEN)).status == 404
    assert (await gate.ask("PATCH", WORLD, {"mode": "hold"}, token="a-guess")).status == 401
    assert (await gate.ask("PATCH", WORLD, {"mode": "hold"})).status == 401
    dropped, governed, _ = await acts(gate)
    assert (governed["name"], governed["tokenId"], governed["outcome"]) == ("ann", token_id, "refused")
    assert (governed["code"], governed["target"]) == ("FORBIDDEN", "world/main")
    assert (dropped["code"], dropped["target"]) == ("UNKNOWN", "world/main/servers/501")


async def test_no_act_hides_behind_a_parameter_that_stands_there_twice(gate: Gate) -> None:
    """Whether it is an act is read from the first one, what is done from the last."""
    given = {"type": "game", "group": "kr-1", "serverId": "501"}
    instance = (await gate.ask("POST", "/sd/v1/instances", given, token=TOKEN)).json["instanceId"]
    removal = f"/sd/v1/instances/{instance}?cause=terminated&cause=removed"
    for method, path, body in (
        ("DELETE", removal, None),
        ("POST", "/drain/v1/jobs?plan=true&plan=false", {"servers": ["501"]}),
    ):
        answer = await gate.ask(method, path, body, token=TOKEN)
        assert answer.refusal == (400, "INVALID_INPUT"), path
    assert (await gate.ask("GET", f"/sd/v1/instances/{instance}", token=TOKEN)).json["status"] == "ready"


async def test_one_token_does_not_wash_the_log_out_with_attempts(gate: Gate) -> None:
    """What is refused beyond the sixtieth counts in the metrics of its route alone."""
    await gate.ask("PATCH", WORLD, {"mode": "hold"}, token=TOKEN)
    _, token = await make_token(gate, "read", name="ann")
    for _ in range(REFUSED_BURST + 10):
        assert (await gate.ask("PATCH", WORLD, {"mode": "auto"}, token=token)).status == 403
    assert REFUSED_BURST <= len(await acts(gate, "?name=ann&limit=100")) <= REFUSED_BURST + 1

    _, other = await make_token(gate, "read", name="bob")
    await gate.ask("PATCH", WORLD, {"mode": "auto"}, token=other)
    assert len(await acts(gate, "?name=bob")) == 1


async def test_an_act_of_the_console_says_so(gate: Gate) -> None:
    browser = await log_in(gate, TOKEN)
    await browser.ask("PATCH", WORLD, {"mode": "hold"})
    assert [act["via"] for act in await acts(gate)] == ["console"]


async def test_what_servers_and_players_do_is_no_act(gate: Gate) -> None:
    given = {"type": "game", "group": "main", "serverId": "501"}
    me = (await gate.ask("POST", "/sd/v1/instances", given, token=TOKEN)).json["instanceId"]
    await gate.ask("POST", f"/sd/v1/instances/{me}/heartbeat", {}, token=TOKEN)
    report = {"life": LIFE, "number": 1, "capacity": 5, "users": 0, "counted": 0}
    await gate.ask("POST", f"{WORLD}/servers/501/report", report, token=TOKEN)
    await gate.enter("ann")
    await gate.ask("POST", "/lb/v1/select", {"type": "game", "keys": ["a"]}, token=TOKEN)
    await gate.ask("POST", "/drain/v1/jobs?plan=true", {"servers": ["501"]}, token=TOKEN)
    await gate.ask("POST", "/drain/v1/jobs", {"servers": ["501"], "plan": True}, token=TOKEN)
    await gate.ask("DELETE", f"/sd/v1/instances/{me}", token=TOKEN)
    assert await acts(gate) == []


async def test_only_an_operators_removal_is_an_act(gate: Gate) -> None:
    given = {"type": "game", "group": "main", "serverId": "501"}
    me = (await gate.ask("POST", "/sd/v1/instances", given, token=TOKEN)).json["instanceId"]
    await gate.ask("DELETE", f"/sd/v1/instances/{me}?cause=removed", token=TOKEN)
    (act,) = await acts(gate)
    assert (act["action"], act["target"]) == ("instance.remove", f"instance/{me}")
    assert act["before"] == {"type": "game", "serverId": "501", "status": "ready"}


async def test_g17_no_secret_is_in_it(gate: Gate) -> None:
    token_id, token = await make_token(gate, "read", name="ann")
    browser = await log_in(gate, TOKEN)
    await browser.ask("PATCH", WORLD, {"message": "welcome"})
    await gate.ask("DELETE", f"/auth/v1/tokens/{token_id}", token=TOKEN)
    export = (await gate.ask("GET", "/audit/v1/export", token=TOKEN)).body.decode()
    kept = gate.server.command_reply("XRANGE", "roost:feed:audit:{audit}", "-", "+")
    for secret in (token, token.split("_", 2)[2], TOKEN, browser.cookie, browser.csrf):
        assert secret not in export
        assert secret not in str(kept)
    created, _, revoked = (line for line in export.splitlines())
    assert '"name":"ann"' in created
    assert f"token/{token_id}" in created
    assert '"before":{"name":"ann"' in revoked


def test_every_route_that_an_operator_acts_by_is_recorded(gate: Gate) -> None:
    routes = [*all_routes(gate.platform), *demo_routes(Demo(gate.platform.settings))]
    bare = [
        f"{route.method} {route.path}"
        for route in routes
        if route.scope == "admin" and route.method != "GET" and route.act is None
    ]
    assert bare == []
    names = [route.act.name for route in routes if route.act is not None]
    assert {
        "demo.kill",
        "drain.hotfix",
        "drain.start",
        "orders.halt",
        "token.revoke",
        "binding.release",
    } <= set(names)


async def test_acts_are_found_by_who_what_and_when(gate: Gate) -> None:
    _, admin = await make_token(gate, "admin", "read", name="ann")
    for mode in ("hold", "auto", "hold"):
        await gate.ask("PATCH", WORLD, {"mode": mode}, token=admin)
    assert len(await acts(gate, "?name=ann")) == 3
    assert len(await acts(gate, "?action=token")) == 1
    assert len(await acts(gate, "?target=world")) == 3
    assert await acts(gate, "?target=nowhere") == []
    newest = (await acts(gate))[0]["at"]  # to the millisecond, in which there may be more than one
    assert {act["at"] for act in await acts(gate, f"?since={newest}")} <= {newest}
    assert await acts(gate, "?since=2999-01-01") == []
    assert (await gate.ask("GET", f"{ENTRIES}?since=soon", token=TOKEN)).status == 400
    assert (await gate.ask("GET", "/audit/v1/export?since=soon", token=TOKEN)).status == 400
    assert (await gate.ask("GET", f"{ENTRIES}?before=x", token=TOKEN)).status == 400
    assert (await gate.ask("GET", f"{ENTRIES}?limit=0", token=TOKEN)).status == 400


async def test_acts_are_read_page_by_page(gate: Gate) -> None:
    for _ in range(5):
        await gate.ask("PATCH", WORLD, {"mode": "hold"}, token=TOKEN)
    seen, before = list[str](), ""
    while True:
        page = (await gate.ask("GET", f"{ENTRIES}?limit=2{before}", token=TOKEN)).json
        seen += [act["id"] for act in page["entries"]]
        if not page["next"]:
            break
        before = f"&before={page['next']}"
    assert seen == ["5", "4", "3", "2", "1"]


async def test_a_store_that_is_away_fails_no_act_twice_and_hears_of_it_later(tmp_path: Path) -> None:
    with run_valkey() as own:
        async with open_gate(own, settings_for(tmp_path)) as gate:
            writer = gate.platform.audit.writer
            await gate.ask("PATCH", WORLD, {"mode": "hold"}, token=TOKEN)
            own.pause()
            try:
                answer = await gate.ask("PATCH", WORLD, {"mode": "auto"}, token=TOKEN)
                assert answer.status in (503, 504)
                await eventually(lambda: writer.waiting == 1, "the act to wait for the store")
            finally:
                own.resume()
            await eventually(lambda: writer.waiting == 0, "the act to be written")
            late, *_ = await acts(gate)
            assert (late["outcome"], late["action"]) == ("refused", "world.govern")
            assert writer.counts["lost"] == 0
