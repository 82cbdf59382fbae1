"""One suite for every way to Roost: through a gateway, straight to the store, in process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import roost
from roost.api.discovery import Change, Instance, Override, Registered, RegisterInput
from roost.app import Platform
from roost.core.errors import (
    FencedInstance,
    InvalidId,
    InvalidInput,
    NotAuthenticated,
    RemovedInstance,
    ServerIdTaken,
    StoreUnavailable,
    UnknownInstance,
)
from roost.discovery.service import Discovery
from roost.settings import Settings
from roost.testing import RunningServer, eventually, free_port, open_gateway, run_valkey

TOKEN = "a-token-for-the-tests"


@dataclass
class World:
    """A store, a gateway on it, and the three ways there."""

    server: RunningServer
    platform: Platform
    gateway: str
    cache: Path
    way: str

    def connect(self, way: str = "", **options: object) -> roost.Client:
        urls: dict[str, object] = {"http": self.gateway, "redis": self.server.url, "process": self.platform}
        chosen: dict[str, object] = {"token": TOKEN, "cache_folder": self.cache, "sweeps": False, **options}
        return roost.connect(urls[way or self.way], **chosen)  # type: ignore[arg-type]


@pytest.fixture(params=["http", "redis", "process"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    with run_valkey(persistent=True) as server:
        settings = Settings(data=tmp_path, api_token=TOKEN, store=server.url)
        async with open_gateway(server.url, settings, loops=True) as gateway:
            yield World(server, gateway.platform, gateway.url, tmp_path / "cache", request.param)


async def test_register_beat_discover_get_remove(world: World) -> None:
    async with world.connect() as client:
        registered = await client.register(
            type="game",
            group="kr-1",
            server_id="501",
            ports={"udp": 7777},
            capacity=100,
            labels={"map": "desert"},
        )
        assert len(registered.instance_id) == 26
        assert registered.heartbeat_interval_ms == 10_000
        await client.heartbeat(registered.instance_id, load=7, performance={"tps": 60})
        (instance,) = await client.discover("game", "kr-1")
        assert (instance.server_id, instance.ports, instance.load) == ("501", {"udp": 7777}, 7)
        assert instance.performance == {"tps": 60}
        assert instance.system_info["cpu"] == os.cpu_count()
        assert instance.hostname
        assert instance.accepting
        detail = await client.get(registered.instance_id)
        assert detail.instance is not None
        assert [line.event for line in detail.history] == ["added", "changed"][: len(detail.history)]
        await client.remove(registered.instance_id, "game", "kr-1")
        assert await client.discover("game", "kr-1") == []
        assert (await client.get(registered.instance_id)).status == "terminated"


async def test_filters(world: World) -> None:
    async with world.connect() as client:
        for group, label in (("kr-1", "a"), ("kr-1", "b"), ("us-1", "a")):
            await client.register(type="game", group=group, labels={"map": label})
        await client.register(type="chat", group="kr-1")
        assert len(await client.discover()) == 4
        assert len(await client.discover("game")) == 3
        assert len(await client.discover("*", "kr-1")) == 3
        assert len(await client.discover("game", "kr-1", labels=["map=a"])) == 1
        assert len(await client.discover(labels=["map"])) == 3


async def test_refusals_are_the_same_errors_everywhere(world: World) -> None:
    async with world.connect() as client:
        first = await client.register(type="game", group="kr-1", server_id="501")
        with pytest.raises(ServerIdTaken):
            await client.register(type="game", group="kr-2", server_id="501")
        with pytest.raises(UnknownInstance):
            await client.heartbeat("01NOBODY")
        with pytest.raises(UnknownInstance):
            await client.get("01NOBODY")
        with pytest.raises(UnknownInstance):
            await client.remove("01NOBODY")
        with pytest.raises(InvalidId):
            await client.register(type="ga{me", group="kr-1")
        with pytest.raises(InvalidInput):
            await client.register(type="game", group="kr-1", performance={"x": "y" * 20_000})
        with pytest.raises(InvalidInput):
            await client.register(type="game", group="kr-1", colour="red")
        async with world.connect() as other:
            await other.register(type="game", group="kr-1", instance_id=first.instance_id)
        with pytest.raises(FencedInstance):
            await client.heartbeat(first.instance_id)


async def test_g4_a_late_beat_never_revives_what_was_removed(world: World) -> None:
    async with world.connect() as client:
        registered = await client.register(type="game", group="kr-1")
        async with world.connect() as operator:
            await operator.remove(registered.instance_id)
        with pytest.raises(RemovedInstance):
            await client.heartbeat(registered.instance_id)
        assert await client.discover("game") == []


async def test_verify_probes_the_declared_address(world: World) -> None:
    port = int(world.gateway.rpartition(":")[2])
    async with world.connect() as client:
        here = {"type": "game", "group": "kr-1", "private_ip": "127.0.0.1"}
        check = {"kind": "http", "port": "http", "path": "/healthz"}
        await client.register(**here, server_id="up", ports={"http": port}, health=check)
        await client.register(**here, server_id="down", ports={"http": free_port()}, health=check)
        await client.register(**here, server_id="mute")
        found = {i.server_id: i.probe for i in await client.discover("game", verify=True)}
    assert found["up"] is not None
    assert found["up"].ok
    assert found["down"] is not None
    assert found["down"].error == "connection refused"
    assert found["mute"] is None


async def test_g1_a_watcher_sees_every_change_in_order(world: World) -> None:
    seen: list[Change] = []
    async with world.connect() as client:
        await client.register(type="game", group="kr-1", server_id="before")
        async with following(client, seen.append):
            await eventually(lambda: len(seen) == 1)
            for n in range(20):
                registered = await client.register(type="game", group="kr-1", server_id=f"s{n}")
                await client.remove(registered.instance_id)
            await client.register(type="chat", group="kr-1")
            await eventually(lambda: len(seen) == 41)
    assert seen[0].event == "snapshot"
    assert [i.server_id for i in seen[0].instances or ()] == ["before"]
    assert [change.event for change in seen[1:]] == ["added", "removed"] * 20
    revisions = [change.revision for change in seen]
    assert revisions == list(range(revisions[0], revisions[0] + 41))


@contextlib.asynccontextmanager
async def following(client: roost.Client, hear: Callable[[Change], None]) -> AsyncIterator[None]:
    async def follow() -> None:
        async for change in client.watch("game", "kr-1"):
            hear(change)

    task = asyncio.create_task(follow())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_callbacks_tell_who_came_and_who_left(world: World) -> None:
    came: list[Instance] = []
    left: list[str] = []
    async with world.connect() as client:
        first = await client.register(type="game", group="kr-1", server_id="501")
        client.on_server_added(came.append, "game")
        client.on_server_removed(left.append, "game")
        await eventually(lambda: [i.server_id for i in came] == ["501"])
        second = await client.register(type="game", group="kr-1", server_id="502")
        await client.remove(first.instance_id)
        await eventually(lambda: left == ["501"])
        assert [i.instance_id for i in came] == [first.instance_id, second.instance_id]


async def test_inside_registered_it_lives_and_afterwards_it_is_gone(world: World) -> None:
    async with world.connect(ttl_seconds=3.0) as client:
        async with client.registered(type="game", group="kr-1", server_id="501", capacity=10) as me:
            me.load = 9
            (before,) = await client.discover("game")

            async def reported() -> bool:
                (now,) = await client.discover("game")
                return now.load == 9 and now.last_heartbeat > before.last_heartbeat

            await eventually(reported)
            me.status = "draining"

            async def drains() -> bool:
                (now,) = await client.discover("game")
                return now.status == "draining" and not now.accepting

            await eventually(drains)
        assert await client.discover("game") == []


async def test_an_operator_can_drain_and_the_instance_hears_of_it(world: World) -> None:
    words: list[str] = []
    async with world.connect(ttl_seconds=3.0) as client:
        async with client.registered(type="game", group="kr-1", on_directive=words.append) as me:
            await world.platform.discovery.override(me.instance_id, Override(drain=True))
            await eventually(lambda: words == ["drain"])
            assert me.draining
            assert not (await client.discover("game"))[0].accepting


async def test_g4_what_the_store_forgot_registers_itself_again(world: World) -> None:
    async with world.connect(ttl_seconds=3.0) as client:
        async with client.registered(type="game", group="kr-1", server_id="501") as me:
            me.load = 3
            life = me.life
            world.server.command_reply("FLUSHALL")
            await eventually(lambda: me.life != life)
            detail = await client.get(me.instance_id)
            assert detail.instance is not None
            assert (detail.instance.server_id, detail.instance.load) == ("501", 3)


async def test_g4_the_answer_to_its_registration_may_be_lost(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Carried out, but not answered in time: it is no second process that took its id."""
    taken: list[str] = []
    take = Discovery.register

    async def answered_too_late(
        self: Discovery, given: RegisterInput, *, decoded: bool = False
    ) -> Registered:
        registered = await take(self, given, decoded=decoded)
        taken.append(registered.life)
        if len(taken) == 2:
            await asyncio.sleep(60.0)
        return registered

    monkeypatch.setattr(Discovery, "register", answered_too_late)
    async with world.connect(ttl_seconds=3.0) as client:
        async with client.registered(type="game", group="kr-1", server_id="501") as me:
            life = me.life
            world.server.command_reply("FLUSHALL")
            await eventually(lambda: me.life != life or me.ended is not None, "it is back, or has given up")
            assert me.ended is None
            assert set(taken[1:]) == {me.life}


async def test_g4_what_an_operator_removed_does_not_come_back(world: World) -> None:
    words: list[str] = []
    async with world.connect(ttl_seconds=3.0) as client:
        async with client.registered(type="game", group="kr-1", on_directive=words.append) as me:
            await world.platform.discovery.remove(me.instance_id, cause="removed")
            await eventually(lambda: words == ["removed"])
            assert await client.discover("game") == []


async def test_the_last_list_is_served_while_nobody_answers(world: World) -> None:
    async with world.connect() as client:
        await client.register(type="game", group="kr-1", server_id="501")
        assert len(await client.discover("game", "kr-1")) == 1
        world.server.kill()
        assert [i.server_id for i in await client.discover("game", "kr-1")] == ["501"]
        with pytest.raises(StoreUnavailable):
            await client.discover("game", "never-asked-before")
    if world.way != "process":
        async with world.connect() as started_meanwhile:
            assert [i.server_id for i in await started_meanwhile.discover("game", "kr-1")] == ["501"]
            world.server.start()
            await eventually(lambda: _answers(started_meanwhile), "the store to be used again")


async def _answers(client: roost.Client) -> bool:
    with contextlib.suppress(StoreUnavailable):
        await client.register(type="game", group="kr-1")
        return True
    return False


async def test_a_wrong_token_is_refused(world: World) -> None:
    async with world.connect("http", token="a-token-nobody-issued") as client:
        with pytest.raises(NotAuthenticated):
            await client.discover()


def test_the_sync_face_does_the_same() -> None:
    with run_valkey() as server, roost.connect_sync(server.url, cache_folder="/nowhere") as client:
        with client.registered(type="game", group="kr-1", server_id="501") as me:
            assert [i.server_id for i in client.discover("game")] == ["501"]
            assert client.heartbeat(me.instance_id, load=2).status == "OK"
            assert next(iter(client.watch("game"))).event == "snapshot"
        assert client.discover("game") == []
        with pytest.raises(UnknownInstance):
            client.get("01NOBODY")


@pytest.mark.parametrize("leaves_early", [False, True])
def test_sigterm_removes_all_that_is_registered(leaves_early: bool, tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import asyncio, sys, roost
        async def serve(client, server_id, over):
            async with client.registered(type="game", group="kr-1", server_id=server_id):
                print("up", flush=True)
                await over.wait()
            await asyncio.Event().wait()
        async def main():
            over = [asyncio.Event() for _ in range(3)]
            async with roost.connect(sys.argv[1], cache_folder="/nowhere") as client:
                servers = [serve(client, str(501 + i), one) for i, one in enumerate(over)]
                serving = asyncio.gather(*servers)
                if "early" in sys.argv:
                    while len(await client.discover()) < 3:
                        await asyncio.sleep(0.01)
                    over[0].set()
                    while len(await client.discover()) > 2:
                        await asyncio.sleep(0.01)
                print("all", flush=True)
                await serving
        asyncio.run(main())
    """)
    with run_valkey() as server:
        arguments = [sys.executable, "-c", program, server.url, *(["early"] if leaves_early else [])]
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        with process.stdout:
            assert sorted(process.stdout.readline() for _ in range(4)) == ["all\n", "up\n", "up\n", "up\n"]
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=5) == -signal.SIGTERM
        with roost.connect_sync(server.url, cache_folder=tmp_path) as client:
            assert client.discover() == []


def test_sigterm_breaks_no_cleaning_up_of_a_task_that_another_one_began(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import asyncio, sys, roost
        async def child(client):
            async with client.registered(type="game", group="kr-1", server_id="502"):
                try:
                    await asyncio.Event().wait()
                finally:
                    for _ in range(20):
                        await asyncio.sleep(0.005)
                    print("cleaned up", flush=True)
        async def main():
            async with roost.connect(sys.argv[1], cache_folder="/nowhere") as client:
                async with client.registered(type="game", group="kr-1", server_id="501"):
                    async with asyncio.TaskGroup() as group:
                        group.create_task(child(client))
                        while len(await client.discover()) < 2:
                            await asyncio.sleep(0.01)
                        print("up", flush=True)
                        await asyncio.Event().wait()
        asyncio.run(main())
    """)
    with run_valkey() as server:
        for _ in range(4):
            process = subprocess.Popen(
                [sys.executable, "-c", program, server.url], stdout=subprocess.PIPE, text=True
            )
            assert process.stdout is not None
            with process.stdout:
                assert process.stdout.readline() == "up\n"
                process.send_signal(signal.SIGTERM)
                assert process.wait(timeout=5) == -signal.SIGTERM
                assert process.stdout.read() == "cleaned up\n"
            with roost.connect_sync(server.url, cache_folder=tmp_path) as client:
                assert client.discover() == []


def test_a_lease_needs_room_for_two_beats() -> None:
    with pytest.raises(InvalidInput, match="at least two beats"):
        roost.connect("redis://127.0.0.1", ttl_seconds=10, heartbeat_interval_ms=9000)
