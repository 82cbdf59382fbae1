"""Scopes of different kinds never meet, whatever a world is named."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from roost.api.discovery import RegisterInput
from roost.app import Platform, open_platform
from roost.settings import Settings
from roost.testing import RunningServer, eventually
from roost.waitingroom.settings import QueueSettings
from roost.waitingroom.worlds import World
from tests.store.reading import whole_feed


async def platform_knows(world: World) -> bool:
    return (await world.room.read_board()).capacity == 1


async def told_by(platform: Platform, world: World) -> list[str]:
    entries = await whole_feed(platform.store, world.room.scope)
    return [entry.fields["event"] for entry in entries]


@pytest.mark.parametrize("name", ["sd", "failover", "discovery", "world"])
async def test_a_world_named_like_something_of_ours_disturbs_nobody(
    server: RunningServer, tmp_path: Path, name: str
) -> None:
    settings = Settings(store=server.url, data=tmp_path, queue=QueueSettings(worlds=name))
    async with open_platform(settings, roles=("gateway", "manager")) as platform:
        world = platform.worlds.of(name)
        await eventually(lambda: world.admitter.leading, "the world's leader")
        fleet = platform.store.loops.loop(f"fleet {name}")
        await eventually(lambda: fleet.last_good_at is not None, "the leader to hear discovery")

        registered = await platform.discovery.register(
            RegisterInput(type="game", group="eu", server_id="501")
        )
        report = partial(world.room.report, "501", registered.life, capacity=1, users=0, counted=0, url="")
        await report(number=1)
        await eventually(lambda: platform_knows(world), "the leader to write the server")
        await world.room.enter("ann")

        async def is_told() -> bool:
            return "promoted" in await told_by(platform, world)

        await eventually(is_told, "the ticket")

        changes = platform.discovery.watch()
        assert [i.instance_id for i in (await anext(changes)).instances or ()] == [registered.instance_id]
        assert fleet.failures == 0
        assert await told_by(platform, world) == ["promoted"]
