"""Where no gateway or manager runs: one look of one client finds out, however large the fleet is."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from roost.core.loops import Loops
from roost.discovery.probes import Prober
from roost.discovery.reaper import TOMBSTONE_MS
from roost.discovery.service import Discovery
from roost.sdk.direct.sweeper import QUIET_S, Sweeper
from roost.store import scopes
from roost.store.keys.discovery import discovery_keys
from roost.store.store import Store
from roost.testing import eventually

SECOND_US = 1_000_000


async def now_us(store: Store) -> int:
    seconds, micros = await store.call("TIME")
    return int(seconds) * SECOND_US + int(micros)


async def swept_at(store: Store, at_us: int | None = None) -> int:
    """When somebody last swept; given a time, let it be that."""
    meta = discovery_keys(store.keys)["meta"]
    if at_us is not None:
        await store.call("HSET", meta, "last_advance_us", at_us, key=meta)
    return int(await store.call("HGET", meta, "last_advance_us", key=meta) or 0)


async def make_large(store: Store, size: int) -> None:
    leases = discovery_keys(store.keys)["leases"]
    many = [part for n in range(size) for part in (10**15, f"s{n}")]
    await store.call("ZADD", leases, *many, key=leases)


@contextlib.asynccontextmanager
async def sweeping(store: Store) -> AsyncIterator[Loops]:
    loops = Loops()
    task = asyncio.create_task(Sweeper(store, Discovery(store), Prober(allow_local=True)).run(loops))
    try:
        yield loops
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_client_of_a_large_fleet_sweeps_at_its_first_look_if_nobody_does(store: Store) -> None:
    await make_large(store, 5000)
    quiet_since = await swept_at(store, await now_us(store) - int((QUIET_S + 1) * SECOND_US))
    async with sweeping(store):
        await eventually(lambda: _later(store, quiet_since), "a sweep")


async def test_a_clock_that_went_back_keeps_nobody_from_sweeping(store: Store) -> None:
    ahead = await swept_at(store, await now_us(store) + 3600 * SECOND_US)
    async with sweeping(store):
        await eventually(lambda: _earlier(store, ahead), "a sweep")


async def test_while_somebody_sweeps_a_client_leaves_it_alone(store: Store) -> None:
    await swept_at(store, await now_us(store))
    async with sweeping(store) as loops:
        await eventually(lambda: loops.loop("sdk-sweep").last_good_at is not None, "a look")
    leader = store.keys.leader(scopes.discovery(), "sweep")
    assert not await store.call("EXISTS", leader, key=leader)


async def test_a_client_that_sweeps_forgets_old_tombstones_too(store: Store) -> None:
    keys = discovery_keys(store.keys)
    await store.call("HSET", keys["gone"], "old", "no-response\t5\t1000\tgame:eu\t0", key=keys["gone"])
    await store.call("HSET", keys["meta"], "clock_ms", TOMBSTONE_MS + 1, key=keys["meta"])
    await swept_at(store, await now_us(store) - int((QUIET_S + 1) * SECOND_US))

    async def is_forgotten() -> bool:
        return not await store.call("HEXISTS", keys["gone"], "old", key=keys["gone"])

    async with sweeping(store):
        await eventually(is_forgotten, "the tombstone to go")


async def _later(store: Store, than: int) -> bool:
    return await swept_at(store) > than


async def _earlier(store: Store, than: int) -> bool:
    return await swept_at(store) < than
