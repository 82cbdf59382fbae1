"""The transport double: a client and a door on it behave as on a real one, and do what the script says."""

from __future__ import annotations

import asyncio

import pytest

from roost.core.errors import (
    FencedInstance,
    InvalidInput,
    OutcomeUnknown,
    RemovedInstance,
    ServerIdTaken,
    StoreUnavailable,
    TicketUsed,
    UnknownInstance,
)
from roost.sdk.ports import Transport
from roost.testing import FakeTransport, eventually


def test_it_has_every_port() -> None:
    transport: Transport = FakeTransport()
    assert transport.registry
    assert transport.admission


async def test_register_beat_discover_get_remove() -> None:
    transport = FakeTransport()
    async with transport.client() as client:
        registered = await client.register(
            type="game", group="kr-1", server_id="501", labels={"map": "desert"}
        )
        assert registered.heartbeat_interval_ms == 10_000
        await client.heartbeat(registered.instance_id, load=7)
        await client.register(type="chat", group="kr-1")
        (found,) = await client.discover("game", labels=["map=desert"])
        assert (found.server_id, found.load) == ("501", 7)
        assert found.hostname
        assert await client.discover("game", "us-1") == []
        assert (await client.get(registered.instance_id)).status == "ready"
        await client.remove(registered.instance_id)
        assert (await client.get(registered.instance_id)).status == "removed"
        assert await client.discover("game") == []
    assert (transport.opened, transport.closed) == (1, 1)


async def test_it_refuses_what_discovery_refuses() -> None:
    async with FakeTransport().client() as client:
        first = await client.register(type="game", group="kr-1", server_id="501")
        with pytest.raises(ServerIdTaken):
            await client.register(type="game", group="kr-2", server_id="501")
        with pytest.raises(UnknownInstance):
            await client.heartbeat("nobody")
        with pytest.raises(InvalidInput, match="colour"):
            await client.register(type="game", group="kr-1", colour="red")
        async with FakeTransport().client() as stranger:
            with pytest.raises(UnknownInstance):
                await stranger.get(first.instance_id)


async def test_a_later_life_fences_and_a_removal_is_told() -> None:
    transport = FakeTransport()
    async with transport.client() as client, transport.client() as other:
        first = await client.register(type="game", group="kr-1")
        await other.register(type="game", group="kr-1", instance_id=first.instance_id)
        with pytest.raises(FencedInstance):
            await client.heartbeat(first.instance_id)
        await other.remove(first.instance_id)
        with pytest.raises(RemovedInstance):
            await client.heartbeat(first.instance_id)


async def test_a_watch_sees_what_it_asked_for() -> None:
    transport = FakeTransport()
    async with transport.client() as client:
        changes = client.watch("game")
        assert (await anext(changes)).instances == []
        await client.register(type="chat", group="kr-1")
        registered = await client.register(type="game", group="kr-1")
        await client.heartbeat(registered.instance_id, status="draining")
        await client.remove(registered.instance_id)
        seen = [await anext(changes) for _ in range(3)]
        assert [change.event for change in seen] == ["added", "changed", "removed"]
        assert {change.instance_id for change in seen} == {registered.instance_id}
        await changes.aclose()


async def test_the_script_refuses_loses_and_holds() -> None:
    transport = FakeTransport()
    script = transport.script
    async with transport.client() as client:
        script.refuse("register", StoreUnavailable(), times=1)
        with pytest.raises(StoreUnavailable):
            await client.register(type="game", group="kr-1")
        script.lose("register")
        with pytest.raises(OutcomeUnknown):
            await client.register(type="game", group="kr-1")
        gates = script.hold("register")
        waiting = asyncio.create_task(client.register(type="game", group="kr-1", instance_id="held"))
        await eventually(lambda: "held" in gates, "the call")
        assert "held" in transport.registry.instances
        assert not waiting.done()
        gates["held"].open()
        await waiting
        assert len(transport.registry.instances) == 2
        assert script.count("register") == 3


async def test_a_door_counts_its_guests() -> None:
    transport = FakeTransport()
    async with transport.client() as client:
        async with client.registered(type="game", group="kr-1", server_id="501", capacity=10) as me:
            async with client.door(me) as door:
                guest = await door.consume("ann")
                with pytest.raises(TicketUsed):
                    await door.consume("ann", "another")
                await door.leave(guest)
                assert transport.admission.released == [("ann", "clean")]
