"""status.lua: what a person has, and that they are still there."""

from __future__ import annotations

from roost.waitingroom.scripts import Held, Inside, Limited, NoPlace, Offered, Waiting
from tests.store.waitingroom.world import GRACE_MS, LATE_MS, TICKET_MS, World, invariants


async def test_everybody_is_told_what_they_have(any_world: World) -> None:
    await any_world.report(cap=2)
    ticket = await any_world.gets_ticket("ann")
    await any_world.gets_ticket("bob")
    await any_world.goes_in("bob")
    place = await any_world.waits("cid")

    assert await any_world.status("ann") == ticket
    assert await any_world.status("bob") == Inside("s1")
    assert await any_world.status("cid") == place
    assert await any_world.status("dan") == NoPlace("")
    await any_world.release("bob", "dropped")
    assert await any_world.status("bob") == Held(GRACE_MS)
    await invariants(any_world)


async def test_asking_changes_nobodys_order(world: World) -> None:
    users = await world.crowd(5)
    for user in reversed(users):
        await world.status(user)
    assert await world.line_of() == users


async def test_who_was_away_is_told_so_and_stands_at_the_old_place(world: World) -> None:
    await world.crowd(3)
    await world.pass_ms(3000 + LATE_MS, polling=["u00001"])
    assert await world.line_of("away") == ["u00000", "u00002"]

    back = await world.status("u00000")

    assert isinstance(back, Waiting)
    assert (back.rank, back.was_away, back.away_ahead) == (1, 1, 0)
    other = await world.status("u00002")
    assert isinstance(other, Waiting)
    assert (other.rank, other.was_away) == (3, 1)
    again = await world.status("u00002")
    assert isinstance(again, Waiting)
    assert again.was_away == 0
    await invariants(world)


async def test_who_is_away_before_one_is_counted(world: World) -> None:
    await world.crowd(4)
    await world.pass_ms(3000 + LATE_MS, polling=["u00002"])
    found = await world.status("u00002")
    assert isinstance(found, Waiting)
    assert (found.rank, found.away_ahead) == (1, 2)


async def test_a_ticket_that_ended_is_answered_as_the_place_it_turns_into(world: World) -> None:
    await world.report(cap=1)
    ticket = await world.gets_ticket("ann")
    await world.pass_ms(TICKET_MS, expire_limit=0)

    found = await world.status("ann")

    assert isinstance(found, Waiting)
    assert (found.seq, found.rank) == (ticket.seq, 1)
    assert (await invariants(world)).number("no_shows") == 1


async def test_the_no_show_that_costs_the_place_is_said(world: World) -> None:
    world.forfeit = 1
    await world.report(cap=1)
    await world.gets_ticket("ann")
    await world.pass_ms(TICKET_MS, expire_limit=0)
    assert await world.status("ann") == NoPlace("no-show")
    assert await world.status("ann") == NoPlace("no-show")


async def test_a_held_place_ends(world: World) -> None:
    await world.report(cap=1)
    await world.gets_ticket("ann")
    await world.goes_in("ann")
    await world.release("ann", "dropped", grace_ms=2000)
    await world.pass_ms(1000)
    assert await world.status("ann") == Held(1000)
    await world.pass_ms(1000, expire_limit=0)
    assert await world.status("ann") == NoPlace("")
    await world.tick(0)
    assert await world.status("ann") == NoPlace("dropped")


async def test_whoever_is_on_a_server_that_died_is_nobody_by_a_crash(world: World) -> None:
    await world.report(cap=1)
    await world.gets_ticket("ann")
    await world.goes_in("ann")
    await world.report(cap=1, life=99)
    assert await world.status("ann") == NoPlace("crash")
    await world.drop()
    assert await world.status("ann") == NoPlace("crash")


async def test_five_in_a_second_and_ten_at_once_are_answered(world: World) -> None:
    world.period_ms = 200
    await world.enter("ann")
    at_once = [await world.status("ann") for _ in range(20)]
    assert [isinstance(answer, Limited) for answer in at_once] == [False] * 9 + [True] * 11, (
        "the entry counts too"
    )

    answered = 0
    for _ in range(100):
        world.now += 100_000
        answered += not isinstance(await world.status("ann"), Limited)
    assert answered == 50


async def test_a_clock_that_went_back_locks_nobody_out(world: World) -> None:
    world.period_ms = 200
    await world.enter("ann")
    for _ in range(10):
        await world.status("ann")
    world.now -= 3_600_000_000
    assert isinstance(await world.status("ann"), Waiting)


async def test_a_ticket_is_told_with_the_time_that_is_left(world: World) -> None:
    await world.report(cap=1)
    ticket = await world.gets_ticket("ann")
    await world.pass_ms(1500)
    assert await world.status("ann") == Offered(ticket.seq, ticket.tid, TICKET_MS - 1500)
