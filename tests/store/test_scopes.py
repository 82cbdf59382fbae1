"""Scopes of different kinds never meet, whatever a world is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from roost.api.discovery import RegisterInput
from roost.app import open_platform
from roost.settings import Settings
from roost.testing import RunningServer, eventually
from roost.waitingroom.settings import QueueSettings


@pytest.mark.parametrize("name", ["sd", "failover", "discovery", "world"])
async def test_a_world_named_like_something_of_ours_disturbs_nobody(
    server: RunningServer, tmp_path: Path, name: str
) -> None:
    settings = Settings(store=server.url, data=tmp_path, queue=QueueSettings(worlds=name))
    async with open_platform(settings, roles=("gateway", "manager")) as platform:
        world = platform.worlds.of(name)
        await eventually(lambda: world.admitter.leading, "the world's leader")
        failover = platform.store.loops.loop("failover")
        await eventually(lambda: failover.last_good_at is not None, "the failover job")

        await world.room.report("501", "1", number=1, capacity=1, users=0, counted=0, url="ws://127.0.0.1")
        await world.room.enter("ann")
        registered = await platform.discovery.register(RegisterInput(type="game", group="eu"))

        changes = platform.discovery.watch()
        assert [i.instance_id for i in (await anext(changes)).instances or ()] == [registered.instance_id]
        assert failover.failures == 0
        assert (await world.room.feed.head()).rev == 1
