"""What one who waits costs the store, sampled for traces or not: see record 64 and docs/scale.md."""

from __future__ import annotations

import asyncio

from roost.store.keys.waitingroom import world_keys
from roost.store.store import Store
from roost.testing import RunningServer
from tests.store.reading import used_memory
from tests.store.waitingroom.world import World

PEOPLE = 4000
AT_ONCE = 500
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
MOST = 300
STEP = 16
"""The allocator rounds up to a multiple of it, and a number that is a digit longer may cost one."""
SAMPLED_MORE = 90
"""The setting `tracing.per_million` says about 80: a context of 55 bytes under its name."""


async def test_who_waits_costs_under_300_bytes(world: World, server: RunningServer) -> None:
    async def come(prefix: str) -> None:
        for first in range(0, PEOPLE, AT_ONCE):
            people = range(first, first + AT_ONCE)
            await asyncio.gather(*(world.enter(f"{prefix}{number:011}") for number in people))

    await come("w")  # scripts are loaded, buffers and tables have their size
    before = used_memory(server)
    await come("p")

    assert 150 < (used_memory(server) - before) / PEOPLE < MOST


async def test_only_who_is_sampled_costs_more(world: World, store: Store, server: RunningServer) -> None:
    await world.waits("plain-000001")
    await world.waits("traced-00001", trace=TRACE)
    await world.waits("plain-000002")

    def bytes_of(user: str) -> int:
        people = world_keys(store.keys, world.scope)["people"]
        return int(server.command_reply("MEMORY", "USAGE", people + user.encode(), "SAMPLES", 0))

    plain = bytes_of("plain-000001")
    assert abs(bytes_of("plain-000002") - plain) <= STEP
    assert len(TRACE) - STEP < bytes_of("traced-00001") - plain < SAMPLED_MORE + STEP
