from __future__ import annotations

from roost.binding.scripts import Beaten, Deposed, Ended, NoServer, Stale, Synced
from tests.store.binding.town import LEASE_MS, Town, invariants


async def test_the_leader_opens_and_closes_servers(any_town: Town) -> None:
    await any_town.opens("s1")
    await any_town.placed("ann")

    await any_town.sync(("s1", 7, "0"))

    assert await any_town.resolve("bob") == NoServer("none willing")
    assert await any_town.bound("ann"), "who is there stays"
    await any_town.sync(("s1", 7, "1"))
    await any_town.placed("bob")
    await invariants(any_town)


async def test_a_new_life_ends_the_one_before(town: Town) -> None:
    await town.opens("s1", 7)
    await town.placed("ann")

    assert await town.sync(("s1", 8, "1")) == Synced(0, [])

    assert await town.beat("s1", 7) == Ended()
    assert await town.beat("s1", 8) == Beaten(LEASE_MS)
    assert (await town.placed("ann")).life == "8"


async def test_a_life_that_ended_does_not_return(town: Town) -> None:
    await town.opens("s1", 7)
    assert await town.sync(("s1", 7, "-")) == Synced(0, [])
    await town.sync(("s1", 7, "1"))

    assert await town.beat("s1", 7) == Ended()
    assert await town.resolve("ann") == NoServer("none registered")


async def test_an_end_tells_how_many_are_left(town: Town) -> None:
    await town.opens("s1", 7)
    await town.placed("ann")
    assert await town.sync(("s1", 7, "-")) == Synced(1, [])


async def test_full_news_closes_whom_it_does_not_name_and_ends_nobody(town: Town) -> None:
    await town.opens("s1")
    await town.opens("s2")
    await town.opens("r1", type_="room")
    await town.placed("ann")

    assert await town.sync(("s2", 7, "1"), full=True) == Synced(0, ["s1", "7"])

    assert await town.beat("s1") == Beaten(LEASE_MS)
    assert (await town.placed("bob")).server_id == "s2"
    assert (await town.placed("ann", type_="room")).server_id == "r1"


async def test_older_news_of_the_same_tenure_is_ignored(town: Town) -> None:
    await town.opens("s1")
    assert await town.sync(("s1", 7, "0"), number=50) == Synced(0, [])
    assert await town.sync(("s1", 7, "1"), number=49) == Stale()

    town.epoch = 2
    await town.lead()
    assert await town.sync(("s1", 7, "1"), number=1) == Synced(0, [])


async def test_only_the_leader_is_believed(town: Town) -> None:
    assert await town.sync(("s1", 7, "1")) == Deposed()
    await town.lead()
    assert await town.sync(("s1", 7, "1"), holder="other") == Deposed()
    assert await town.sync(("s1", 7, "1"), epoch=9) == Deposed()
