"""The beat of its own thread: a main loop that hangs stops it, one that is busy does not."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from roost.binding.service import Bindings
from roost.binding.settings import BindingSettings
from roost.core.loops import Loops
from roost.core.owner import Owner
from roost.discovery.service import Discovery
from roost.servers.entity.beating import Beating, BeatThread, RollCall, ticking
from roost.servers.entity.lease import Lease
from roost.store.store import Store
from roost.testing import RunningServer, eventually, open_store
from tests.entity.town import TYPE, Town

FAST = BindingSettings(lease_ms=3000, beat_ms=100)


def opener(url: str) -> object:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Bindings]:
        async with open_store(url) as store:
            yield Bindings(store, FAST, Discovery(store, 30.0))

    return opened


async def test_a_main_loop_that_hangs_stops_the_beat_and_one_that_is_busy_does_not(
    server: RunningServer, store: Store
) -> None:
    lease, loops = Lease(), Loops()
    beating = Beating(TYPE, lambda: Owner("501", "1"), [lease], 10, "1.0")
    thread = BeatThread(beating, opener(server.url), 0.02, loops)  # type: ignore[arg-type]
    async with ticking(beating, loops):
        thread.start()
        await eventually(lambda: lease.is_valid, "the first beat is taken")
        beats = beating.beats
        time.sleep(0.3)  # busy: the main loop does not turn, the other thread does
        assert beating.beats > beats
        assert lease.is_valid
    beating.ticked_at = time.monotonic() - 2.0  # it hangs: for more than half of the lease
    await eventually(lambda: loops.loop("entity-beat").last_good_at is not None)
    beats = beating.beats
    time.sleep(0.2)
    assert beating.beats <= beats + 1
    beating.ticked_at = time.monotonic()
    await eventually(lambda: beating.beats > beats + 1, "it beats again")
    await thread.stop()


async def test_a_new_life_begins_with_a_lapse(town: Town) -> None:
    lives = ["1"]
    lease = Lease()
    beating = Beating(TYPE, lambda: Owner("501", lives[-1]), [lease], 10, "1.0")
    await beating.beat(town.bindings)
    generation = lease.generation
    await town.bindings.bury(TYPE, Owner("501", "1"))
    await beating.beat(town.bindings)
    assert lease.ended

    lives.append("2")
    await beating.beat(town.bindings)

    assert (lease.ended, lease.is_valid, lease.generation) == (False, True, generation + 1)


async def test_beats_name_everybody_in_turn(town: Town) -> None:
    beating = Beating(TYPE, lambda: Owner("501", "1"), [Lease()], 10, "1.0")
    users = [(f"u{n:05}", 0) for n in range(2500)]
    roll = RollCall(beating, lambda: users)
    named: list[str] = []
    for _ in range(3):
        await roll.step()
        named += beating.active[0]
        await beating.beat(town.bindings)
        assert beating.active == [[]]
    assert named == [user for user, _ in users]
