"""Whom a job moves next, and when a canary is over."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from roost.binding.drain import outward as module
from roost.binding.drain.line import FIRST_WAIT_S, Surveyed
from roost.binding.drain.model import Order, Progress
from roost.binding.drain.movers import Moved
from roost.binding.drain.outward import LOOK_S, Outward
from roost.binding.drain.pace import BURST_S
from roost.binding.drain.standing import Standing
from roost.core.owner import Owner

USERS = [f"u{number:03}" for number in range(40)]
OLD, NEW = Owner("501", "7"), Owner("502", "8")


class Servers:
    """Entity servers that hold `users` at the source."""

    def __init__(self) -> None:
        self.users = list(USERS)
        self.parties: dict[str, str] = {}
        self.surveys = 0
        self.retired = 0

    async def survey(self, at: Standing, type_: str) -> list[Surveyed]:
        self.surveys += 1
        return [Surveyed(user, True, 0, False, "now", self.parties.get(user, "")) for user in self.users]

    async def retire(self, at: Standing, type_: str, quiet_ms: int) -> None:
        self.retired += 1


def standing(owner: Owner, users: int, *, is_closed: bool, capacity: int = 0) -> Standing:
    instance = f"i{owner.server_id}"
    return Standing(owner, instance, "1.0", ("h", 1), not is_closed, is_closed, users, capacity, 0, 0)


def fleet(room: int = 0) -> dict[str, Standing]:
    """`room`: at the only other server; 0: without limit."""
    return {
        "501": standing(OLD, len(USERS), is_closed=True),
        "502": standing(NEW, 100 if room else 0, is_closed=False, capacity=room and 100 + room),
    }


def outward(
    servers: Servers,
    canary: int = 0,
    *,
    standings: dict[str, Standing] | None = None,
    rate: int = 1000,
    force: bool = False,
) -> Outward:
    standings = standings or fleet()

    async def binders(*_: Any, **__: Any) -> list[str]:
        return []

    view: Any = SimpleNamespace(
        bindings=SimpleNamespace(partitions=[None], binders=binders),
        standings=standings,
        busy={"501"},
        alive=lambda owner: standings[owner.server_id],
    )
    order = Order(
        id="job",
        kind="drain",
        type="entity",
        sources=["501"],
        lives={"501": OLD.life},
        to=[],
        version="",
        quota={},
        by="",
        rate=rate,
        canary=canary,
        max_block_ms=500,
        deadline_s=60,
    )
    progress = Progress(started_at=1.0 if force else time.time())
    return Outward(order, progress, view, servers, 0.0)  # type: ignore[arg-type]


async def test_a_canary_is_not_over_while_a_move_of_it_was_never_sent() -> None:
    servers = Servers()
    out = outward(servers, canary=20)
    shifts = await out.next(1.0)
    assert 0 < len(shifts) < len(USERS)

    out.unsent(shifts[0], shifts[0].users[0], 1.0, tried=True)  # as when an operator paused meanwhile
    for shift in shifts[1:]:
        out.heard(shift, Moved(shift.users[0], "moved"), 1.0)
        servers.users.remove(shift.users[0])

    assert not out.canary_is_over()
    [again] = await out.next(1.0 + FIRST_WAIT_S + LOOK_S)
    assert again.users == shifts[0].users
    assert not out.canary_is_over()
    out.heard(again, Moved(again.users[0], "returned"), 3.0)
    assert out.canary_is_over()


async def test_a_canary_does_not_wait_for_whoever_left() -> None:
    servers = Servers()
    out = outward(servers, canary=20)
    for shift in await out.next(1.0):
        out.unsent(shift, shift.users[0], 1.0, tried=True)
        servers.users.remove(shift.users[0])

    assert not out.canary_is_over()
    await out.next(1.0 + LOOK_S)
    assert out.canary_is_over()


async def test_a_line_of_others_is_looked_at_once_a_second_while_the_canary_waits() -> None:
    servers = Servers()
    out = outward(servers, canary=20)
    for shift in await out.next(1.0):
        out.unsent(shift, shift.users[0], 1.0, tried=True)

    for step in range(10):
        await out.next(1.0 + step / 100)

    assert servers.surveys == 2


PARTY = tuple(USERS[:5])


def with_a_party(*more: str) -> Servers:
    """A party of five at the head of the line, and others."""
    servers = Servers()
    servers.users = [*PARTY, *more]
    servers.parties = dict.fromkeys(PARTY, "raid")
    return servers


async def test_a_party_that_fits_nowhere_stops_nobody_behind_it() -> None:
    out = outward(
        with_a_party("x", "y"), standings=fleet(4), rate=10
    )  # a token a step: the party would take each

    found = [shift.users for step in range(1, 5) for shift in await out.next(step / 10)]

    assert found == [("x",), ("y",)]
    assert out.waits_for


async def test_a_party_that_did_not_fit_is_the_next_where_there_is_room() -> None:
    standings = fleet(4)
    out = outward(with_a_party("x"), standings=standings)
    assert [shift.users for shift in await out.next(1.0)] == [("x",)]

    standings |= fleet()

    assert [shift.users for shift in await out.next(1.1)] == [PARTY]


async def test_by_force_a_party_that_fits_nowhere_goes_one_by_one() -> None:
    out = outward(with_a_party(), standings=fleet(3), force=True)

    assert [shift.users for shift in await out.next(1.0)] == [(user,) for user in PARTY[:3]]


async def test_by_force_a_party_stays_together_that_only_waits_for_moves_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "AT_TARGET", 4)
    out = outward(with_a_party(), force=True)
    assert await out.next(1.0) == []

    monkeypatch.setattr(module, "AT_TARGET", 128)

    assert [shift.users for shift in await out.next(1.1)] == [PARTY]


async def test_a_source_whose_people_find_no_room_is_looked_at_once_a_second() -> None:
    servers = with_a_party()
    out = outward(servers, standings=fleet(4))
    for step in range(21):
        assert await out.next(1.0 + step / 10) == []
    assert servers.surveys == 3

    servers.parties = {}  # they have left it

    assert len(await out.next(1.0 + 3 * LOOK_S)) == 4


async def test_a_source_that_emptied_by_itself_while_there_was_no_room_is_empty() -> None:
    servers = with_a_party()
    out = outward(servers, standings=fleet(4))
    await out.next(1.0)
    servers.users = []

    await out.next(1.0 + LOOK_S)
    out.saved()
    await out.next(1.0 + 2 * LOOK_S)

    assert out.is_over
    assert servers.retired == 1


async def test_a_server_is_told_to_leave_once_it_is_saved_that_it_is_empty() -> None:
    servers = Servers()
    servers.users = []
    out = outward(servers)
    for step in range(5):
        await out.next(1.0 + step)
    assert servers.retired == 0
    assert not out.is_over

    out.saved()
    await out.next(6.0)

    assert servers.retired == 1
    assert out.is_over


@pytest.mark.parametrize(("size", "rate"), [(1, 100), (4, 100), (64, 100), (64, 20)])
async def test_parties_keep_the_pace_of_users(size: int, rate: int) -> None:
    servers, seconds = Servers(), 10
    servers.users = [f"u{number:04}" for number in range(4 * rate * seconds)]
    servers.parties = {user: f"p{number // size}" for number, user in enumerate(servers.users)}
    out = outward(servers, rate=rate)

    users = 0
    for step in range(seconds * 20):
        for shift in await out.next(step / 20):
            users += len(shift.users)
            for user in shift.users:
                out.heard(shift, Moved(user, "moved"), step / 20)

    assert abs(users - rate * seconds) <= size + rate * BURST_S
