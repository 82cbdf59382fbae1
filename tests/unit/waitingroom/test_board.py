"""The board: a place told without asking for it, and one read for all who ask."""

from __future__ import annotations

import asyncio
import random
from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.errors import StoreUnavailable
from roost.waitingroom.board import BoardCache
from roost.waitingroom.model import Line, WorldBoard
from roost.waitingroom.scripts import Board

BORN = 1_700_000_000_000_000


def line_with(places: list[int]) -> Line:
    """As `board.lua` makes it: marks evenly spread from the first to the last."""
    parts = min(64, len(places) - 1)
    ranks = [(len(places) - 1) * part // max(1, parts) for part in range(parts + 1)]
    return Line(len(places), 0, tuple(places[rank] for rank in ranks), 0, 0)


@st.composite
def lines(draw: st.DrawFn) -> list[int]:
    """Places in their order, with gaps where people left."""
    length = draw(st.integers(0, 3000))
    step = draw(st.integers(1, 50))
    rng = random.Random(draw(st.integers()))
    return sorted(rng.sample(range(BORN, BORN + length * step + 1), length))


@given(lines())
def test_a_told_rank_is_at_most_a_64th_of_the_line_too_far_back(places: list[int]) -> None:
    line = line_with(places)
    for true, place in enumerate(places, start=1):
        assert 0 <= line.rank_of(place) - true <= (len(places) - 1) / 64


@given(lines())
def test_in_a_line_of_up_to_65_it_is_exact(places: list[int]) -> None:
    line = line_with(places[:65])
    assert [line.rank_of(place) for place in places[:65]] == list(range(1, len(places[:65]) + 1))


@given(lines(), st.integers(BORN - 10, BORN + 200_000), st.integers(BORN - 10, BORN + 200_000))
def test_who_came_later_is_never_told_to_be_further_ahead(places: list[int], one: int, other: int) -> None:
    line = line_with(places)
    first, second = sorted((one, other))
    assert 1 <= line.rank_of(first) <= line.rank_of(second) <= max(1, len(places))


@given(lines(), st.integers(BORN - 10, BORN + 200_000))
def test_also_a_place_that_is_not_in_the_line_is_told_where_it_would_stand(
    places: list[int], place: int
) -> None:
    line = line_with(places)
    true = min(max(1, len(places)), bisect_left(places, place) + 1)
    assert 0 <= line.rank_of(place) - true <= len(places) / 64


def board(**numbers: str) -> WorldBoard:
    flat = [part for pair in numbers.items() for part in pair]
    rows = {
        "501": "7\t10\t4\t3\t5\t9\t0\t1\tws://a",
        "502": "8\t5\t5\t0\t0\t1\t1\t1\tws://b",
        "503": "9\t50\t2\t0\t0\t1\t0\t0\tws://closed",
    }
    servers = [part for pair in rows.items() for part in pair]
    found = Board(flat, servers, [], 2, 1, ["1", "2", "9", "3", "4", "5,6,7"])
    return WorldBoard.read(found, [":vip", ""])


def test_the_numbers_of_a_board_add_up() -> None:
    seen = board(born=str(BORN), issued="12", **{"fast:vip": "500", "fast": "1500", "slow": "900"})
    assert (seen.born, seen.waiting, seen.away) == (BORN, 4, 6)
    assert (seen.capacity, seen.inside, seen.free) == (17, 6 + 5 + 2, 4 - 2 - 1)
    assert (seen.lines[":vip"].fast, seen.lines[""].fast, seen.lines[""].slow) == (500, 1500, 900)
    assert seen.lines[""].marks == (5, 6, 7)
    assert [row.doubt for row in seen.servers] == [False, True, False]
    assert (seen.number("issued"), seen.number("overadmit"), seen.mode, seen.message) == (12, 0, "auto", "")


def test_a_limit_lowers_the_capacity_and_never_raises_it() -> None:
    assert board(limit="3").free == 3 - 16
    assert board(limit="99").capacity == 17
    assert board().limit is None


def test_a_ticket_holder_is_sent_where_there_is_room() -> None:
    seen = board()
    assert {seen.server_url(random.Random(n)) for n in range(50)} == {"ws://a"}
    empty = WorldBoard.read(Board([], [], [], 0, 0, ["0", "0", ""]), [""])
    assert (empty.server_url(), empty.free, empty.lines[""].rank_of(5)) == ("", 0, 1)


async def test_however_many_ask_one_reads() -> None:
    reads = 0

    async def read() -> WorldBoard:
        nonlocal reads
        reads += 1
        await asyncio.sleep(0)
        return board(issued=str(reads))

    cache = BoardCache(read, fresh_s=60)
    found = await asyncio.gather(*(cache.get() for _ in range(100)))
    assert {seen.number("issued") for seen in found} == {1}
    cache.forget()
    assert (await cache.get()).number("issued") == 2


async def test_a_board_that_cannot_be_read_is_an_error_and_the_last_one_is_kept() -> None:
    away = False

    async def read() -> WorldBoard:
        if away:
            raise StoreUnavailable
        return board()

    cache = BoardCache(read, fresh_s=0.0)
    assert cache.kept(60) is None
    seen = await cache.get()
    away = True
    with pytest.raises(StoreUnavailable):
        await cache.get()
    assert cache.kept(60) is seen
    assert cache.kept(-1) is None
