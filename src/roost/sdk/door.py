"""A game server's door to a waiting room. The rules of the ledger are in here, so nobody can get them wrong.

async with client.registered(type="game", group="kr-1", server_id="501", capacity=100) as me:
    async with client.door(me, url="wss://game.example/501") as door:
        guest = await door.consume(ticket)      # TicketRefused, ServerFull, AlreadyConnected
        ...
        await door.leave(guest)                 # "dropped" holds their place for a while

A report says how many people are here (n), and up to which consume that is all of them (k): the last number
such that every consume up to it was in the table when n was counted. So a late report makes the room too
careful, never too generous. A number that the door never learned (its answer was lost for good) is passed
over by the reply to a report during which no consume was under way, begun or unsettled: then everybody whom
the store let in is in the table or has left.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from collections import Counter
from collections.abc import Coroutine, Iterator
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
    CURABLE,
    Conflict,
    FencedInstance,
    InvalidInput,
    OutcomeUnknown,
    QueueRefused,
    RoostError,
    ServerFull,
    ServerNotReported,
    StoreUnavailable,
    TicketRefused,
    TicketUsed,
)
from roost.core.loops import END, Loops
from roost.core.passes import peek_user
from roost.sdk.guests import Guest, Leaves
from roost.sdk.heart import Registration
from roost.sdk.ports import Admission

log = logging.getLogger("roost.sdk.door")

REPORT_INTERVAL_S = 5.0
SOON_S = 0.2
"""After a change the next report follows this soon; changes in between ride along."""
ATTEMPTS = 4
WARN_AFTER = 4
"""Reports of a server that is not known: about two seconds. A leader takes one to hear of a registration."""
UNKNOWN_HERE = "no manager runs, or the world's servers are of another type"
NAME_A_CAPACITY = "register with capacity=…, or name it here: client.door(me, capacity=100)"


class AlreadyConnected(QueueRefused, Conflict):
    """This person is connected here already."""

    code = "ALREADY_CONNECTED"
    hint = "close the other connection first"


class Counted:
    """Up to which consume everybody let in is in the table, or has left: `k` of a report."""

    def __init__(self) -> None:
        self.k = 0
        self._later: set[int] = set()
        """Known consumes behind one of which nothing is known yet."""

    def note(self, number: int) -> None:
        self._later.add(number)
        self.reach(self.k)

    def reach(self, number: int) -> bool:
        """Nothing up to this one is missing; True if that is news."""
        before, self.k = self.k, max(self.k, number)
        while self.k + 1 in self._later:
            self.k += 1
        self._later = {later for later in self._later if later > self.k}
        return self.k > before


class Entering:
    """Whom the store may have let in and who are in no table yet, by connection."""

    def __init__(self) -> None:
        self.begun = 0
        """Consumes so far."""
        self._asking: Counter[str] = Counter()
        self.settling: dict[asyncio.Task[None], str] = {}
        """They find out what became of a consume whose answer was lost."""

    def __contains__(self, connection: str) -> bool:
        return self.is_asked_for(connection) or connection in self.settling.values()

    @property
    def is_quiet(self) -> bool:
        return not self._asking and not self.settling

    def is_asked_for(self, connection: str) -> bool:
        """Whether a consume is under way: the first, or a retry."""
        return connection in self._asking

    @contextlib.contextmanager
    def ask(self, connection: str) -> Iterator[None]:
        self.begun += 1
        self._asking[connection] += 1
        try:
            yield
        finally:
            self._asking -= Counter((connection,))  # which keeps no zeros

    def settle(self, connection: str, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work, name="roost door settles")
        self.settling[task] = connection
        task.add_done_callback(self.settling.pop)


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
        if self.capacity <= 0:
            raise InvalidInput("a server without a capacity takes nobody", hint=NAME_A_CAPACITY)
        self.server_id = registration.server_id
        self.guests: dict[str, Guest] = {}
        """By user id."""
        self._life = registration.life
        self._counted = Counted()
        self._report_number = 0
        self._changed = asyncio.Event()
        self._leaves = Leaves(self._release, lambda: self._life)
        self._entering = Entering()
        self.reported_at: float | None = None
        """Monotonic time of the last report that was taken."""
        self._reporting: asyncio.Task[None] | None = None
        self.drain = False
        """Set it to take nobody new: its capacity is then what it holds. An operator's drain does so too."""
        self._unknown = 0
        self._until_known = Backoff(SOON_S, report_interval_s)  # between reports of one that is not

    async def __aenter__(self) -> Self:
        with contextlib.suppress(*CURABLE):  # the loop goes on trying
            await self.report()
        reporting = self._loops.keep_running("sdk-report", self._report_when_due)
        self._reporting = asyncio.create_task(reporting, name="roost door")
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = [task for task in (self._reporting, *self._entering.settling) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for guest in self.guests.values():
            self._leaves.add(guest, "dropped")
        self.guests.clear()
        await self.tell_leaves()
        with contextlib.suppress(RoostError):
            self.capacity = 0
            await self.report()

    async def consume(self, ticket: str, connection: str = "") -> Guest:
        """Let the holder of the ticket in; a refusal says what to do next."""
        connection = connection or str(uuid.uuid4())
        if connection in self._leaves:
            raise TicketRefused("they are being sent back to the line", hint="enter again")
        life = self._me.life
        try:
            with self._entering.ask(connection):
                reply = await self._ask(ticket, connection, life)
        except BaseException as error:
            if not isinstance(error, RoostError) or isinstance(error, OutcomeUnknown | StoreUnavailable):
                self._entering.settle(connection, self._settle(ticket, connection, life))
            elif isinstance(error, TicketUsed) and peek_user(ticket) in self.guests:
                raise AlreadyConnected from None  # the ticket is a good one, so what it says is true
            raise
        return self._admit(reply, connection, life)

    async def leave(self, guest: Guest, how: How = "clean") -> None:
        """They are gone from here; what becomes of their place depends on how."""
        if self.guests.get(guest.user_id) == guest:
            del self.guests[guest.user_id]
            self._changed.set()
        self._leaves.add(guest, how)
        if not self._leaves.telling:  # else the call that tells now tells this one too
            await self.tell_leaves()

    async def tell_leaves(self) -> None:
        """Tell of all who left; what cannot be told now is told with the next report."""
        await self._leaves.tell()

    async def report(self) -> None:
        """Say how many people are here, and which consumes that counts."""
        self._follow_life()
        self._report_number = max(self._report_number + 1, time.time_ns() // 1000)
        capacity = min(self.capacity, len(self.guests)) if self.draining else self.capacity
        # Who dropped out is counted until the waiting room holds their place inside: else it is given away.
        users = len(self.guests) + self._leaves.dropped
        given = ReportInput(
            self._life,
            self._report_number,
            capacity,
            users,
            self._counted.k,
            self._url,
            self._proof(self._life),
        )
        begun, is_quiet = self._entering.begun, self._entering.is_quiet
        reply = await self._admission.report(self._world, self.server_id, given)
        self.reported_at = time.monotonic()
        is_quiet = is_quiet and begun == self._entering.begun and given.life == self._life
        if is_quiet and self._counted.reach(reply.consumed):
            self._changed.set()  # the room must hear of it
        for one in reply.asking:
            self._answer(one, given.life)
        self._unknown = 0 if reply.known else self._unknown + 1
        if reply.known:
            self._until_known.reset()
        elif self._unknown == WARN_AFTER:
            log.warning("not known here yet", extra={"serverId": self.server_id, "reason": UNKNOWN_HERE})

    @property
    def draining(self) -> bool:
        """Whether it takes nobody new, by its own will or an operator's."""
        return self.drain or self._me.draining or self._me.status == "draining"

    @property
    def settling(self) -> int:
        """Consumes of which it is not known yet what became of them."""
        return len(self._entering.settling)

    # -- inside

    def _admit(self, reply: ConsumeReply, connection: str, life: str) -> Guest:
        """In the table first, counted after: a report in between may say too little of k, never of n.

        A store that lost its last writes may let in whom we have, or more than we take.
        """
        guest = Guest(reply.user_id, reply.nickname, reply.region, connection, life, reply.traceparent)
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
        self._leaves.add(guest, "failed")
        self._note(number, guest.life)

    def _answer(self, asking: Asking, life: str) -> None:
        """Somebody asks to come in who is inside by what the store knows: or it forgot that they left."""
        connection = asking.connection
        if asking.user_id in self.guests or connection in self._entering or connection in self._leaves:
            return
        self._leaves.add(Guest(asking.user_id, "", "", connection, life), "dropped")
        self._changed.set()

    def _note(self, number: int, life: str) -> None:
        if life == self._life:
            self._counted.note(number)
        self._changed.set()

    def _proof(self, life: str) -> str:
        return self._me.proofs.get(life, "")

    def _follow_life(self) -> None:
        """A new life begins with everybody who is here, and counts its consumes from 0."""
        if self._me.life != self._life:
            self._life, self._counted, self._report_number = self._me.life, Counted(), 0

    async def _ask(self, ticket: str, connection: str, life: str) -> ConsumeReply:
        """Consume, again and again while the answer gets lost: the same connection gets the same answer."""
        given = ConsumeInput(ticket, self.server_id, life, connection, self._world, self._proof(life))
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

    async def _settle(self, ticket: str, connection: str, life: str) -> None:
        """Find out what became of a consume whose answer was lost; whom no retry brought in goes back."""
        given = ConsumeInput(ticket, self.server_id, life, connection, self._world, self._proof(life))
        loop = self._loops.loop("sdk-settle")

        async def ask_again() -> object:
            await asyncio.sleep(jittered(1.0, 0.5))
            try:
                reply = await self._admission.consume(given)
            except CURABLE:
                raise
            except RoostError:
                loop.good()  # a refusal is an answer too: they are not inside
                return END
            if self._entering.is_asked_for(connection):
                return None  # the retry may bring them in, or leave them inside: look again after it
            loop.good()
            guest = Guest(reply.user_id, reply.nickname, reply.region, connection, life)
            if self.guests.get(guest.user_id) == guest or connection in self._leaves:
                self._note(reply.number, life)
            else:
                self._hand_back(guest, reply.number)
            return END

        await loop.keep_running(ask_again)

    async def _release(self, guest: Guest, how: How) -> None:
        given = ReleaseInput(guest.user_id, guest.life, guest.connection, how, self._proof(guest.life))
        await self._admission.release(self._world, self.server_id, given)

    async def _report_when_due(self) -> None:
        """Wait for the time or for a change, then tell the waiting room. A failed report is due at once."""
        with contextlib.suppress(TimeoutError):
            pause_s = self._until_known.next() if self._unknown else jittered(self._interval_s)
            async with asyncio.timeout(pause_s):
                await self._changed.wait()
        await asyncio.sleep(SOON_S)
        self._changed.clear()
        try:
            await self.tell_leaves()
            await self.report()
        except FencedInstance as error:
            log.error("this life of the server is over", extra={"reason": error.message})
        except Exception:
            self._changed.set()  # a room that forgot something must hear of it before it lets people in
            raise
