"""release.lua: a person has left a game server."""

from __future__ import annotations

import pytest

from roost.waitingroom.scripts import Held, NoPlace, NotInside, Released, Waiting
from tests.store.waitingroom.world import GRACE_MS, World, invariants


@pytest.fixture
async def inside(world: World) -> World:
    """A server with one place; ann has it, bob waits."""
    await world.report(cap=1)
    await world.gets_ticket("ann")
    await world.goes_in("ann")
    await world.waits("bob")
    return world


async def test_after_a_clean_stop_nothing_is_held(any_world: World) -> None:
    await any_world.report(cap=1)
    await any_world.gets_ticket("ann")
    await any_world.goes_in("ann")
    assert await any_world.release("ann", "clean") == Released(0)
    assert await any_world.status("ann") == NoPlace("clean")
    assert (await invariants(any_world)).grace == {}


async def test_only_the_servers_report_frees_the_room(inside: World) -> None:
    await inside.release("ann", "clean")
    assert (await inside.tick()).issued == 0
    await inside.report(cap=1, n=0, k=1)
    assert (await inside.tick()).issued == 1


async def test_one_who_dropped_out_is_held_a_place(inside: World) -> None:
    assert await inside.release("ann", "dropped") == Released(GRACE_MS)
    await inside.report(cap=1, n=0, k=1)

    assert await inside.status("ann") == Held(GRACE_MS)
    assert (await inside.tick()).issued == 0

    await inside.pass_ms(GRACE_MS, polling=["bob"], issue=1)
    assert await inside.promoted() == ["ann", "bob"]
    await invariants(inside)


async def test_where_no_place_is_held_it_is_gone_at_once(inside: World) -> None:
    assert await inside.release("ann", "dropped", grace_ms=0) == Released(0)
    assert await inside.status("ann") == NoPlace("dropped")


async def test_one_whose_hand_off_failed_stands_where_they_stood(inside: World) -> None:
    seq = int((await inside.person("ann"))["seq"])

    assert await inside.release("ann", "failed") == Released(0)

    found = await inside.status("ann")
    assert isinstance(found, Waiting)
    assert (found.seq, found.rank) == (seq, 1)
    assert await inside.line_of() == ["ann", "bob"]
    assert (await invariants(inside)).number("no_shows") == 0


async def test_only_the_connection_that_was_let_in_lets_out(inside: World) -> None:
    assert await inside.release("ann", conn="c2") == NotInside()
    assert await inside.release("ann", server="s2") == NotInside()
    assert await inside.release("ann", life=8) == NotInside()
    assert await inside.release("bob") == NotInside()
    assert await inside.release("eve") == NotInside()
    assert (await invariants(inside)).people["ann"]["state"] == "inside"


async def test_a_release_that_is_repeated_changes_nothing(inside: World) -> None:
    await inside.release("ann", "dropped")
    before = await invariants(inside)
    assert await inside.release("ann", "dropped") == NotInside()
    assert await invariants(inside) == before
