from __future__ import annotations

from roost.binding.scripts import Beaten, Ended, NoServer, Unknown
from roost.core.owner import Owner
from tests.store.binding.town import LEASE_MS, SECOND, Town, invariants


async def test_a_beat_holds_the_lease_of_a_life_that_the_leader_named(any_town: Town) -> None:
    await any_town.opens("s1")
    await any_town.placed("ann")

    assert await any_town.beat("s1") == Beaten(LEASE_MS)
    await any_town.pass_ms(LEASE_MS - 1)
    assert await any_town.bound("ann")
    await any_town.pass_ms(1)
    assert await any_town.resolve("ann") == NoServer("none willing")


async def test_time_passes_only_while_somebody_looks(town: Town) -> None:
    await town.opens("s1")
    await town.placed("ann")

    town.now += 3600 * SECOND

    assert await town.bound("ann"), "one look adds two seconds at most"


async def test_a_life_that_nobody_named_holds_a_lease_and_gets_nobody(town: Town) -> None:
    assert await town.beat("s1", 7) == Unknown()
    assert await town.resolve("ann") == NoServer("none willing")

    (record,) = await town.reassert(Owner("s1", "7"), ("ann", 5))
    assert record is not None
    assert record.owner == Owner("s1", "7"), "it may say again whom it holds"
    assert (await town.bound("ann")).epoch == 5


async def test_a_named_life_stands_against_another(town: Town) -> None:
    await town.opens("s1", 7)
    assert await town.beat("s1", 8) == Unknown()
    assert await town.beat("s1", 7) == Beaten(LEASE_MS)
    assert await town.reassert(Owner("s1", "8"), ("ann", 5)) == [None]


async def test_of_two_lives_that_nobody_named_the_first_holds_until_its_lease_ends(town: Town) -> None:
    await town.beat("s1", 7)
    await town.beat("s1", 8)
    assert await town.reassert(Owner("s1", "8"), ("ann", 5)) == [None]

    for _ in range(4):
        town.now += 2 * SECOND
        await town.resolve("nobody", place=False)
    await town.beat("s1", 8)
    (record,) = await town.reassert(Owner("s1", "8"), ("ann", 5))
    assert record is not None


async def test_a_life_that_ended_cannot_beat_again(town: Town) -> None:
    await town.opens("s1")
    await town.bury("s1")

    assert await town.beat("s1") == Ended()
    assert await town.resolve("ann") == NoServer("none registered")


async def test_capacity_and_version_are_those_of_the_last_beat(town: Town) -> None:
    await town.opens("s1", cap=1)
    await town.placed("ann")
    assert await town.resolve("bob") == NoServer("all full")

    await town.beat("s1", cap=2, version="2")

    assert (await town.placed("bob", version="2")).server_id == "s1"
    await invariants(town)


async def test_a_lease_is_never_shortened(town: Town) -> None:
    await town.opens("s1")
    await town.scripts.beat(
        type="entity",
        server="s1",
        life="7",
        capacity=0,
        version="",
        ttl_ms=1,
        max_step_ms=2000,
        active=[],
        now=town.now,
    )
    await town.pass_ms(LEASE_MS - 1)
    await town.placed("ann")


async def test_users_that_their_owner_names_are_not_idle(town: Town) -> None:
    await town.opens("s1")
    await town.placed("ann")
    await town.placed("bob")
    await town.pass_ms(4000, beating=[("s1", 7)], active=["ann", "stranger"])

    ticked = await town.tick(idle_ms=3000)

    assert ticked.idle == 1  # type: ignore[union-attr]
    assert await town.bound("ann")
    released = await town.read("bob")
    assert released is not None
    assert released.why == "idle"
    await invariants(town)
