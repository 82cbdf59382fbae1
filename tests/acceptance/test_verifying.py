"""`?verify=true` asks servers on behalf of a request: whoever judges them does not wait for it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from roost.discovery import probes
from roost.discovery.probes import ASKED_PARALLEL, MAX_PARALLEL, Target
from roost.testing import RunningServer, eventually
from tests.acceptance.queue import TOKEN, open_gate, settings_for

MANY = MAX_PARALLEL + 10


async def test_a_mute_fleet_that_is_verified_keeps_no_probe_of_the_checkers_waiting(
    valkey: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, ended, go = list[int](), list[int](), asyncio.Event()

    async def mute(address: str, target: Target) -> None:
        asked.append(target.port)
        try:
            await go.wait()
        finally:
            ended.append(target.port)

    async with open_gate(valkey, settings_for(tmp_path)) as gate:
        monkeypatch.setitem(probes.KINDS, "tcp", mute)
        given = {
            "type": "game",
            "group": "eu",
            "privateIp": "127.0.0.1",
            "health": {"kind": "tcp", "port": "a"},
        }
        for n in range(MANY):
            body = {**given, "serverId": str(n), "ports": {"a": 1000 + n}}
            assert (await gate.ask("POST", "/sd/v1/instances", body, token=TOKEN)).status == 201
        found = await gate.platform.discovery.discover("game", "eu")
        verifying = asyncio.create_task(
            gate.ask("GET", "/sd/v1/instances?type=game&verify=true", token=TOKEN)
        )
        await eventually(lambda: len(asked) >= ASKED_PARALLEL, "as many as may run")

        judged = found.instances[-1]
        judged.ports["a"] = 9
        probing = asyncio.create_task(gate.platform.prober.probe(judged))
        await eventually(lambda: 9 in asked, "the probe of a checker")
        assert ended == [], "it waited for one of them"

        go.set()
        assert (await probing) is not None
        assert (await verifying).status == 200
