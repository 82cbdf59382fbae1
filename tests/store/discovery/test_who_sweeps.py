"""Lease time passes while gateways are there, not while managers alone are (G3)."""

from __future__ import annotations

from pathlib import Path

from roost.api.discovery import RegisterInput
from roost.app import Platform, open_platform
from roost.settings import Settings
from roost.store.store import Store
from roost.testing import RunningServer, eventually

TTL_S = 3.0


def running(platform: Platform) -> set[str]:
    return {loop.name for loop in platform.store.loops.all()}


async def time_of(store: Store) -> float:
    seconds, micros = await store.call("TIME", key=b"", idempotent=True)
    return int(seconds) + int(micros) / 1e6


async def test_a_gateway_sweeps(server: RunningServer, tmp_path: Path) -> None:
    settings = Settings(store=server.url, data=tmp_path)
    async with open_platform(settings, roles=("gateway",), wait_s=5.0) as platform:
        await eventually(lambda: "sweep" in running(platform), "a sweep")


async def test_g3_servers_behind_gateways_that_are_all_away_keep_their_leases(
    server: RunningServer, tmp_path: Path
) -> None:
    settings = Settings(store=server.url, data=tmp_path)
    async with open_platform(settings, roles=("manager",), wait_s=5.0) as platform:
        store, discovery = platform.store, platform.discovery
        await discovery.register(RegisterInput("game", "main", server_id="501", ttl_seconds=TTL_S))
        (one,) = (await discovery.discover("game")).instances
        await eventually(lambda: "health watch" in running(platform), "loops")
        silent_from = await time_of(store)

        async def is_silent_for_two_leases() -> bool:
            return await time_of(store) > silent_from + 2 * TTL_S

        await eventually(is_silent_for_two_leases, "time to pass")
        detail = await discovery.get(one.instance_id)
        assert (detail.status, [line.event for line in detail.history]) == ("ready", ["added"])

        async def has_ended() -> bool:
            return (await discovery.get(one.instance_id)).status == "no-response"

        async with open_platform(settings, roles=("gateway",), wait_s=5.0):
            await eventually(has_ended, "the end of its lease, with a gateway there")
