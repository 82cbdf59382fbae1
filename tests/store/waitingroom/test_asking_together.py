"""All who ask a gateway in one turn of its loop are one call of the store, and each gets their own answer."""

from __future__ import annotations

import asyncio

import pytest

from roost.core.errors import StoreUnavailable
from roost.store.store import Store
from roost.testing import RunningServer
from roost.waitingroom.rules import Policy
from roost.waitingroom.scripts import Found, NoPlace, Offered, Waiting, found_of
from roost.waitingroom.service import STATUS_BATCH_LIMIT, WaitingRoom
from tests.store.replies import replies
from tests.store.waitingroom.world import World


@pytest.fixture
def room(store: Store) -> WaitingRoom:
    return WaitingRoom(store, "main", Policy(period_ms=0))


async def test_g17_each_gets_their_own_answer_and_no_other_ticket(world: World, room: WaitingRoom) -> None:
    await world.report(cap=1)
    ticket = await world.gets_ticket("ann")
    users = await world.crowd(250)
    asked = ["nobody", *users[:120], "ann", *users[120:]]
    found = dict(zip(asked, await asyncio.gather(*map(room.status, asked)), strict=True))
    assert found.pop("nobody") == NoPlace("")
    mine = found.pop("ann")
    assert isinstance(mine, Offered)
    assert mine.tid == ticket.tid
    ranks = [place.rank for place in found.values() if isinstance(place, Waiting)]
    assert ranks == list(range(1, 251)), "in the order in which they came"


async def test_one_turn_is_one_call_and_a_large_one_a_few(world: World, room: WaitingRoom) -> None:
    users = await world.crowd(2 * STATUS_BATCH_LIMIT + 1)
    await asyncio.gather(*map(room.status, users[:50]))
    assert replies(world.store, "STATUSES") == 1
    await asyncio.gather(*map(room.status, users))
    assert replies(world.store, "STATUSES") == 4


async def test_who_hangs_up_takes_nobody_along(world: World, room: WaitingRoom) -> None:
    await world.crowd(3)
    first, second = room.status("u00000"), room.status("u00001")
    first.cancel()
    assert isinstance(await second, Waiting)


async def test_a_store_that_is_away_is_told_to_everybody_who_asked(
    world: World, room: WaitingRoom, server: RunningServer
) -> None:
    server.kill()
    try:
        answers = await asyncio.gather(room.status("ann"), room.status("bob"), return_exceptions=True)
        assert [type(answer) for answer in answers] == [StoreUnavailable, StoreUnavailable]
    finally:
        server.start()


async def test_an_answer_that_cannot_be_read_fails_that_one_caller(
    world: World, room: WaitingRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.crowd(3)

    def read(packed: str) -> Found:
        found = found_of(packed)
        if isinstance(found, Waiting) and found.rank == 2:
            raise ValueError("2.5e+14 is no int")
        return found

    monkeypatch.setattr("roost.waitingroom.service.found_of", read)
    first, second, third = await asyncio.gather(
        *map(room.status, ("u00000", "u00001", "u00002")), return_exceptions=True
    )
    assert isinstance(second, ValueError)
    assert isinstance(first, Waiting)
    assert isinstance(third, Waiting)
