"""Callers of document 000 know a server by one id: its server id, or the instance id where it has none."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

import roost
from roost.api.discovery import Change, RegisterInput
from roost.core.errors import InvalidInput, StoreUnavailable, UnknownInstance
from roost.sdk.sync import SyncClient
from roost.settings import Settings
from roost.testing import Gateway, RunningServer, eventually, open_gateway, run_valkey, wait_until

TOKEN = "a-token-for-the-tests"


@pytest.fixture
async def gateway(server: RunningServer, tmp_path: Path) -> AsyncIterator[Gateway]:
    settings = Settings(data=tmp_path, api_token=TOKEN, store=server.url)
    async with open_gateway(server.url, settings) as gateway:
        yield gateway


@pytest.fixture(params=["http", "redis"])
async def client(
    request: pytest.FixtureRequest, gateway: Gateway, server: RunningServer, tmp_path: Path
) -> AsyncIterator[roost.Client]:
    url = gateway.url if request.param == "http" else server.url
    async with roost.connect(url, token=TOKEN, cache_folder=tmp_path / "cache", sweeps=False) as client:
        yield client


async def test_callbacks_speak_server_id_or_instance_id(client: roost.Client) -> None:
    came, went = list[str](), list[str]()
    client.on_server_added(lambda one: came.append(one.server_id or one.instance_id), "game")
    client.on_server_removed(went.append, "game")
    await client.register(type="game", group="kr-1", server_id="501", instance_id="i-1")
    await client.register(type="game", group="kr-1", instance_id="i-2")
    await eventually(lambda: sorted(came) == ["501", "i-2"], "both")
    await client.remove("501")
    await client.remove("i-2")
    await eventually(lambda: went == ["501", "i-2"], "both are gone")


async def test_get_heartbeat_and_remove_understand_a_server_id(
    client: roost.Client, gateway: Gateway
) -> None:
    await gateway.platform.discovery.register(
        RegisterInput("game", "kr-1", server_id="501", instance_id="i-1")
    )
    found = (await client.get("501")).instance
    assert found is not None
    assert found.instance_id == "i-1"
    assert (await client.heartbeat("501", load=3)).status == "OK"
    assert ((await client.get("i-1")).instance or found).load == 3
    await client.remove("501", "game", "kr-1")
    for verb in (client.get, client.heartbeat, client.remove):
        with pytest.raises(UnknownInstance):
            await verb("501")


async def test_a_name_of_two_types_needs_the_type(client: roost.Client) -> None:
    for type_ in ("game", "chat"):
        await client.register(type=type_, group="kr-1", server_id="501")
    with pytest.raises(InvalidInput, match="different types"):
        await client.get("501")
    found = (await client.get("501", "chat")).instance
    assert found is not None
    assert found.type == "chat"


@pytest.mark.parametrize("any_id", ["501", "i-1"])
async def test_anybody_may_be_beaten_for(client: roost.Client, gateway: Gateway, any_id: str) -> None:
    given = RegisterInput("game", "kr-1", server_id="501", instance_id="i-1", load=7, ttl_seconds=3.0)
    await gateway.platform.discovery.register(given)
    before = (await client.get("i-1")).instance
    me = client.start_auto_heartbeat(any_id)
    me.interval_s = 0.1
    await eventually(lambda: me.last_beat_at is not None, "a beat")
    after = (await client.get("i-1")).instance
    assert before is not None
    assert after is not None
    assert after.load == 7, "what it said of itself stays"
    me.load = 9
    await eventually(lambda: _load(client, 9), "what is set here is told")


async def _load(client: roost.Client, load: int) -> bool:
    found = (await client.get("i-1")).instance
    return found is not None and found.load == load


async def test_a_beat_for_nobody_is_a_failed_beat(client: roost.Client) -> None:
    me = client.start_auto_heartbeat("nobody")
    me.interval_s = 0.1
    await eventually(lambda: me.beats_failed > 1, "failures")
    assert "nobody" in me.last_error
    assert me.ended is None


async def test_the_balancer_and_the_checker_speak_the_same_id(client: roost.Client) -> None:
    fell = list[str]()
    async with roost.LoadBalancer.following(client, "game") as balancer:
        checker = client.health_checker("game", balancer=balancer, interval_s=0.1)
        checker.on_server_unhealthy(fell.append)
        checker.start()
        port = {"tcp": 1}
        await client.register(type="game", group="kr-1", server_id="501", private_ip="127.0.0.1", ports=port)
        await client.register(type="game", group="kr-1", instance_id="i-2")
        await eventually(lambda: {s.server_id for s in balancer.all_servers} == {"501", "i-2"}, "both")
        await eventually(
            lambda: checker.is_server_healthy("501") and checker.is_server_healthy("i-2"), "both"
        )
        await checker.stop()
    assert roost.HealthChecker(client, roost.Prober(allow_local=True), "game") is not None


async def test_a_heartbeat_needs_no_body(gateway: Gateway) -> None:
    await gateway.platform.discovery.register(RegisterInput("game", "kr-1", instance_id="i-1", load=4))
    answer = await gateway.ask("POST", "/sd/v1/instances/i-1/heartbeat", token=TOKEN)
    assert (answer.status, answer.json) == (200, {"status": "OK", "proof": ""})
    found = (await gateway.platform.discovery.get("i-1")).instance
    assert found is not None
    assert found.load == 4
    refused = await gateway.ask("POST", "/sd/v1/instances", token=TOKEN)
    assert refused.status == 400, "where something must be said, nothing is not enough"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"cpu": 16}, {"cpu": 16}),
        (json.dumps({"cpu": 16, "os": "linux"}), {"cpu": 16, "os": "linux"}),
        ("{cpu:16, memory:32768, os:linux}", {"text": "{cpu:16, memory:32768, os:linux}"}),
        ("", {}),
    ],
)
async def test_system_info_may_be_a_text(gateway: Gateway, given: object, kept: object) -> None:
    body = {"type": "game", "group": "kr-1", "instanceId": "i-1", "systemInfo": given}
    answer = await gateway.ask("POST", "/sd/v1/instances", body, token=TOKEN)
    assert answer.status == 201, answer.body
    found = (await gateway.platform.discovery.get("i-1")).instance
    assert found is not None
    assert found.system_info == kept


async def test_the_last_list_is_served_from_memory_where_nothing_can_be_written(tmp_path: Path) -> None:
    blocked = tmp_path / "a-file"
    blocked.write_text("")
    with run_valkey() as server:
        async with roost.connect(server.url, cache_folder=blocked / "cache", sweeps=False) as client:
            await client.register(type="game", group="kr-1", server_id="501")
            assert [one.server_id for one in await client.discover("game")] == ["501"]
            server.kill()
            assert [one.server_id for one in await client.discover("game")] == ["501"]
            with pytest.raises(StoreUnavailable):
                await client.discover("other")


# -- the sync face


@pytest.fixture
def sync(server: RunningServer, tmp_path: Path) -> Iterator[SyncClient]:
    with roost.connect_sync(server.url, cache_folder=tmp_path, sweeps=False) as client:
        yield client


def test_sync_callbacks_may_call_the_client(sync: SyncClient) -> None:
    seen, gone = list[str](), list[str]()

    def added(one: object) -> None:
        seen.extend(found.server_id for found in sync.discover("game"))
        raise ValueError("logged, and no more")

    stop = sync.on_server_added(added, "game")
    sync.on_server_removed(gone.append, "game")
    with sync.registered(type="game", group="kr-1", server_id="501"):
        wait_until(lambda: seen == ["501"], "the callback")
    wait_until(lambda: gone == ["501"], "the other callback")
    stop()


def test_the_sync_face_has_the_door(sync: SyncClient) -> None:
    with sync.registered(type="game", group="kr-1", server_id="501", capacity=3) as me:
        with sync.door(me) as door:
            assert door.guests == {}
            door.drain = True
            with pytest.raises(roost.RoostError):
                door.consume("no ticket")
            door.report()


def test_a_watch_ends_when_the_client_is_closed(server: RunningServer, tmp_path: Path) -> None:
    seen, ended = list[Change](), threading.Event()
    with roost.connect_sync(server.url, cache_folder=tmp_path, sweeps=False) as client:

        def watch() -> None:
            seen.extend(client.watch("game"))
            ended.set()

        thread = threading.Thread(target=watch)
        thread.start()
        wait_until(lambda: client.discover("game") == [], "an answer")
    assert ended.wait(5.0)
    thread.join()


def test_a_call_that_waits_ends_when_the_client_is_closed(
    server: RunningServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ended = list[str]()
    with roost.connect_sync(server.url, cache_folder=tmp_path, sweeps=False) as client:
        client.register(type="game", group="kr-1", server_id="901")

        def succeed() -> None:
            try:
                with client.registered(type="game", group="kr-1", server_id="901"):
                    ended.append("it is not free")
            except InvalidInput as error:
                ended.append(error.message)

        thread = threading.Thread(target=succeed, daemon=True)
        thread.start()
        wait_until(lambda: "waiting for the server id" in caplog.text, "the wait for the predecessor")
    thread.join(5.0)
    assert ended == ["this client is closed"]


def test_a_client_that_is_not_open_says_so(server: RunningServer, tmp_path: Path) -> None:
    client = roost.connect_sync(server.url, cache_folder=tmp_path, sweeps=False)
    with pytest.raises(InvalidInput, match="not open yet"):
        client.discover()
    with pytest.raises(InvalidInput, match="not open yet"):
        client.on_server_added(print)
    with client:
        assert client.discover() == []
    with pytest.raises(InvalidInput, match="closed"):
        client.discover()
    with pytest.raises(InvalidInput, match="closed"), client:
        pass


def test_a_client_is_refused_after_a_fork(server: RunningServer, tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import os, sys, roost
        with roost.connect_sync(sys.argv[1], cache_folder=sys.argv[2], sweeps=False) as client:
            child = os.fork()
            if not child:
                try:
                    client.discover()
                except roost.Mistake as error:
                    print(error.message, flush=True)
            else:
                os.waitpid(child, 0)
                print(client.discover(), flush=True)
    """)
    command = [sys.executable, "-c", program, server.url, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.stdout.splitlines() == ["this client belongs to the process before the fork", "[]"], (
        done.stderr
    )
