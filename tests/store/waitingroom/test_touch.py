"""touch.lua: people whom a gateway answered by itself are there."""

from __future__ import annotations

from roost.waitingroom.scripts import Touched
from tests.store.waitingroom.world import LATE_MS, World, invariants


async def test_who_is_touched_is_there(any_world: World) -> None:
    await any_world.crowd(2)
    for _ in range(10):
        await any_world.pass_ms(2000)
        assert await any_world.touch("u00000") == Touched(1)
    assert (await any_world.line_of(), await any_world.line_of("away")) == (["u00000"], ["u00001"])


async def test_who_was_away_stands_in_the_line_again(world: World) -> None:
    users = await world.crowd(3)
    await world.pass_ms(3000 + LATE_MS)
    assert await world.line_of() == []

    assert await world.touch(*reversed(users)) == Touched(3)

    assert await world.line_of() == users
    await invariants(world)


async def test_the_next_call_is_due_when_they_were_told(world: World) -> None:
    await world.waits("ann")
    await world.touch("ann", poll_ms=30_000)
    await world.pass_ms(30_000 + LATE_MS)
    assert await world.line_of() == ["ann"]
    await world.pass_ms(1)
    assert await world.line_of("away") == ["ann"]


async def test_only_who_is_in_the_line_counts(world: World) -> None:
    await world.report(cap=3)
    for user in ("in", "out", "ticket"):
        await world.gets_ticket(user)
    await world.goes_in("in")
    await world.leave("out")
    assert await world.touch("in", "out", "ticket", "unknown") == Touched(0)
    assert (await invariants(world)).people.keys() == {"in", "out", "ticket"}


async def test_who_has_another_place_by_now_is_not_there_by_a_receipt_of_the_former_one(world: World) -> None:
    former = (await world.waits("ann")).seq
    await world.leave("ann", "kicked")
    await world.crowd(2)
    present = (await world.waits("ann")).seq
    assert await world.touch("ann", seq=former) == Touched(0)
    assert await world.touch("ann", seq=present) == Touched(1)

    await world.pass_ms(3000 + LATE_MS)
    assert await world.touch("ann", seq=former) == Touched(0)
    assert "ann" in await world.line_of("away")
