"""The stories that broke simpler designs of the ledger in a model checker, each on the real scripts.

Where a story is told in full elsewhere, the test here is its shortest form. Stories 10 (who proves its life)
and 12 (a late reply to a report of a former life) are told in `tests/acceptance/test_queue_http.py` and
`tests/unit/sdk/test_door.py`.
"""

from __future__ import annotations

from roost.core.lease import MAX_STEP_MS
from roost.store.leader import Held as HeldByAnother
from roost.store.leader import Leading
from roost.store.scripts import Script
from roost.waitingroom.scripts import (
    Deposed,
    Fenced,
    NewsLost,
    Pending,
    Reported,
    Stale,
    Synced,
)
from tests.store.waitingroom.world import SECOND, T0, TICKET_MS, World, invariants


async def campaign(world: World, holder: str, epoch: int | str = "") -> Leading | HeldByAnother:
    script: Script[Leading | HeldByAnother] = world.store.library.script(
        "store", "leader_campaign", Leading, HeldByAnother
    )
    return await script(
        leader=world.key("leader"),
        holder=holder,
        epoch=str(epoch),
        ttl_ms=10_000,
        max_step_ms=MAX_STEP_MS,
        now=world.now,
    )


async def test_1_news_of_a_wiped_discovery_is_taken_though_its_revision_began_again(world: World) -> None:
    """`number` is the leader's own count; see also `test_fleet.py`, where the revision goes back."""
    await world.report("s1", cap=5)
    await world.shows("s1", state="0")
    await world.report("s1", cap=5, life=9)
    assert (await invariants(world)).servers["s1"].open == 1


async def test_2_reordered_news_about_two_servers_leaves_none_open(world: World) -> None:
    for server in ("a", "b"):
        await world.report(server, cap=5)
    await world.sync(("a", 7, "0"), ("b", 7, "0"), full=True, number=30)
    assert await world.sync(("a", 7, "0"), number=20) == Stale()
    assert [row.open for row in (await invariants(world)).servers.values()] == [0, 0]


async def test_3_after_a_wipe_and_a_step_back_there_are_not_two_leaders(world: World) -> None:
    first = await campaign(world, "m0")
    assert isinstance(first, Leading)
    await world.wiped()
    world.now -= 3600 * SECOND
    second = await campaign(world, "m1")
    assert isinstance(second, Leading)
    assert second.epoch < first.epoch
    assert await world.sync(holder="m0", epoch=first.epoch) == Deposed()
    assert await world.sync(holder="m1", epoch=second.epoch) == Synced(0, [])
    assert await world.admit(holder="m0", epoch=first.epoch) == Deposed()


async def test_4_no_epoch_is_granted_twice_to_one_who_had_it(world: World) -> None:
    first = await campaign(world, "m0")
    assert isinstance(first, Leading)
    await world.wiped()
    world.now -= 3600 * SECOND
    again = await campaign(world, "m0", first.epoch)
    assert isinstance(again, Leading)
    assert again.epoch > first.epoch


async def test_5_a_former_leader_writes_nothing_between_snapshot_and_write_of_the_next(world: World) -> None:
    await world.report("s1", cap=5)
    former = world.epoch
    world.epoch += 1
    await world.lead()
    assert await world.sync(("s1", 7, "1"), epoch=former) == Deposed()
    assert isinstance(await world.sync(("s1", 7, "0"), full=True), Synced)
    assert (await invariants(world)).servers["s1"].open == 0


async def test_6_news_that_a_failover_lost_is_missed_at_the_next_tick(world: World) -> None:
    await world.report("s1", cap=5)
    kept = world.news
    await world.shows("s1", state="0")
    await world.store.call("HSET", world.key("world"), "news", kept, key=world.key("world"))
    assert await world.admit() == NewsLost()


async def test_7_a_cut_on_one_server_keeps_nobody_off_another(world: World) -> None:
    await world.report("a", cap=1, n=1)
    await world.report("a", cap=0, n=1)
    await world.report("b", cap=1)
    await world.gets_ticket("ann")


async def test_8_a_new_life_with_a_smaller_number_is_not_fenced(world: World) -> None:
    await world.report("s1", cap=5, life=9)
    await world.shows("s1", life=4)
    assert await world.report("s1", cap=5, life=4) == Reported(0)
    assert await world.report("s1", cap=5, life=9, shown=False) == Fenced(9)


async def test_9_reports_that_wait_put_nobody_in_doubt(world: World) -> None:
    await world.report("s1", cap=5)
    for k in (0, 3, 0):
        await world.report("ghost", k=k, life=9, shown=False)
    state = await invariants(world)
    assert (state.number("doubt"), state.number("lost_writes")) == (0, 0)


async def test_11_the_same_id_in_another_type_displaces_nobody(world: World) -> None:
    """The leader follows the world's own type: the other life is never written, so it waits for ever."""
    await world.report("501", cap=5, life=7)
    assert await world.report("501", cap=900, life=8, shown=False) == Pending()
    assert await world.report("501", cap=5, life=7) == Reported(0)


async def test_13_a_server_closed_during_a_tickets_time_makes_no_no_show(world: World) -> None:
    await world.report("s1", cap=5)
    await world.gets_ticket("ann")
    await world.shows("s1", state="0")
    await world.pass_ms(1000)
    await world.shows("s1", state="1")
    await world.pass_ms(TICKET_MS)
    assert await world.number("no_shows") == 0


async def test_14_a_leaders_sign_from_the_future_is_none(world: World) -> None:
    await world.report("s1", cap=5)
    world.now = T0 - 60 * SECOND
    await world.waits("ann")
