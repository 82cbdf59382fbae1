"""The gate itself: who is logged in here, by which proof, and what the feed and the entities tell of them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Protocol

import msgspec

from roost.binding.model import BindingChange
from roost.core.errors import InvalidInput, RoostError, TicketRefused, TokenRefused, Unavailable
from roost.core.ids import check_id, new_ulid
from roost.core.passes import LoginPass, ResumePass
from roost.core.tracing import Span, Tracer
from roost.servers.gate.carrier import Carrier, Services
from roost.servers.gate.finder import Finder, Homes, route_of
from roost.servers.gate.messages import Codec, FromClient, Welcome
from roost.servers.gate.peers import Dial, Peers
from roost.servers.gate.queued import LaneCounts, LaneLimits, Room, Terms
from roost.servers.gate.session import DRAINING, IDLE, TAKEN_OVER, Port, Session, Who
from roost.servers.gate.silence import LEASE_S, Silence
from roost.servers.gate.spans import begin_span, end_span
from roost.servers.gate.witness import Witness
from roost.servers.settings import GateSettings
from roost.wire.frame import Frame

log = logging.getLogger("roost.gate")

PUSH, KICKED = 1, 2
"""Methods of what entities send unasked."""
DRAIN_S = 1.0
"""How long a gate that stops waits for replies that are on their way."""
TICK_S = 0.1
DOUBTS_A_TICK = 100
"""Lookups of silent homes that begin together: a server that hangs has thousands of users."""

_read_user = msgspec.msgpack.Decoder(tuple[str, str, int, msgspec.Raw]).decode
_read_kick = msgspec.msgpack.Decoder(tuple[str, str, str, str]).decode


class Proofs(Protocol):
    """What is used of `Passes`."""

    def login(self, token: str, now: float, /) -> LoginPass: ...

    def resume(self, token: str, now: float, /) -> ResumePass: ...

    def sign_resume(self, resume: ResumePass, /) -> str: ...


class Entrance(Protocol):
    """How somebody proves who they are, where tokens are not enough: by a ticket of a waiting room."""

    def owner_of(self, ticket: str) -> str:
        """Whose ticket it is; `TicketRefused` if it is none of this world."""

    async def enter(self, ticket: str, types: tuple[str, ...]) -> Who:
        """Use the ticket up."""

    def leave(self, user: str, reason: str) -> None: ...


class Gate:
    """Joins clients and homes. It keeps connections, and nothing that another gate would need."""

    def __init__(
        self,
        settings: GateSettings,
        proofs: Proofs,
        homes: Homes,
        dial: Callable[[Gate], Dial],
        *,
        entrance: Entrance | None = None,
        lease_s: float = LEASE_S,
        clock: Callable[[], float] = time.monotonic,
        tracer: Tracer | None = None,
    ) -> None:
        """`lease_s`: of entity servers."""
        self.settings = settings
        self.default_type = settings.type
        self.sessions: dict[str, Session] = {}
        """By user."""
        self.outcomes: Counter[str] = Counter()
        self.ended_by: Counter[str] = Counter()
        self.refused_logins: Counter[str] = Counter()
        self.logins: Counter[str] = Counter()
        self.pushes: Counter[str] = Counter()
        self.is_draining = False
        self.witness: Witness | None = None
        """Counts for drains, where there is a store to ask for them."""
        self._proofs = proofs
        self._entrance = entrance
        self._clock, self._tracer = clock, tracer
        self._looking: set[Carrier] = set()
        peers = Peers(dial(self), lambda: self.services.finder.wake_all())
        limits = LaneLimits(
            settings.window,
            settings.queue_messages,
            settings.queue_bytes,
            settings.wait_ms / 1000,
            settings.timeout_ms / 1000,
        )
        room = Room(settings.total_messages, settings.total_bytes)
        terms = Terms(limits, room, LaneCounts(), clock, Silence(lease_s))
        self.services = Services(Finder(homes, peers), peers, terms)

    # -- logging in

    async def login(self, port: Port, codec: Codec, first: FromClient) -> Session:
        """A session for whoever shows a good proof; the welcome is said. A refusal is raised, and counted."""
        began_ns, span = time.time_ns(), None
        try:
            who, types = await self._prove(first)
            with self._place_of(who):
                span = begin_span(self._tracer, who, began_ns, may_begin=self._entrance is None)
                session = self._register(port, codec, who, span)
            return await self._open(session, types, span)
        except RoostError as error:
            self.refused_logins[error.code] += 1
            end_span(span, error.code)
            raise

    async def _prove(self, first: FromClient) -> tuple[Who, list[str]]:
        """Who it is, and the types they ask for. A ticket is used up last: nothing is left to refuse then."""
        if self.is_draining:
            raise Unavailable("this gate stops", hint="connect to another")
        if not isinstance(first.login, str):
            raise InvalidInput('the first message must be {"login": "…"}')
        resume = self._proofs.resume(first.resume, time.time()) if first.resume else None
        if self._entrance is not None:
            who, types = await self._by_ticket(self._entrance, first.login, first, resume)
        else:
            who = _by_token(self._proofs, first.login, resume, self.settings.allowed_types)
            self._check(who.user, resume)
            types = _wanted(first, who.types, self.default_type)
        if resume is not None:
            who.previous = resume.session
        return who, types

    async def _by_ticket(
        self, entrance: Entrance, ticket: str, first: FromClient, resume: ResumePass | None
    ) -> tuple[Who, list[str]]:
        """With a ticket; without one only into a session that is still open here, whose place it keeps.

        NB: a good ticket ends the user's session here before it is known whether it was used before: the door
        lets nobody in twice. Only its owner has it.
        """
        there = self.sessions.get(resume.user) if resume is not None else None
        if there is not None:
            return there.who.again(), _wanted(first, there.who.types, self.default_type)
        if not ticket:
            hint = "your place is held for a while: ask the waiting room for a ticket"
            raise TicketRefused("this gate asks for a ticket, also to resume", hint=hint)
        user = entrance.owner_of(ticket)
        self._check(user, resume)
        types = _wanted(first, self.settings.allowed_types, self.default_type)
        self._make_way(user)
        return await entrance.enter(ticket, self.settings.allowed_types), types

    def _check(self, user: str, resume: ResumePass | None) -> None:
        check_id(user, "user")
        if resume is not None and resume.user != user:
            raise TokenRefused("the resume token is another user's")
        if user not in self.sessions and len(self.sessions) >= self.settings.capacity:
            raise Unavailable("this gate is full", hint="connect to another")

    def _make_way(self, user: str, *, keeps_place: bool = False) -> str:
        """End the user's session here; its id, empty: there was none."""
        if (there := self.sessions.get(user)) is None:
            return ""
        there.is_replaced, there.keeps_place = True, keeps_place
        there.end(TAKEN_OVER, "taken-over")
        return there.session_id

    @contextlib.contextmanager
    def _place_of(self, who: Who) -> Iterator[None]:
        """A place that no session has got is given back."""
        try:
            yield
        except BaseException:
            if self._entrance is not None and who.user not in self.sessions:
                self._entrance.leave(who.user, "failed")
            raise

    def _register(self, port: Port, codec: Codec, who: Who, span: Span | None) -> Session:
        """From here on it has the place in the world, also that of a session which is open here."""
        self._check(who.user, None)
        former = max(who.previous, self._make_way(who.user, keeps_place=True))
        session = Session(self, port, codec, who, _after(former), self._clock)
        session.trace(self._tracer, span)
        self.sessions[who.user] = session
        return session

    async def _open(self, session: Session, types: list[str], span: Span | None) -> Session:
        who = session.who
        try:
            await _greet(session, types, self.settings.wait_ms / 1000)
        except BaseException:
            session.gone("failed")
            raise
        self.logins["resume" if who.previous else "new"] += 1
        welcomes = {type_: told for type_ in types if (told := session.carriers[type_].welcome) is not None}
        resume = self.resume_token(session)
        welcome = Welcome(who.user, session.session_id, resume, welcomes, self.settings.message_bytes)
        session.port.send(session.codec.welcome(welcome))
        end_span(span, "ok")
        return session

    def resume_token(self, session: Session) -> str:
        who, until = session.who, time.time() + self.settings.resume_seconds
        types = who.types if who.types != self.settings.allowed_types else ()
        return self._proofs.sign_resume(ResumePass(who.user, session.session_id, until, types, who.nickname))

    # -- what sessions tell

    def looking(self, carrier: Carrier) -> None:
        self._looking.add(carrier)

    def ended(self, session: Session, reason: str) -> None:
        self.ended_by[reason] += 1
        if self.sessions.get(session.user) is session:
            del self.sessions[session.user]
        if self._entrance is not None and not session.keeps_place:
            self._entrance.leave(session.user, reason)

    def carriers(self, type_: str) -> Iterator[Carrier]:
        """Everybody's way to a service type."""
        for session in self.sessions.values():
            if (carrier := session.carriers.get(type_)) is not None:
                yield carrier

    # -- what the feed tells

    def changed(self, change: BindingChange) -> None:
        self.services.finder.changed(change)
        session = self.sessions.get(change.user)
        if session is not None and (carrier := session.carriers.get(change.type)) is not None:
            carrier.lane.changed(route_of(change))

    def missed(self) -> None:
        """Nobody knows what the feed would have told: every home is looked up again."""
        finder, sessions = self.services.finder, self.sessions.values()
        finder.forget_all()
        finder.verify([carrier.lane for session in sessions for carrier in session.carriers.values()])

    # -- what entities send unasked

    def pushed(self, frame: Frame) -> None:
        try:
            if frame.method == PUSH:
                self._pushed(frame)
            elif frame.method == KICKED:
                self._kicked(frame)
        except msgspec.MsgspecError as error:
            self.pushes["unreadable"] += 1
            log.warning("unreadable push", extra={"method": frame.method, "reason": str(error)[:200]})

    def _pushed(self, frame: Frame) -> None:
        type_, user, _, _ = _read_user(frame.payload)
        session = self.sessions.get(user)
        told = session is not None and session.pushed(type_, frame.payload, frame.epoch)
        self.pushes["told" if told else "dropped"] += 1

    def _kicked(self, frame: Frame) -> None:
        _, user, reason, session_id = _read_kick(frame.payload)
        session = self.sessions.get(user)
        if session is not None and session.session_id == session_id:
            session.taken_over(reason)

    # -- time

    async def tick(self) -> None:
        """Refuse what waited too long, and look after homes that are silent; called ten times a second."""
        services = self.services
        services.finder.doubt(services.terms.silence.overdue(self._clock(), DOUBTS_A_TICK))
        settled = []
        for carrier in list(self._looking):
            carrier.lane.expire()
            if carrier.lane.is_settled:
                settled.append(carrier)
        self._looking.difference_update(settled)

    async def look_after(self) -> None:
        """Close who is silent, and give the others fresh resume tokens; called every second."""
        now = self._clock()
        for session in list(self.sessions.values()):
            if now - session.heard_at > self.settings.idle_seconds:
                session.end(IDLE, "idle")
            elif now - session.renewed_at > self.settings.resume_seconds / 2:
                session.renew()

    async def drain(self) -> None:
        """Take nobody new, let replies that are on their way arrive, and send everybody away."""
        self.is_draining = True
        empty = asyncio.Event()
        if self.services.terms.room.messages:
            self.services.terms.room.on_empty = empty.set
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_S):
                    await empty.wait()
        for session in list(self.sessions.values()):
            session.end(DRAINING, "draining")

    async def close(self) -> None:
        for session in list(self.sessions.values()):
            session.end(DRAINING, "draining")
        await self.services.finder.close()
        await self.services.peers.close()


def _by_token(proofs: Proofs, token: str, resume: ResumePass | None, types: tuple[str, ...]) -> Who:
    """`types`: what a token that names none allows."""
    if token:
        login = proofs.login(token, time.time())
        return Who(login.user, login.nickname, login.types or types)
    if resume is not None:
        return Who(resume.user, resume.nickname, resume.types or types)
    raise TokenRefused("no token came along")


def _wanted(first: FromClient, allowed: tuple[str, ...], default: str) -> list[str]:
    """The types that a client asks for."""
    wanted = list(dict.fromkeys(first.types)) or [default]
    for type_ in wanted:
        if type_ not in allowed:
            raise InvalidInput(f"you may talk to {', '.join(allowed)}, not to {type_}")
    return wanted


async def _greet(session: Session, types: list[str], wait_s: float) -> None:
    """Log in at the home of each type; `Unavailable` with the reason after `wait_s`."""
    carriers = [session.carrier(type_) for type_ in types]
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def over() -> None:
        if not done.done():
            done.set_result(None)

    def greeted(carrier: Carrier) -> None:
        if all(one.welcome is not None for one in carriers):
            over()

    session.on_greeted, session.on_over = greeted, over
    for carrier in carriers:
        carrier.lane.start()
    try:
        async with asyncio.timeout(wait_s):
            await done
    except TimeoutError:
        waiting = next(one for one in carriers if one.welcome is None)
        raise Unavailable(waiting.lane.reason.message) from None
    finally:
        session.on_greeted = session.on_over = None
    if session.is_over:
        raise Unavailable("the session was taken over meanwhile")


def _after(previous: str) -> str:
    """A session id: a ULID, and above the one that it replaces, whatever this machine's clock says."""
    fresh = new_ulid()
    return fresh if fresh > previous else (previous + "+")[:64]
