"""report.lua: what a game server says of itself, late, doubled or in any order."""

from __future__ import annotations

from roost.waitingroom.scripts import Fenced, Inside, NoPlace, Offered, Reported, Stale
from tests.store.waitingroom.world import T0, Row, World, invariants


async def test_the_first_report_of_a_life_opens_its_row(any_world: World) -> None:
    assert await any_world.report(cap=10, n=4, k=6, number=1) == Reported(6)

    state = await invariants(any_world)

    assert state.servers == {"s1": Row(7, 10, 4, 6, 6, 1, 0, 1)}
    assert (state.number("cap"), state.number("inside")) == (10, 4)


async def test_the_sums_are_over_all_servers(world: World) -> None:
    await world.report("s1", cap=10, n=4)
    await world.report("s2", cap=5, n=5)
    await world.report("s1", cap=8, n=1)
    state = await invariants(world)
    assert (state.number("cap"), state.number("inside")) == (13, 6)


async def test_an_older_report_is_not_taken(world: World) -> None:
    await world.report(n=5, number=5)
    assert await world.report(n=1, number=4) == Stale()
    assert await world.report(n=1, number=5) == Stale()
    assert (await invariants(world)).servers["s1"].reported == 5


async def test_an_earlier_life_is_fenced_and_a_later_one_begins_anew(world: World) -> None:
    await world.report(n=5, life=7, number=50)
    assert await world.report(n=0, cap=3, life=8, number=1) == Reported(0)
    assert await world.report(n=9, life=7, number=51) == Fenced(7)
    state = await invariants(world)
    assert (state.servers["s1"].life, state.number("inside"), state.number("cap")) == (8, 0, 3)


async def test_consumes_that_a_report_does_not_count_are_added(world: World) -> None:
    await world.report(cap=5)
    for user in ("ann", "bob", "cid"):
        await world.gets_ticket(user)
        await world.goes_in(user)

    assert await world.report(cap=5, n=1, k=1) == Reported(3)
    assert (await invariants(world)).number("inside") == 3
    assert await world.report(cap=5, n=1, k=3) == Reported(3)
    assert (await invariants(world)).number("inside") == 1


async def test_a_cut_in_capacity_revokes_nothing_and_issues_nothing(world: World) -> None:
    await world.report(cap=3)
    for user in ("ann", "bob", "cid"):
        await world.gets_ticket(user)
    await world.waits("dan")

    await world.report(cap=1)

    ticked = await world.tick()
    assert (ticked.issued, ticked.room) == (0, 0)
    assert (await invariants(world)).offers.keys() == {"ann", "bob", "cid"}


async def test_people_without_a_ticket_are_counted_as_drift(world: World) -> None:
    await world.report(n=2)
    await world.report(n=5)
    assert await world.number("drift") == 3


async def test_lost_writes_hold_the_room_until_every_server_has_reported(world: World) -> None:
    for server in ("s1", "s2", "s3"):
        await world.report(server, cap=5)
    await world.mode("queue-all")
    await world.waits("ann")

    assert await world.report("s1", cap=5, n=2, k=2) == Reported(2)

    assert (await world.tick()).issued == 0
    await world.report("s1", cap=5, n=2, k=2)
    await world.report("s2", cap=5)
    assert (await world.tick()).issued == 0
    assert (await invariants(world)).number("doubt") == 1
    await world.report("s3", cap=5)
    assert (await world.tick()).issued == 1
    assert (await invariants(world)).number("lost_writes") == 1


async def test_lost_writes_hold_the_room_until_the_silent_server_has_died(world: World) -> None:
    await world.report("s1", cap=5)
    await world.report("s2", cap=5)
    await world.mode("queue-all")
    await world.waits("ann")
    await world.report("s1", cap=5, n=1, k=1)
    assert (await world.tick()).issued == 0
    await world.drop("s2")
    assert (await world.tick()).issued == 1
    await invariants(world)


async def test_lost_writes_are_not_held_against_a_server_that_takes_nobody(world: World) -> None:
    """A server that hangs is closed, and does not report: the others go on without it."""
    for server in ("s1", "s2"):
        await world.report(server, cap=5)
    await world.mode("queue-all")
    await world.waits("ann")
    await world.report("s1", cap=5, n=1, k=1)
    await world.shows("s2", state="0")
    assert (await world.tick(1)).issued == 1

    await world.waits("bob")
    await world.shows("s2", state="1")
    assert (await world.tick(1)).issued == 0, "it is back, and nobody knows how many are on it"
    await world.report("s2", cap=5)
    assert (await world.tick(1)).issued == 1
    await invariants(world)


async def test_a_server_is_told_once_who_is_inside_and_asks_to_come_in(any_world: World) -> None:
    world = any_world
    await world.report(cap=5)
    for user in ("ann", "bob"):
        await world.gets_ticket(user)
        await world.goes_in(user, conn=f"c-{user}")
    assert await world.enter("ann") == Inside("s1")

    assert await world.report(cap=5, n=2, k=2) == Reported(2, ["ann", "c-ann"])

    assert await world.report(cap=5, n=2, k=2) == Reported(2, [])
    await world.release("ann", "dropped", conn="c-ann")
    assert isinstance(await world.enter("ann"), Offered)
    await invariants(world)


async def test_who_has_left_since_they_asked_is_not_named(world: World) -> None:
    await world.report(cap=5)
    await world.gets_ticket("ann")
    await world.goes_in("ann")
    assert await world.enter("ann") == Inside("s1")
    await world.release("ann")
    assert await world.report(cap=5, k=1) == Reported(1, [])


async def test_a_new_life_sees_to_the_people_of_one_whose_end_nobody_saw(world: World) -> None:
    await world.report(cap=200, life=7)
    users = [f"u{number}" for number in range(150)]
    for user in users:
        await world.gets_ticket(user)
        await world.goes_in(user, life=7)

    assert await world.report(cap=200, life=8, number=1) == Reported(0)
    assert await world.report(cap=200, life=8, number=2) == Reported(0)

    assert {await world.status(user) for user in users} == {NoPlace("crash")}
    assert await world.store.call("KEYS", "queue:inside:*:7") == []
    assert await world.report(cap=200, life=7, number=9) == Fenced(7)
    await invariants(world)


async def test_a_report_number_may_be_a_time_in_microseconds(world: World) -> None:
    await world.report(cap=3, number=T0)
    await world.gets_ticket("ann")
    await world.goes_in("ann")
    assert isinstance(await world.report(cap=3, n=1, k=1, number=T0), Stale)
    assert isinstance(await world.report(cap=3, n=1, k=1, number=T0 + 1), Reported)
    await invariants(world)
