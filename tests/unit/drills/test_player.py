"""A player of the drill, before doors and a gateway that misbehave: what is wrong must end up in the book."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast
from unittest.mock import patch

import msgspec
import pytest
from aiohttp import ClientSession

from roost.api.queue import RECEIPT_HEADER, PlaceReply
from roost.drills import player as module
from roost.drills.ledger import Book
from roost.drills.player import Habits, Player, Refused, Visit

TICKET = PlaceReply("PROMOTED", ticket_id="t1", server_url="ws://s1", next_poll_ms=1, expires_in_ms=1)
QUIET = Habits(arrive_s=0.001, session_s=0.001, blip_share=0, no_show_share=0, crash_share=0, reuse_share=0)


class Answer:
    def __init__(self, place: PlaceReply | int) -> None:
        self.headers: dict[str, str] = {}
        self.status = place if isinstance(place, int) else 200
        self._body = b"{}" if isinstance(place, int) else msgspec.json.encode(place)

    async def read(self) -> bytes:
        return self._body


class Gateway:
    """Gives its answers in turn, the last one for ever; a number is a status."""

    def __init__(self, *answers: PlaceReply | int) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[str, str]] = []
        """Method and receipt of each request."""

    @asynccontextmanager
    async def request(self, method: str, path: str, headers: dict[str, str], **_: Any) -> Any:
        self.asked.append((method, headers.get(RECEIPT_HEADER, "")))
        yield Answer(self._answers.pop(0) if len(self._answers) > 1 else self._answers[0])


class Inside:
    def __init__(self, stays: bool) -> None:
        self._stays = stays

    async def stay(self, seconds: float) -> bool:
        await asyncio.sleep(0)
        return self._stays

    async def leave(self) -> None: ...

    async def crash(self) -> None: ...


class Doors:
    """Lets everybody in, whatever they show; but the first few are refused, or thrown out."""

    def __init__(self, throws_out: int = 0, refuses: int = 0) -> None:
        self.throws_out, self.refuses = throws_out, refuses
        self.visits = 0

    async def go_in(self, url: str, ticket: str) -> Visit:
        if self.refuses:
            self.refuses -= 1
            raise Refused(401, "TICKET_REFUSED")
        self.visits += 1
        return Inside(self.visits > self.throws_out)


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    async def at_once(_: float) -> None:
        return None

    with patch.object(module.asyncio, "sleep", at_once):  # type: ignore[attr-defined]
        yield


async def play(gateway: Gateway, doors: Doors, habits: Habits = QUIET) -> Book:
    book = Book(1)
    session = cast(ClientSession, gateway)
    await Player("ann", session, doors, book, habits, random.Random(1), world="main").run()
    return book


def broken(book: Book) -> list[str]:
    return [one.guarantee for one in book.verdicts(0) if not one.held]


async def test_in_and_out() -> None:
    book = await play(Gateway(TICKET), Doors())
    assert broken(book) == []
    assert (book.counts["finished"], book.inside) == (1, {})


async def test_a_door_that_lets_in_twice_by_one_ticket_breaks_g11() -> None:
    book = await play(Gateway(TICKET), Doors(), replace(QUIET, reuse_share=1))
    assert broken(book) == ["G11"]


async def test_a_ticket_that_is_given_again_after_its_use_breaks_g11() -> None:
    book = await play(Gateway(TICKET), Doors(throws_out=1))
    assert broken(book) == ["G11"]


async def test_who_is_thrown_out_comes_back_by_a_new_ticket() -> None:
    entered, again = (
        PlaceReply("ENTERED", next_poll_ms=30_000),
        msgspec.structs.replace(TICKET, ticket_id="t2"),
    )
    doors = Doors(throws_out=1)
    book = await play(Gateway(TICKET, entered, entered, again), doors)
    assert broken(book) == []
    assert (doors.visits, book.counts["thrown out"], book.counts["finished"]) == (2, 1, 1)


async def test_a_ticket_that_the_store_forgot_is_asked_for_again_with_the_receipt() -> None:
    first = msgspec.structs.replace(TICKET, receipt="r1")
    again = msgspec.structs.replace(TICKET, ticket_id="t2")
    gateway = Gateway(first, 503, PlaceReply("NONE"), again)
    book = await play(gateway, Doors(refuses=1))
    assert broken(book) == []
    assert gateway.asked == [("POST", ""), ("POST", "r1"), ("POST", "r1"), ("POST", "r1")]
    assert book.counts["door 401"] == book.counts["answered 503"] == 1


async def test_a_rank_that_rises_breaks_g12() -> None:
    places = [PlaceReply("WAITING", rank=rank, next_poll_ms=1) for rank in (5, 3, 4)]
    book = await play(Gateway(*places, TICKET), Doors())
    assert broken(book) == ["G12"]
    assert book.faults["G12"] == ["ann saw rank 3, then 4"]
