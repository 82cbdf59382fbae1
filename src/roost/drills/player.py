"""One player on a launch evening: enters, waits, may vanish for a while, gets in, may crash, leaves."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
from aiohttp import ClientError, ClientSession

from roost.api.errors import ErrorReply
from roost.api.queue import RECEIPT_HEADER, EntryInput, PlaceReply
from roost.core.backoff import Backoff
from roost.drills.ledger import Book

TIMEOUTS = (ClientError, TimeoutError, OSError)
OUTSIDE_S = 2.0
"""How often somebody asks who was thrown out of a server and wants back in."""


class Refused(Exception):
    """The door says no; the text says why."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(f"{status} {code}")
        self.status = status


class Visit(Protocol):
    """Being inside a server."""

    async def stay(self, seconds: float) -> bool:
        """Whether the server kept them for so long."""

    async def leave(self) -> None: ...

    async def crash(self) -> None: ...


class Doors(Protocol):
    """The way into a server, by its URL and a ticket."""

    async def go_in(self, url: str, ticket: str) -> Visit: ...


@dataclass(frozen=True, slots=True)
class Habits:
    """How people behave on this evening; shares are of all people."""

    arrive_s: float = 20.0
    session_s: float = 3.0
    blip_share: float = 0.1
    blip_s: float = 12.0
    no_show_share: float = 0.02
    crash_share: float = 0.1
    reuse_share: float = 0.05
    patience_s: float = 600.0


class Player:
    def __init__(
        self,
        user: str,
        session: ClientSession,
        doors: Doors,
        book: Book,
        habits: Habits,
        rng: random.Random,
        *,
        world: str,
        signature: str = "",
    ) -> None:
        self.user = user
        self._session = session
        self._doors = doors
        self._book = book
        self._habits = habits
        self._rng = rng
        self._world = world
        self._signature = signature
        self._receipt = ""
        self._shown = 0
        self._blips = rng.random() < habits.blip_share
        self._misses = rng.random() < habits.no_show_share
        self._crashes = rng.random() < habits.crash_share
        self._reuses = rng.random() < habits.reuse_share

    async def run(self) -> None:
        """The whole evening; whatever fails on the way is tried again, as a client would."""
        await asyncio.sleep(self._rng.uniform(0, self._habits.arrive_s) ** 1.5 / self._habits.arrive_s**0.5)
        entered = time.monotonic()
        place = await self._wait_for_ticket()
        self._book.entry_to_ticket_s.append(time.monotonic() - entered)
        while not await self._is_done_after(await self._get_in(place)):
            place = await self._wait_for_ticket()
        self._book.counts["finished"] += 1

    async def _is_done_after(self, visit: Visit) -> bool:
        """One time inside; False if it ended before they wanted: by their own crash, or the server's."""
        crashes, self._crashes = self._crashes, False
        stayed = await visit.stay(0.5 if crashes else self._rng.expovariate(1 / self._habits.session_s))
        self._book.out(self.user)
        if not stayed:
            self._book.counts["thrown out"] += 1
        if crashes and stayed:
            self._book.counts["crashes"] += 1
            await visit.crash()
            return False
        await visit.leave()
        return stayed

    # -- the line

    async def _wait_for_ticket(self) -> PlaceReply:
        """Poll as told until a ticket comes, with whatever this person does in between."""
        place = await self._enter()
        while place.status != "PROMOTED" or self._misses:
            if place.status == "NONE":
                self._book.counts["entered again"] += 1
                place = await self._enter()
                continue
            if place.status == "PROMOTED":
                place = await self._let_it_expire(place)
                continue
            if place.status == "ENTERED":  # the room does not know yet that they are out
                await asyncio.sleep(min(OUTSIDE_S, place.next_poll_ms / 1000))
                place = await self._enter()
                continue
            self._look(place)
            if self._blips:
                self._blips = False
                self._book.counts["blips"] += 1
                await asyncio.sleep(self._habits.blip_s)
            await asyncio.sleep(place.next_poll_ms / 1000)
            place = await self._status()
        self._shown = 0
        return place

    def _look(self, place: PlaceReply) -> None:
        if place.status == "WAITING" and place.rank:
            if self._shown and place.rank > self._shown:
                self._book.broken("G12", f"{self.user} saw rank {self._shown}, then {place.rank}")
            self._shown = place.rank

    async def _let_it_expire(self, place: PlaceReply) -> PlaceReply:
        """Ask, but do not come: the place must be at the front again after the ticket's end."""
        self._misses = False
        self._book.counts["no-shows"] += 1
        first = place.ticket_id
        self._shown = 0
        while place.status == "PROMOTED" and place.ticket_id == first:
            await asyncio.sleep(min(2.0, place.expires_in_ms / 1000 + 0.1))
            place = await self._status()
        if place.status == "WAITING" and place.rank > self._book.users // 4 + 50:
            self._book.broken("G12", f"{self.user} let a ticket expire and stands at {place.rank}")
        return place

    async def _enter(self) -> PlaceReply:
        given = EntryInput(self.user, self.user, self._signature, world=self._world)
        place = await self._ask("POST", "/api/queue/entry", data=msgspec.json.encode(given))
        self._book.counts["entries"] += 1
        return place

    async def _status(self) -> PlaceReply:
        query = {"userId": self.user, "world": self._world}
        self._book.counts["polls"] += 1
        return await self._ask("GET", "/api/queue/status", params=query)

    async def _ask(self, method: str, path: str, **more: Any) -> PlaceReply:
        """The answer, however often it takes: a gateway or the store may be away, or we asked too often."""
        backoff = Backoff(0.2, 3.0)
        deadline = time.monotonic() + self._habits.patience_s
        while True:
            pause = backoff.next()
            try:
                headers = {RECEIPT_HEADER: self._receipt} if self._receipt else {}
                async with self._session.request(method, path, headers=headers, **more) as response:
                    raw = await response.read()
                    if response.status == 200:
                        place = msgspec.json.decode(raw, type=PlaceReply)
                        self._receipt = place.receipt or self._receipt
                        return place
                    pause = max(pause, float(response.headers.get("Retry-After", "0")))
                    if response.status not in (429, 500, 502, 503, 504):
                        raise Refused(response.status, _code(raw))
                    self._book.counts[f"answered {response.status}"] += 1
            except TIMEOUTS:
                self._book.counts["unanswered"] += 1
            if time.monotonic() > deadline:
                raise Refused(0, "nobody answers")
            await asyncio.sleep(pause)

    # -- the door

    async def _get_in(self, place: PlaceReply) -> Visit:
        """Use the ticket; where the door is shut or gone, ask again where to go and with which ticket."""
        while True:
            ticket, url, since = place.ticket_id, place.server_url, time.monotonic()
            try:
                visit = await self._doors.go_in(url, ticket)
            except (Refused, *TIMEOUTS) as error:
                status = error.status if isinstance(error, Refused) else 0
                self._book.counts[f"door {status or 'shut'}"] += 1
                await asyncio.sleep(self._rng.uniform(0.2, 1.0))
                self._shown = 0
                place = await self._wait_for_ticket()
                continue
            self._book.ticket_to_consumed_s.append(time.monotonic() - since)
            self._book.let_in(self.user, ticket, url)
            if self._reuses:
                self._reuses = False
                await self._use_again(url, ticket)
            return visit

    async def _use_again(self, url: str, ticket: str) -> None:
        try:
            second = await self._doors.go_in(url, ticket)
        except (Refused, *TIMEOUTS):
            self._book.counts["second uses refused"] += 1
            return
        self._book.broken("G11", f"{self.user} used a ticket twice")
        await second.leave()


def _code(raw: bytes) -> str:
    try:
        return msgspec.json.decode(raw, type=ErrorReply).error.code
    except msgspec.DecodeError:
        return "?"
