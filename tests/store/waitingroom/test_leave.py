"""leave.lua: give up a place, a ticket or a place that is held."""

from __future__ import annotations

from roost.waitingroom.scripts import Inside, Left, NoPlace, Offered, Unknown
from tests.store.waitingroom.world import LATE_MS, World, invariants


async def test_a_place_is_given_up(any_world: World) -> None:
    await any_world.crowd(2)
    assert await any_world.leave("u00000") == Left()
    assert await any_world.line_of() == ["u00001"]
    assert await any_world.status("u00000") == NoPlace("left")
    await invariants(any_world)


async def test_who_is_away_can_give_up_too(world: World) -> None:
    await world.waits("ann")
    await world.pass_ms(3000 + LATE_MS)
    assert await world.leave("ann") == Left()
    assert (await invariants(world)).away == {"": {}}


async def test_a_ticket_that_is_given_up_is_free_for_the_next(world: World) -> None:
    await world.report(cap=1)
    ticket = await world.gets_ticket("ann")
    await world.waits("bob")

    await world.leave("ann")

    assert await world.consume("ann", ticket.tid) == Unknown()
    assert (await world.tick()).issued == 1
    assert isinstance(await world.status("bob"), Offered)
    await invariants(world)


async def test_a_held_place_that_is_given_up_is_free(world: World) -> None:
    await world.report(cap=1)
    await world.gets_ticket("ann")
    await world.goes_in("ann")
    await world.release("ann", "dropped")
    await world.report(cap=1, n=0, k=1)
    await world.waits("bob")
    assert (await world.tick()).issued == 0

    assert await world.leave("ann") == Left()

    assert (await world.tick()).issued == 1
    await invariants(world)


async def test_who_is_in_the_game_leaves_through_the_game(world: World) -> None:
    await world.report(cap=1)
    await world.gets_ticket("ann")
    await world.goes_in("ann")
    assert await world.leave("ann") == Inside("s1")
    assert (await invariants(world)).people["ann"]["state"] == "inside"


async def test_who_has_nothing_is_nobody(world: World) -> None:
    assert await world.leave("ann") == NoPlace("")
    await world.waits("ann")
    await world.leave("ann")
    assert await world.leave("ann") == NoPlace("left")
    assert await world.number("left") == 1


async def test_only_who_was_kicked_is_told_of(world: World) -> None:
    await world.crowd(2)
    await world.leave("u00000")
    await world.leave("u00001", cause="kicked")
    assert [(e.fields["event"], e.fields["user"]) for e in await world.feed()] == [("kicked", "u00001")]
    assert await world.status("u00001") == NoPlace("kicked")


async def test_a_leave_that_comes_late_does_not_touch_a_newer_place(world: World) -> None:
    old = await world.waits("ann")
    await world.leave("ann", seq=old.seq)
    new = await world.waits("ann")
    assert await world.leave("ann", seq=old.seq) == NoPlace("")
    assert await world.rank("ann") == 1
    assert await world.leave("ann", seq=new.seq) == Left()
