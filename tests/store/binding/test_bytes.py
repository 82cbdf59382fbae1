"""What a bound user costs the store: see docs/scale.md."""

from __future__ import annotations

import asyncio

from roost.store.store import Store
from roost.testing import RunningServer
from tests.store.binding.town import T0, Town
from tests.store.reading import used_memory

USERS = 5000


async def test_bytes_per_bound_user(store: Store, server: RunningServer) -> None:
    town = Town(store)
    for number in range(5):
        await town.opens(f"entity-50{number}", T0 + number)  # lives are as long as they are
    await town.placed("user-00000")  # scripts are loaded, keys are there
    before = used_memory(server)
    for first in range(1, USERS, 500):
        await asyncio.gather(*(town.placed(f"user-{n:05d}") for n in range(first, first + 500)))

    feed = store.keys.feed(town.scope)
    told = int(server.command_reply("MEMORY", "USAGE", feed, "SAMPLES", 0))
    kept = used_memory(server) - before - told

    assert 300 <= kept / USERS <= 700
