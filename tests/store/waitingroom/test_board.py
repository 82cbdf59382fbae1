"""board.lua: what everybody may know of a world."""

from __future__ import annotations

import itertools

from roost.waitingroom.scripts import Board
from tests.store.waitingroom.world import LATE_MS, World


async def test_an_empty_world_has_an_empty_board(any_world: World) -> None:
    board = await any_world.board()
    assert (board.servers, board.offers, board.held, board.lines) == ([], 0, 0, ["0", "0", ""])


async def test_the_board_has_numbers_servers_tickets_and_lines(two_lines: World) -> None:
    world = two_lines
    await world.report("s1", cap=2, n=0, number=1, url="wss://one")
    await world.gets_ticket("ann")
    await world.gets_ticket("bob")
    await world.goes_in("bob")
    await world.release("bob", "dropped")
    places = [await world.waits(user) for user in ("cid", "dan")]

    board: Board = await world.board()

    assert dict(zip(board.numbers[::2], board.numbers[1::2], strict=True))["cap"] == "2"
    assert board.servers == ["s1", "7\t2\t0\t0\t1\t1\t0\t1\twss://one"]
    assert (board.offers, board.held) == (1, 1)
    assert board.lines == ["0", "0", "", "2", "0", f"{places[0].seq},{places[1].seq}"]


async def test_who_is_away_is_counted_apart(world: World) -> None:
    await world.crowd(3)
    await world.pass_ms(3000 + LATE_MS, polling=["u00001"])
    assert (await world.board()).lines[:2] == ["1", "2"]


async def test_at_most_65_marks_spread_from_the_first_to_the_last(world: World) -> None:
    await world.crowd(1000)
    [length, _, marks] = (await world.board()).lines
    places = [int(place) for place in marks.split(",")]
    first = min(places)
    assert (length, len(places), max(places) - first) == ("1000", 65, 999)
    steps = {later - sooner for sooner, later in itertools.pairwise(places)}
    assert steps <= {15, 16}


async def test_a_short_line_is_marked_one_by_one(world: World) -> None:
    places = [await world.waits(f"u{number}") for number in range(4)]
    assert (await world.board()).lines[2] == ",".join(str(place.seq) for place in places)
