"""A game server's door to a waiting room. The rules of the ledger are in here, so nobody can get them wrong.

async with client.registered(type="game", group="kr-1", server_id="501", capacity=100) as me:
    async with client.door(me, url="wss://game.example/501") as door:
        guest = await door.consume(ticket)      # TicketRefused, ServerFull, AlreadyConnected
        ...
        await door.leave(guest)                 # "dropped" holds their place for a while

A report says how many people are here (n), and up to which consume that is all of them (k): the last number
such that every consume up to it was in the table when n was counted. So a late report makes the room too
careful, never too generous.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from dataclasses import dataclass
from typing import Self

from roost.api.queue import (
    WORLD,
    Asking,
    ConsumeInput,
    ConsumeReply,
    How,
    ReleaseInput,
    ReportInput,
)
from roost.core.backoff import Backoff, jittered
from roost.core.errors import (
    Conflict,
    FencedInstance,
    Forbidden,
    NotAuthenticated,
    OutcomeUnknown,
    QueueRefused,
    RoostError,
    ServerFull,
    ServerNotReported,
    StoreError,
    StoreUnavailable,
    TicketRefused,
    TicketUsed,
)
from roost.core.loops import END, Loops
from roost.core.passes import peek_user
from roost.sdk.heart import Registration
from roost.sdk.ports import Admission

log = logging.getLogger("roost.sdk.door")

REPORT_INTERVAL_S = 5.0
SOON_S = 0.2
"""After a change the next report follows this soon; changes in between ride along."""
ATTEMPTS = 4
TOLD_AT_ONCE = 32
"""Leaves that are on their way to the waiting room at the same time."""


class AlreadyConnected(QueueRefused, Conflict):
    """This person is connected here already."""

    code = "ALREADY_CONNECTED"
    hint = "close the other connection first"


@dataclass(frozen=True, slots=True)
class Guest:
    """Somebody who was let in."""

    user_id: str
    nickname: str
    region: str
    connection: str
    life: str


class Door:
    """Lets people in by their tickets, counts them and reports."""

    def __init__(
        self,
        admission: Admission,
        registration: Registration,
        *,
        world: str = WORLD,
        capacity: int | None = None,
        url: str = "",
        report_interval_s: float = REPORT_INTERVAL_S,
        loops: Loops | None = None,
    ) -> None:
        self._admission = admission
        self._loops = loops or Loops()
        self._me = registration
        self._world = world
        self._url = url
        self._interval_s = report_interval_s
        self.capacity = registration.given.capacity if capacity is None else capacity
        self.server_id = registration.given.server_id or registration.instance_id
        self.guests: dict[str, Guest] = {}
        """By user id."""
        self._life = registration.life
        self._counted = 0
        self._numbers: set[int] = set()
        self._report_number = 0
        self._changed = asyncio.Event()
        self._untold: dict[str, tuple[Guest, How]] = {}
        """Who left, until the waiting room knows it."""
        self._entering: set[str] = set()
        """Connections that were asked for and are in no table yet."""
        self._telling = asyncio.Lock()
        self.reported_at: float | None = None
        """Monotonic time of the last report that was taken."""
        self._settling: set[asyncio.Task[None]] = set()
        self._reporting: asyncio.Task[None] | None = None
        self.drain = False
        """Whether it takes nobody new: its capacity is then what it holds."""

    async def __aenter__(self) -> Self:
        with contextlib.suppress(StoreError):  # the loop goes on trying
            await self.report()
        reporting = self._loops.keep_running("sdk-report", self._report_when_due)
        self._reporting = asyncio.create_task(reporting, name="roost door")
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = [*([self._reporting] if self._reporting else []), *self._settling]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._untold |= {guest.connection: (guest, "dropped") for guest in self.guests.values()}
        self.guests.clear()
        await self.tell_leaves()
        with contextlib.suppress(RoostError):
            self.capacity = 0
            await self.report()

    async def consume(self, ticket: str, connection: str = "") -> Guest:
        """Let the holder of the ticket in; a refusal says what to do next."""
        connection = connection or str(uuid.uuid4())
        life = self._me.life
        self._entering.add(connection)
        try:
            reply = await self._ask(ticket, connection, life)
        except BaseException as error:
            if not isinstance(error, RoostError) or isinstance(error, OutcomeUnknown | StoreUnavailable):
                self._settle_later(ticket, connection, life)
                raise
            self._entering.discard(connection)
            if isinstance(error, TicketUsed) and peek_user(ticket) in self.guests:
                raise AlreadyConnected from None  # the ticket is a good one, so what it says is true
            raise
        self._entering.discard(connection)
        return self._admit(reply, connection, life)

    async def leave(self, guest: Guest, how: How = "clean") -> None:
        """They are gone from here; what becomes of their place depends on how."""
        if self.guests.get(guest.user_id) == guest:
            del self.guests[guest.user_id]
            self._changed.set()
        self._untold[guest.connection] = (guest, how)
        if not self._telling.locked():  # else the call that tells now tells this one too
            await self.tell_leaves()

    async def report(self) -> None:
        """Say how many people are here, and which consumes that counts."""
        self._follow_life()
        self._report_number = max(self._report_number + 1, time.time_ns() // 1000)
        capacity = min(self.capacity, len(self.guests)) if self.drain else self.capacity
        # Who dropped out is counted until the waiting room holds their place inside: else it is given away.
        dropped = sum(how == "dropped" for _, how in self._untold.values())
        users = len(self.guests) + dropped
        given = ReportInput(self._life, self._report_number, capacity, users, self._counted, self._url)
        reply = await self._admission.report(self._world, self.server_id, given)
        self.reported_at = time.monotonic()
        if not self._numbers and not self.guests and not self._entering and not self._settling:
            # Nobody is here or on the way: everybody let in before has left, also by an earlier door.
            self._counted = max(self._counted, reply.consumed)
        for one in reply.asking:
            self._answer(one, given.life)

    @property
    def settling(self) -> int:
        """Consumes of which it is not known yet what became of them."""
        return len(self._settling)

    # -- inside

    def _admit(self, reply: ConsumeReply, connection: str, life: str) -> Guest:
        """In the table first, counted after: a report in between may say too little of k, never of n.

        A store that lost its last writes may let in whom we have, or more than we take.
        """
        guest = Guest(reply.user_id, reply.nickname, reply.region, connection, life)
        there = self.guests.get(guest.user_id)
        if there is not None:
            self._note(reply.number, life)
            if there != guest:
                raise AlreadyConnected
            return there
        if life != self._me.life:
            self._hand_back(guest, reply.number)
            raise TicketRefused("this server was registered again meanwhile", hint="enter again")
        if len(self.guests) >= self.capacity:
            self._hand_back(guest, reply.number)
            raise ServerFull(f"server {self.server_id} takes nobody more")
        self.guests[guest.user_id] = guest
        self._note(reply.number, life)
        return guest

    def _hand_back(self, guest: Guest, number: int) -> None:
        """They were let in and are not here: they stand where they stood."""
        self._untold[guest.connection] = (guest, "failed")
        self._note(number, guest.life)

    def _answer(self, asking: Asking, life: str) -> None:
        """Somebody asks to come in who is inside by what the store knows: or it forgot that they left."""
        connection = asking.connection
        if asking.user_id in self.guests or connection in self._entering or connection in self._untold:
            return
        self._untold[connection] = (Guest(asking.user_id, "", "", connection, life), "dropped")
        self._changed.set()

    def _note(self, number: int, life: str) -> None:
        if life == self._life and number > self._counted:
            self._numbers.add(number)
            while self._counted + 1 in self._numbers:
                self._counted += 1
                self._numbers.discard(self._counted)
        self._changed.set()

    def _follow_life(self) -> None:
        """A new life begins with everybody who is here, and counts its consumes from 0."""
        if self._me.life != self._life:
            self._life, self._counted, self._numbers, self._report_number = self._me.life, 0, set(), 0

    async def _ask(self, ticket: str, connection: str, life: str) -> ConsumeReply:
        """Consume, again and again while the answer gets lost: the same connection gets the same answer."""
        given = ConsumeInput(ticket, self.server_id, life, connection, self._world)
        backoff = Backoff(0.05, 1.0)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self._admission.consume(given)
            except ServerNotReported:
                if attempt == ATTEMPTS:
                    raise
                await self.report()
            except (OutcomeUnknown, StoreUnavailable):
                if attempt == ATTEMPTS:
                    raise
            await asyncio.sleep(backoff.next())
        raise AssertionError("unreachable")

    def _settle_later(self, ticket: str, connection: str, life: str) -> None:
        task = asyncio.create_task(self._settle(ticket, connection, life), name="roost door settles")
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    async def _settle(self, ticket: str, connection: str, life: str) -> None:
        """Find out what became of a consume whose answer was lost; nobody waits for it, so they go back."""
        given = ConsumeInput(ticket, self.server_id, life, connection, self._world)
        loop = self._loops.loop("sdk-settle")

        async def ask_again() -> object:
            await asyncio.sleep(jittered(1.0, 0.5))
            try:
                reply = await self._admission.consume(given)
            except StoreError:
                raise
            except RoostError:
                loop.good()  # a refusal is an answer too: they are not inside
                return END
            loop.good()
            guest = Guest(reply.user_id, reply.nickname, reply.region, connection, life)
            self._hand_back(guest, reply.number)
            return END

        await loop.keep_running(ask_again)
        self._entering.discard(connection)

    async def tell_leaves(self) -> None:
        """Tell of all who left; what cannot be told now is told with the next report."""
        async with self._telling:
            while part := list(self._untold.values())[:TOLD_AT_ONCE]:
                if not all(await asyncio.gather(*(self._tell(guest, how) for guest, how in part))):
                    return

    async def _tell(self, guest: Guest, how: How) -> bool:
        try:
            await self._release(guest, how)
        except (StoreError, NotAuthenticated, Forbidden) as error:
            log.warning("leave not told yet", extra={"userId": guest.user_id, "reason": error.message})
            return False
        except RoostError as error:
            log.error("leave refused", extra={"userId": guest.user_id, "reason": error.message})
        self._untold.pop(guest.connection, None)
        return True

    async def _release(self, guest: Guest, how: How) -> None:
        given = ReleaseInput(guest.user_id, guest.life, guest.connection, how)
        await self._admission.release(self._world, self.server_id, given)

    async def _report_when_due(self) -> None:
        """Wait for the time or for a change, then tell the waiting room. A failed report is due at once."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(jittered(self._interval_s)):
                await self._changed.wait()
        await asyncio.sleep(SOON_S)
        self._changed.clear()
        try:
            await self.tell_leaves()
            await self.report()
        except FencedInstance as error:
            log.error("another life of this server reports", extra={"reason": error.message})
        except Exception:
            self._changed.set()  # a room that forgot something must hear of it before it lets people in
            raise
