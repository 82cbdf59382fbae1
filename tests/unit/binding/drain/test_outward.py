"""Whom a job moves next, and when a canary is over."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from roost.binding.drain.line import FIRST_WAIT_S, Surveyed
from roost.binding.drain.model import Order, Progress
from roost.binding.drain.movers import Moved
from roost.binding.drain.outward import LOOK_S, Outward
from roost.binding.drain.standing import Standing
from roost.core.owner import Owner

USERS = [f"u{number:03}" for number in range(40)]
OLD, NEW = Owner("501", "7"), Owner("502", "8")


class Servers:
    """Entity servers that hold `users` at the source."""

    def __init__(self) -> None:
        self.users = list(USERS)
        self.surveys = 0

    async def survey(self, at: Standing, type_: str) -> list[Surveyed]:
        self.surveys += 1
        return [Surveyed(user, True, 0, False, "now") for user in self.users]


def standing(owner: Owner, users: int, *, is_closed: bool) -> Standing:
    return Standing(owner, f"i{owner.server_id}", "1.0", ("h", 1), not is_closed, is_closed, users, 0, 0, 0)


def outward(servers: Servers, canary: int) -> Outward:
    standings = {"501": standing(OLD, len(USERS), is_closed=True), "502": standing(NEW, 0, is_closed=False)}

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
        rate=1000,
        canary=canary,
        max_block_ms=500,
        deadline_s=60,
    )
    return Outward(order, Progress(), view, servers, 0.0)  # type: ignore[arg-type]


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
