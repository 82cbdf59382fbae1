"""look.lua: what an operator sees of one person, without being taken for them."""

from __future__ import annotations

from roost.waitingroom.scripts import Seen
from tests.store.waitingroom.world import LATE_MS, World


async def look(world: World, user: str) -> Seen:
    return await world.scripts.look(user=user)


async def test_nothing_is_known_of_a_stranger(any_world: World) -> None:
    assert await look(any_world, "ann") == Seen("", "", 0, 0, "", "", 0, "")


async def test_a_place_in_the_line_and_who_is_away_before_it(world: World) -> None:
    await world.crowd(3)
    await world.waits("ann", nickname="Ann")
    await world.pass_ms(3000 + LATE_MS, polling=["u00001", "ann"])
    seen = await look(world, "ann")
    assert (seen.state, seen.rank, seen.away_ahead, seen.nickname) == ("waiting", 2, 2, "Ann")


async def test_looking_at_somebody_who_is_away_leaves_them_away(world: World) -> None:
    await world.waits("ann")
    await world.waits("bob")
    await world.pass_ms(3000 + LATE_MS, polling=["bob"])
    before = await world.person("ann")
    seen = await look(world, "ann")
    assert (seen.state, seen.rank) == ("away", 1)
    assert await world.person("ann") == before
    assert await world.line_of("away") == ["ann"]


async def test_a_ticket_a_server_a_held_place_and_how_a_place_was_lost(world: World) -> None:
    await world.report("s1", cap=3, n=0, number=1)
    await world.gets_ticket("ann")
    offered = await look(world, "ann")
    assert (offered.state, 0 < offered.left_ms <= world.ticket_ms) == ("offered", True)
    await world.goes_in("ann")
    assert (await look(world, "ann")).server == "s1"
    await world.release("ann", "dropped")
    held = await look(world, "ann")
    assert (held.state, held.left_ms > 0) == ("held", True)
    await world.gets_ticket("bob")
    await world.leave("bob")
    assert (await look(world, "bob")).state == "left"
