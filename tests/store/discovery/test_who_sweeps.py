"""Lease time passes while gateways are there, not while managers alone are (G3)."""

from __future__ import annotations

from pathlib import Path

from roost.app import Platform, open_platform
from roost.settings import Settings
from roost.testing import RunningServer, eventually


def running(platform: Platform) -> set[str]:
    return {loop.name for loop in platform.store.loops.all()}


async def test_a_gateway_sweeps(server: RunningServer, tmp_path: Path) -> None:
    settings = Settings(store=server.url, data=tmp_path)
    async with open_platform(settings, roles=("gateway",), wait_s=5.0) as platform:
        await eventually(lambda: "sweep" in running(platform), "a sweep")


async def test_g3_servers_behind_gateways_that_are_all_away_keep_their_leases(
    server: RunningServer, tmp_path: Path
) -> None:
    settings = Settings(store=server.url, data=tmp_path)
    async with open_platform(settings, roles=("manager",), wait_s=5.0) as platform:
        # All loops begin in one turn: where the fleet's is there, the sweep would be.
        await eventually(lambda: "health watch" in running(platform), "loops")
        assert "sweep" not in running(platform)
