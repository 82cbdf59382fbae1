"""lease_clock.lua: lease time runs only while somebody looks."""

from __future__ import annotations

import asyncio

import pytest

from roost.core.lease import MAX_STEP_MS
from roost.store import scopes
from roost.store.leader import Held, Leading
from roost.store.scripts import Script
from roost.store.store import Store
from roost.testing import open_store, run_valkey

T0 = 1_700_000_000_000_000
SECOND = 1_000_000
LEADER = scopes.world("main")


async def look(store: Store, now: int, holder: str = "looker", epoch: str = "") -> Leading | Held:
    """A look at the clock; campaigning is one."""
    campaign: Script[Leading | Held] = store.library.script("store", "leader_campaign", Leading, Held)
    key = store.keys.leader(LEADER)
    return await campaign(
        leader=key, holder=holder, epoch=epoch, ttl_ms=10_000, max_step_ms=MAX_STEP_MS, now=now
    )


async def clock_ms(store: Store) -> int:
    key = store.keys.leader(LEADER)
    return int(await store.call("HGET", key, "clock_ms", key=key))


async def test_the_first_look_finds_the_clock_at_nought(any_store: Store) -> None:
    await look(any_store, T0)
    assert await clock_ms(any_store) == 0


async def test_a_look_adds_the_time_since_the_last_one(any_store: Store) -> None:
    for now in (0, 300, 300, 1700):
        await look(any_store, T0 + now * 1000)
    assert await clock_ms(any_store) == 1700


@pytest.mark.parametrize("away_s", [2, 3, 60, 3600, 86_400 * 365])
async def test_a_look_adds_at_most_one_step_however_long_nobody_looked(any_store: Store, away_s: int) -> None:
    await look(any_store, T0)
    await look(any_store, T0 + away_s * SECOND)
    assert await clock_ms(any_store) == MAX_STEP_MS


async def test_after_a_step_back_time_goes_on_from_there(any_store: Store) -> None:
    await look(any_store, T0)
    await look(any_store, T0 - 3600 * SECOND)
    assert await clock_ms(any_store) == 0

    await look(any_store, T0 - 3599 * SECOND)
    assert await clock_ms(any_store) == 1000


async def test_looks_in_quick_succession_lose_no_time(any_store: Store) -> None:
    for micros in range(0, 100_001, 400):
        await look(any_store, T0 + micros)
    assert await clock_ms(any_store) == 100


async def test_two_sweepers_at_once_move_time_once(store: Store) -> None:
    """Twenty sweepers look at every tenth of a second for ten seconds: ten seconds pass, not two hundred."""
    for tenth in range(101):
        now = T0 + tenth * SECOND // 10
        await asyncio.gather(*(look(store, now, f"sweeper-{n}") for n in range(20)))
    assert await clock_ms(store) == 10_000


async def test_sweepers_with_the_servers_own_clock_move_time_once(store: Store) -> None:
    lease = store.leader(LEADER, "a")
    await lease.campaign()
    loop = asyncio.get_running_loop()
    started = loop.time()
    await asyncio.gather(*(store.leader(LEADER, "b").campaign() for _ in range(300)))
    await lease.campaign()
    passed_ms = (loop.time() - started) * 1000
    assert await clock_ms(store) <= passed_ms + 50


async def test_a_store_that_was_away_for_longer_than_every_lease_expires_nobody() -> None:
    """G3: the store is killed, comes back an hour later with its data, and the leader still leads."""
    with run_valkey(persistent=True, options=("--appendfsync", "always")) as server:
        async with open_store(server.url) as store:
            assert await look(store, T0, "leader") == Leading(T0)

            server.kill()
            server.start()

            hour_later = T0 + 3600 * SECOND
            assert await look(store, hour_later, "rival") == Held("leader", T0)
            assert await look(store, hour_later, "leader", str(T0)) == Leading(T0)
            assert await clock_ms(store) == MAX_STEP_MS


async def test_a_record_without_its_clock_starts_it_anew_and_expires_nobody(any_store: Store) -> None:
    await look(any_store, T0, "leader")
    key = any_store.keys.leader(LEADER)
    await any_store.call("HDEL", key, "last_advance_us", key=key)

    assert await look(any_store, T0 + 3600 * SECOND, "rival") == Held("leader", T0)
    assert await clock_ms(any_store) == 0
