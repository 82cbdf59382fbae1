"""The desk: what the store or the board says, as the reply that people read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from roost.api.queue import EntryInput
from roost.core import errors as e
from roost.core.events import Entry
from roost.core.passes import BASE, MOVED_BACK, EntryPass, Receipt
from roost.waitingroom.desk import AWAY, NEAR, NO_LINE, SMALL_LINE
from roost.waitingroom.rules import jittered_ms
from roost.waitingroom.scripts import Closed, Full, Held, Inside, Limited, NoPlace, Offered, Waiting
from tests.unit.waitingroom.desk import BORN, Place, Room, board_of, long_line

FAR = 40_000


def waiting(rank: int = 3, *, seq: int = BORN + 2, opens_ms: int = 0, was_away: int = 0) -> Waiting:
    return Waiting(seq, rank, 1, was_away, 2000, 1000, 1000, "", opens_ms)


def place(
    *answers: Waiting | Offered | Inside | Held | Limited | NoPlace | Exception, **numbers: str
) -> Place:
    return Place(Room(board_of(long_line(), **numbers), *answers))


async def test_who_is_far_back_is_answered_without_the_store_and_marked_as_there() -> None:
    here = place()
    told = await here.status(here.receipt(FAR))
    assert here.room.asked == []
    assert here.limited == ["ann"]
    assert told.status == "WAITING"
    assert FAR + 1 <= told.rank <= FAR + 1 + 65_000 // 64
    assert (told.ahead, told.away_ahead, told.was_away) == (told.rank - 1, 7, False)
    assert told.eta_seconds is not None
    given = here.keyring.passes.receipt(told.receipt, "main", "ann")
    assert (given.seq, given.born, given.line, given.shown) == (BORN + FAR, BORN, "", told.rank)
    await here.presence.flush()
    assert here.room.there == {"ann"}


async def test_an_answer_without_the_store_makes_no_receipt_younger_than_the_store_confirmed() -> None:
    """Else somebody who was kicked, and is answered from the board, would keep a receipt young for ever."""
    here = place()
    before = here.receipt(FAR)
    told = await here.status(before)
    assert here.keyring.passes.receipt(told.receipt, "main", "ann").at == before.at

    await here.presence.flush()
    told = await here.status(before)
    assert here.keyring.passes.receipt(told.receipt, "main", "ann").at > before.at


@pytest.mark.parametrize(
    "receipt",
    [
        pytest.param(lambda here: None, id="no receipt, a signature alone"),
        pytest.param(lambda here: here.receipt(NEAR - 1100), id="near the front"),
        pytest.param(lambda here: here.receipt(5), id="before the second mark"),
        pytest.param(lambda here: here.receipt(FAR, born=BORN - 1), id="of a world that was wiped"),
        pytest.param(lambda here: here.receipt(FAR, line=NO_LINE), id="of a ticket"),
    ],
)
async def test_about_anybody_else_the_store_is_asked(receipt: Callable[[Place], Receipt | None]) -> None:
    here = place(waiting())
    told = await here.status(receipt(here))
    assert here.room.asked == ["ann"]
    assert here.limited == []
    assert (told.status, told.rank) == ("WAITING", 3)


async def test_in_a_small_line_everybody_is_near() -> None:
    here = Place(Room(board_of(long_line(SMALL_LINE)), waiting()))
    await here.status(here.receipt(SMALL_LINE - 1))
    assert here.room.asked == ["ann"]


async def test_whom_the_store_does_not_know_is_asked_for_until_it_does() -> None:
    here = place(waiting(seq=BORN + FAR))
    here.presence.unknown_to_store.add(("ann", BORN + FAR))
    await here.status(here.receipt(FAR))
    assert here.room.asked == ["ann"]
    await here.status(here.receipt(FAR))
    assert here.room.asked == ["ann"], "now they are answered from the board again"


async def test_a_receipt_of_a_place_that_is_gone_is_answered_by_the_store_and_never_signed_again() -> None:
    """Kicked, and entered again at the end: the old receipt shall not stand ahead of all after a wipe."""
    here = place(waiting(60_000, seq=BORN + 60_000))
    here.room.place_of["ann"] = BORN + 60_000
    old = here.receipt(FAR)
    told = await here.status(old)
    assert here.keyring.passes.receipt(told.receipt, "main", "ann").at == old.at
    await here.presence.flush()
    for asked in (1, 2):
        told = await here.status(old)
        assert here.room.asked == ["ann"] * asked
        assert here.keyring.passes.receipt(told.receipt, "main", "ann").seq == BORN + 60_000
        await here.presence.flush()
    await here.status(here.receipt(60_000))
    assert len(here.room.asked) == 2, "the place that they have is answered from the board"


@pytest.mark.parametrize(("shown", "rank"), [(2, 2), (9, 3), (0, 3)])
async def test_no_rank_is_larger_than_the_last_one(shown: int, rank: int) -> None:
    here = place(waiting(3))
    told = await here.status(here.receipt(2, shown=shown))
    assert told.rank == rank


async def test_another_place_or_another_world_is_a_new_start_for_the_rank() -> None:
    for receipt in (Place.receipt(place(), 1, shown=1), Place.receipt(place(), 2, shown=1, born=BORN - 1)):
        assert (await place(waiting(3)).status(receipt)).rank == 3


@pytest.mark.parametrize("seq", [BORN - 5, BORN - 5 - MOVED_BACK])
async def test_a_place_that_a_receipt_brought_back_after_a_wipe_has_no_larger_rank(seq: int) -> None:
    """Moved before everybody new, by this wipe or by one before."""
    former = Receipt("main", "ann", BORN - 7 if seq < BORN - 5 else BORN - 3, BORN - 5, "", shown=2)
    assert (await place(waiting(3, seq=seq)).status(former)).rank == 2


async def test_who_comes_back_right_after_a_wipe_gets_a_receipt_of_the_new_world() -> None:
    """The board may be a second old: then it is still the one of the world before."""
    here = place(waiting(3, seq=BORN + 2 - MOVED_BACK))
    await here.room.board.get()
    here.room.on_paper = replace(here.room.on_paper, born=BORN + 9)
    entry = EntryPass("main", "ann", BASE, 0.0)
    told = await here.desk.enter(EntryInput("ann"), entry, here.receipt(2, shown=2))
    given = here.keyring.passes.receipt(told.receipt, "main", "ann")
    assert (given.born, given.seq, given.shown) == (BORN + 9, BORN + 2 - MOVED_BACK, 2)


async def test_before_the_opening_no_rank_is_promised_and_no_time_told() -> None:
    here = place(waiting(500, opens_ms=9000))
    told = await here.status(here.receipt(2, shown=1))
    assert (told.rank, told.opens_in_ms, told.eta_seconds) == (500, 9000, None)
    assert here.keyring.passes.receipt(told.receipt, "main", "ann").shown == 0


async def test_while_the_line_is_held_no_time_is_told() -> None:
    assert (await place(waiting(), mode="hold").status(None)).eta_seconds is None
    assert (await place(waiting()).status(None)).eta_seconds is not None


async def test_a_person_asks_up_to_15_percent_sooner_always_by_the_same() -> None:
    told = await place(waiting()).status(None)
    assert told.next_poll_ms == jittered_ms("ann", 2000)
    assert {jittered_ms(f"u{n}", 10_000) for n in range(1000)} <= set(range(8500, 10_001))


async def test_a_ticket_is_signed_and_its_receipt_stands_in_no_line() -> None:
    here = place(Offered(BORN + 2, "tid-1", 59_000))
    told = await here.status(None)
    assert (told.status, told.expires_in_ms) == ("PROMOTED", 59_000)
    assert here.keyring.passes.ticket(told.ticket_id, "main").tid == "tid-1"
    assert here.keyring.passes.receipt(told.receipt, "main", "ann").line == NO_LINE


async def test_the_other_answers() -> None:
    assert (await place(Inside("501")).status(None)).status == "ENTERED"
    held = await place(Held(4000)).status(None)
    assert (held.status, held.expires_in_ms) == ("ENTERED", 4000)
    assert (await place(NoPlace("left")).status(None)).status == "NONE"
    with pytest.raises(e.TooManyRequests) as caught:
        await place(Limited(1500)).status(None)
    assert caught.value.retry_after_s == 1.5


async def test_a_closed_world_takes_nobody() -> None:
    given, entry = EntryInput("ann"), EntryPass("main", "ann", BASE, 0.0)
    here = place(waiting())
    assert (await here.desk.enter(given, entry, None)).rank == 3
    for answer in (Closed("closing"), Full(7)):
        here = Place(Room(board_of(long_line()), answer))
        with pytest.raises(e.WorldClosed):
            await here.desk.enter(given, entry, None)


async def test_who_is_in_the_game_cannot_leave_the_line() -> None:
    with pytest.raises(e.InvalidInput):
        await place(Inside("501")).desk.leave("ann", None)
    await place(NoPlace("")).desk.leave("ann", None)


async def test_changes_go_on_while_the_store_is_away_and_end_with_the_place() -> None:
    here = place(waiting(), e.StoreUnavailable(), Limited(1), NoPlace("left"))
    told = []
    async with asyncio.timeout(10):
        async for reply in here.desk.changes("ann", None, here.limited.append):
            told.append(reply)
            here.push.hear(Entry(1, 0, 0, {"event": "promoted", "user": "ann"}))
    assert [reply.status for reply in told] == ["WAITING", "WAITING", "NONE"]
    assert told[1].message == AWAY
    assert here.push.open == 0
