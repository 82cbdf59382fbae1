from __future__ import annotations

from roost.binding.scripts import Deposed, NewsLost, Ticked
from tests.store.binding.town import LEASE_MS, SECOND, Town, invariants


async def test_a_tick_lets_lease_time_pass(any_town: Town) -> None:
    await any_town.opens("s1")
    for _ in range(3):
        any_town.now += SECOND
        await any_town.tick()
    assert (await any_town.tick()) == Ticked(3000, 0, [])


async def test_a_partition_that_lost_the_news_says_so(town: Town) -> None:
    await town.opens("s1")
    replica = await town.copy()
    await town.sync(("s2", 7, "1"))
    await town.fails_over_to(replica)

    assert await town.tick() == NewsLost()
    await town.wiped()
    await town.lead()
    assert await town.tick() == NewsLost()


async def test_only_the_leader_ticks(town: Town) -> None:
    await town.opens("s1")
    assert await town.tick(holder="other") == Deposed()


async def test_bindings_that_nobody_used_for_long_are_released_a_few_at_a_time(town: Town) -> None:
    owner = await town.opens("s1")
    for user in ("ann", "bob", "cy"):
        await town.placed(user)
    await town.pass_ms(LEASE_MS, beating=[("s1", 7)])

    assert await town.tick(idle_ms=0) == Ticked(LEASE_MS, 0, [])
    assert await town.tick(idle_ms=LEASE_MS + 1) == Ticked(LEASE_MS, 0, [])
    assert await town.tick(idle_ms=LEASE_MS, count=2) == Ticked(LEASE_MS, 2, [])
    assert await town.tick(idle_ms=LEASE_MS, count=2) == Ticked(LEASE_MS, 1, [])

    assert await town.binders(owner) == []
    was = await town.read("ann")
    assert was is not None
    assert (await town.placed("ann")).epoch > was.epoch
    await invariants(town)
