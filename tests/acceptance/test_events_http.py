"""The stream of everything that happens, and the overview: one look for all viewers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, TCPConnector

from roost.api.events import Happening
from roost.api.overview import Overview
from roost.gateway.live import live, sampling, viewers
from roost.testing import RunningServer, eventually, run_valkey
from tests.acceptance.queue import TOKEN, Gate, open_gate, settings_for
from tests.acceptance.sessions import Heard, listening, log_in, make_token
from tests.acceptance.store_users import write_users

WORLD = "/queue/v1/worlds/main"
OVERVIEW = "/overview/v1"


@pytest.fixture
async def gate(server: RunningServer, tmp_path: Path) -> AsyncIterator[Gate]:
    async with open_gate(server, settings_for(tmp_path)) as gate:
        yield gate


async def register(gate: Gate, server_id: str = "501", **fields: Any) -> str:
    given = {"type": "game", "group": "main", "serverId": server_id, **fields}
    answer = await gate.ask("POST", "/sd/v1/instances", given, token=TOKEN)
    return str(answer.json["instanceId"])


async def overview(gate: Gate) -> Any:
    answer = await gate.ask("GET", OVERVIEW, token=TOKEN)
    assert answer.status == 200, answer.body
    return answer.json


async def test_a_server_in_words(gate: Gate) -> None:
    async with listening(gate, "?scope=discovery") as heard:
        me = await register(gate)
        assert (await heard.until("registered"))["text"] == "501 (game) registered"
        await gate.ask("PUT", f"/sd/v1/instances/{me}/override", {"drain": True}, token=TOKEN)
        told = await heard.until("override")
        assert told["text"] == "501 (game): an operator's override: takes no new users"
        assert (told["subject"], told["level"]) == ("game/501", "warning")
        beat = f"/sd/v1/instances/{me}/heartbeat"
        await gate.ask("POST", beat, {"status": "draining"}, token=TOKEN)
        assert (await heard.until("draining"))["details"]["status"] == "draining"
        await gate.ask("DELETE", f"/sd/v1/instances/{me}?cause=crashed", token=TOKEN)
        ended = await heard.until("ended")
        assert (ended["level"], ended["details"]["cause"]) == ("error", "no-response")
        assert {kind for _, kind, _ in heard.events} == {"instance"}, "nothing of other scopes"


async def test_a_world_and_its_people_in_words(gate: Gate) -> None:
    async with listening(gate, "?scope=queue&scope=audit") as heard:
        await gate.ask("PATCH", WORLD, {"mode": "queue-all", "limit": 50}, token=TOKEN)
        told = await heard.until("governed")
        assert told["text"] == "an operator changed main: mode queue-all, limit 50"
        assert (await heard.until("world.govern"))["text"] == "root did world.govern on world/main"
        await gate.enter("ann")
        await gate.ask("DELETE", f"{WORLD}/people/ann", token=TOKEN)
        kicked = await heard.until("kicked")
        assert kicked["text"] == "ann lost their place in main: an operator took it away"


async def test_a_world_that_begins_while_somebody_looks_is_heard_of(gate: Gate) -> None:
    """The world of the demo is one, where a console was waiting for the gateway."""
    async with listening(gate, "?scope=queue") as heard:
        world = gate.platform.worlds.add("late", "game")
        await world.room.govern(mode="closing")  # before anybody follows: it may be missed, which is told
        assert (await heard.until_kind("gap"))["scope"] == "queue"
        await world.room.govern(mode="hold")
        last = await heard.until("governed", subject="world/late")
        assert last["text"] == "an operator changed late: mode hold"


async def test_a_stream_goes_on_where_it_broke_off(gate: Gate) -> None:
    async with listening(gate, "?scope=discovery") as heard:
        await register(gate, "501")
        await heard.until("registered", subject="game/501")
        last = heard.events[-1][0]
    await register(gate, "502")
    await register(gate, "503")
    async with listening(gate, "?scope=discovery", after=last) as heard:
        await heard.until("registered", subject="game/503")
        assert [data["subject"] for _, _, data in heard.events] == ["game/502", "game/503"]


@pytest.mark.parametrize("after", ["elsewhere-5", "x", "-", "00000000-99999999999999999999"])
async def test_a_stream_that_cannot_go_on_says_so_and_goes_on_from_now(gate: Gate, after: str) -> None:
    async with listening(gate, "?scope=discovery", after=after) as heard:
        assert (await heard.until_kind("gap"))["scope"] == ""
        await register(gate)
        await heard.until("registered")


async def test_the_overview_comes_in_the_stream_and_is_what_is_asked_for(gate: Gate) -> None:
    await register(gate, capacity=10, load=3)
    async with listening(gate) as heard:
        first = await heard.until_kind("overview")
        await eventually(lambda: _servers(heard) == 1, "the server to be counted", details=lambda: str(first))
        asked = await overview(gate)
        assert asked.keys() == first.keys()
        assert asked["servers"]["byType"] == [
            {"type": "game", "total": 1, "accepting": 1, "load": 3, "capacity": 10}
        ]


def _servers(heard: Heard) -> Any:
    shown = [data for _, kind, data in heard.events if kind == "overview"]
    return shown[-1]["servers"]["total"] if shown else None


async def test_the_overview_tells_what_happened_before_anybody_looked(gate: Gate) -> None:
    await register(gate)
    await gate.ask("PATCH", WORLD, {"mode": "hold"}, token=TOKEN)
    found = await overview(gate)
    assert [(one["scope"], one["event"]) for one in found["recent"]] == [
        ("audit", "world.govern"),
        ("queue", "governed"),
        ("discovery", "registered"),
    ]
    async with listening(gate, after=found["eventId"]) as heard:
        await register(gate, "502")
        await heard.until("registered")
        assert "gap" not in {kind for _, kind, _ in heard.events}


@asynccontextmanager
async def overview_of_old(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Somebody asked once, and since then a server came: all this time somebody else hears events only."""
    looked_at, look = [0.0], sampling.Sampler.look

    async def looking(sampler: sampling.Sampler) -> Overview:
        looked_at.append(time.monotonic())
        return await look(sampler)

    monkeypatch.setattr(sampling.Sampler, "look", looking)
    monkeypatch.setattr(live, "LINGER_S", 0.1)
    monkeypatch.setattr(live, "SAMPLE_S", 0.05)
    async with listening(gate, "?scope=discovery") as heard:
        await overview(gate)
        await eventually(lambda: time.monotonic() - looked_at[-1] > 0.5, "nobody to look any more")
        await register(gate)
        await heard.until("registered")
        yield


async def test_an_overview_is_new_also_where_events_alone_were_listened_to(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with overview_of_old(gate, monkeypatch):
        assert (await overview(gate))["servers"]["total"] == 1


async def test_so_is_the_first_overview_of_a_stream(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    async with overview_of_old(gate, monkeypatch), listening(gate, "?scope=overview") as heard:
        assert (await heard.until_kind("overview"))["servers"]["total"] == 1


async def test_what_cannot_be_known_is_null_and_never_zero(gate: Gate) -> None:
    found = await overview(gate)
    (world,) = found["worlds"]
    assert (world["waiting"], world["etaSeconds"], world["issuedPerSecond"]) == (0, None, None)
    assert (
        found["homes"]["moving"],
        found["homes"]["movesPerSecond"],
        found["homes"]["placedPerSecond"],
    ) == (
        0,
        None,
        None,
    )
    assert (found["orders"]["owned"], found["orders"]["depth"]) == (0, None)
    assert found["health"]["store"] == "ok"


async def test_it_runs_only_while_somebody_looks(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "LINGER_S", 0.05)
    assert not is_looked_for(gate)
    async with listening(gate):
        await eventually(lambda: is_looked_for(gate), "the followers to begin")
    await eventually(lambda: not is_looked_for(gate), "the followers to end")
    failing = [one.name for one in gate.platform.store.loops.all() if one.failing_since is not None]
    assert failing == []


def is_looked_for(gate: Gate) -> bool:
    """Whether a follower of the acts, which nobody else follows, is there."""
    return gate.platform.audit.feed.seen is not None


async def test_g1_a_slow_viewer_is_told_of_a_gap_and_costs_the_others_nothing() -> None:
    """At the seam of it: over HTTP a slow reader is hidden by megabytes of socket buffers."""
    everybody = viewers.Viewers()
    now = "2026-11-18T04:00:00.000Z"
    with everybody.joined(["queue"], "", now) as slow, everybody.joined(["queue"], "", now) as quick:
        for number in range(viewers.QUEUE_LIMIT + 10):
            everybody.tell("ticket", _happening(str(number), now))
            assert (await quick.next()).kind == "ticket"
        assert [(await slow.next()).kind for _ in range(10)] == ["gap", *["ticket"] * 9]
        assert (slow.gaps, quick.gaps) == (1, 0)


def _happening(text: str, at: str) -> Happening:
    return Happening("queue", "promoted", at, "world/main", text)


async def test_two_hundred_viewers_share_one_follower(gate: Gate) -> None:
    async with AsyncExitStack() as stack:
        crowd = ClientSession(gate.url, connector=TCPConnector(limit=0))
        many = replace(gate, session=await stack.enter_async_context(crowd))
        heard = [await stack.enter_async_context(listening(many, "?scope=discovery")) for _ in range(200)]
        before = _reads(gate)
        await register(gate)
        await asyncio.gather(*(one.until("registered") for one in heard))
        assert _reads(gate) - before < 60, "the store is read once, not once for each of them"


def _reads(gate: Gate) -> int:
    stats = gate.server.command_reply("INFO", "commandstats").decode()
    found = [line for line in stats.splitlines() if line.startswith("cmdstat_xrange:")]
    return int(found[0].partition("calls=")[2].partition(",")[0]) if found else 0


async def test_g3_a_store_that_goes_away_and_comes_back_under_an_open_stream(tmp_path: Path) -> None:
    users = write_users(tmp_path)  # known to it also when it is back
    with run_valkey(options=("--aclfile", str(users))) as own:
        async with open_gate(own, settings_for(tmp_path)) as gate:
            async with listening(gate) as heard:
                await register(gate, "501")
                await heard.until("registered")
                own.kill()
                await _until_store_is(heard, "away")
                away = heard.events[-1][2]
                assert away["worlds"][0]["waiting"] is None, "nobody knows: never 0"
                assert away["attention"][0]["subject"] == "store"
                own.start()
                await _until_store_is(heard, "ok")
                await eventually(lambda: _can_register(gate), "the store to take servers again")
                await heard.until("registered", subject="game/502")


async def _until_store_is(heard: Heard, state: str) -> None:
    while True:
        kind, data = heard.events[-1][1:] if heard.events else ("", {})
        if kind == "overview" and data["health"]["store"] == state:
            return
        assert await heard.read(), "the stream ended"


async def _can_register(gate: Gate) -> bool:
    given = {"type": "game", "group": "main", "serverId": "502"}
    return (await gate.ask("POST", "/sd/v1/instances", given, token=TOKEN)).status == 201


async def test_a_reader_by_cookie_hears_everything(gate: Gate) -> None:
    _, token = await make_token(gate, "read")
    browser = await log_in(gate, token)
    async with listening(gate, headers={"Cookie": browser.cookie}) as heard:
        await heard.until_kind("overview")


async def test_nobody_looks_without_the_scope(gate: Gate) -> None:
    _, token = await make_token(gate, "register")
    for path in ("/events/v1", OVERVIEW, "/audit/v1/entries"):
        assert (await gate.ask("GET", path, token=token)).refusal == (403, "FORBIDDEN")
        assert (await gate.ask("GET", path)).refusal == (401, "UNAUTHENTICATED")
    assert (await gate.ask("GET", "/events/v1?scope=nothing", token=TOKEN)).status == 400


async def test_a_world_that_ends_while_somebody_looks_lacks_no_leader(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The world of the demo is one, and it is ended from the page that looks."""
    monkeypatch.setattr(sampling, "SELDOM", 1)
    gate.platform.worlds.add("brief", "game")

    async def is_led(world: str) -> bool:
        return f"world {world}" in (await overview(gate))["health"]["leader"]

    await eventually(lambda: is_led("brief"), "it to be looked for")
    gate.platform.worlds.remove("brief")
    await eventually(lambda: _not(is_led("brief")), "it to be looked for no more")


async def _not(asked: Awaitable[bool]) -> bool:
    return not await asked
