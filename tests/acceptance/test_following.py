"""A balancer and a health checker that follow discovery through a client."""

from __future__ import annotations

import roost
from roost.balancing import Server
from roost.discovery.probes import Prober
from roost.testing import run_valkey
from tests.waiting import eventually


async def test_a_balancer_follows_servers_as_they_come_and_go() -> None:
    with run_valkey() as server:
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


async def test_a_health_checker_tells_a_death_once_and_no_clean_stop() -> None:
    ill: list[str] = []
    with run_valkey() as server:
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
