"""A balancer and a health checker that follow discovery through a client."""

from __future__ import annotations

import asyncio

import roost
from roost.balancing import Server
from roost.discovery.probes import Prober
from roost.store import scopes
from roost.store.keys.discovery import discovery_keys
from roost.testing import RunningServer, eventually, open_store


async def test_a_balancer_follows_servers_as_they_come_and_go(server: RunningServer) -> None:
    async with roost.connect(server.url, cache_folder="/nowhere", sweeps=False) as client:
        first = await client.register(type="game", group="kr-1", server_id="501", capacity=1)
        async with roost.LoadBalancer.following(client, "game", "kr-1") as balancer:
            assert balancer.get_server_id("user-1") == "501"
            await client.register(type="game", group="kr-1", server_id="502")
            await eventually(lambda: balancer.available == ["501", "502"])
            await client.heartbeat(first.instance_id, load=1)
            await eventually(lambda: balancer.available == ["502"], "the full one to leave")
            await client.heartbeat(first.instance_id, load=0)
            await eventually(lambda: balancer.available == ["501", "502"])
            await client.remove(first.instance_id)
            await eventually(lambda: balancer.available == ["502"])
            assert isinstance(balancer.select_server("user-1"), Server)


async def test_one_bad_record_does_not_freeze_a_balancer(server: RunningServer) -> None:
    """Neither in the feed nor in a snapshot: later changes are heard, removed servers are not chosen."""
    async with (
        open_store(server.url) as store,
        roost.connect(server.url, cache_folder="/nowhere", sweeps=False) as client,
    ):
        first = await client.register(type="game", group="kr-1", server_id="501")
        async with roost.LoadBalancer.following(client, "game", "kr-1") as balancer:
            records, feed = discovery_keys(store.keys)["records"], store.keys.feed(scopes.discovery())
            bad = await client.register(type="game", group="kr-1", server_id="bad")
            await store.call("HSET", records + b"game:kr-1", bad.instance_id, "no JSON at all")
            (last,) = await store.call("XREVRANGE", feed, "+", "-", "COUNT", 1)
            fields = {
                name: b"{" if name == b"record" else value
                for name, value in zip(last[1][::2], last[1][1::2], strict=True)
            }
            fields |= {b"prevAt": fields[b"at"], b"at": str(int(fields[b"at"]) + 1).encode()}
            rev = int(last[0].partition(b"-")[0]) + 1
            await store.call("XADD", feed, f"{rev}-0", *(part for pair in fields.items() for part in pair))

            await client.remove(first.instance_id)
            await client.register(type="game", group="kr-1", server_id="502")
            await eventually(lambda: "502" in balancer.available, "the later server to be heard of")
            assert "501" not in balancer.available
        async with asyncio.timeout(20), roost.LoadBalancer.following(client, "game", "kr-1") as newcomer:
            assert newcomer.available == ["502"]


async def test_a_health_checker_tells_a_death_once_and_no_clean_stop(server: RunningServer) -> None:
    ill: list[str] = []
    async with roost.connect(server.url, cache_folder="/nowhere", sweeps=True) as client:
        checker = roost.HealthChecker(client, Prober(allow_local=True), "game")
        checker.on_server_unhealthy(ill.append)
        checker.start()
        clean = await client.register(type="game", group="kr-1", server_id="501")
        await client.register(type="game", group="kr-1", server_id="502", ttl_seconds=3)
        await eventually(lambda: checker.is_server_healthy("501") and checker.is_server_healthy("502"))
        await client.remove(clean.instance_id)
        await eventually(lambda: ill == ["502"], "the silent one to be told", 40)
        await checker.stop()
    assert ill == ["502"]
