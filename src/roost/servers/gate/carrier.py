"""Carries one lane's messages to the user's home, and what comes back to the client.

Everything here is a callback of the connection to an entity: no task and no future for a message.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import msgspec

from roost.core.errors import OutcomeUnknown, RoostError
from roost.servers.gate.counting import LEFT, Book, Books, Trace
from roost.servers.gate.finder import Finder
from roost.servers.gate.lane import Lane
from roost.servers.gate.messages import Envelope, TypeWelcome
from roost.servers.gate.peers import Peers, Server
from roost.servers.gate.queued import UNKNOWN, Message, Refusal, Terms
from roost.servers.gate.routes import Route
from roost.wire.answer import Answer, digest_of
from roost.wire.codes import Code

log = logging.getLogger("roost.gate")

ENTITY = 1
MESSAGE, LOGIN, LOGOUT = 1, 2, 3
LOGOUT_MS = 2000

_pack = msgspec.msgpack.Encoder().encode
_read_login = msgspec.msgpack.Decoder(tuple[int, str, str]).decode


class Executed(msgspec.Struct):
    """In a refusal of a message that the entity had executed: its reply is not kept, or not to be told."""

    executed: bool = False
    digest: bytes = b""
    """Of the reply; empty: not known any more."""


_read_executed = msgspec.msgpack.Decoder(Executed).decode

BOUNCES = frozenset(
    {Code.MOVED, Code.MIGRATING, Code.FULL, Code.CLOSING, Code.OVERLOADED, Code.UNAUTHENTICATED}
)
"""The home is looked for again, and the message sent again. Not executed there, unless it says so."""


EXECUTED = frozenset({Code.OK, Code.FAILED})
"""The handler ran: the entity remembers this reply, and a repeated message gets the same."""


@dataclass(frozen=True, slots=True)
class Services:
    """What all carriers of a gate share."""

    finder: Finder
    peers: Peers
    terms: Terms
    books: Books = field(default_factory=Books)
    """Who counts messages, while a drain runs."""


class Client(Protocol):
    """The session, as a carrier sees it."""

    user: str
    session_id: str
    traceparent: bytes | None
    """The context of the login; None: it is not traced."""

    @property
    def is_connected(self) -> bool: ...

    def context(self) -> dict[str, Any]:
        """What an entity is told of the login."""

    def gone(self, reason: str) -> None:
        """The connection is over."""

    def greeted(self, carrier: Carrier) -> None: ...

    def looking(self, carrier: Carrier) -> None: ...

    def deliver(self, carrier: Carrier, message: Message, payload: bytes, epoch: int) -> None: ...

    def refuse(self, carrier: Carrier, message: Message, refusal: Refusal) -> None: ...

    def taken_over(self, reason: str) -> None: ...


class Carrier:
    """The `Ways` of one lane."""

    def __init__(self, client: Client, type_: str, services: Services, *, resumed: bool) -> None:
        self.client = client
        self.type = type_
        self.envelope = Envelope(type_, client.user, client.session_id)
        self.welcome: TypeWelcome | None = None
        """What the first login said."""
        self.lane = Lane(type_, client.user, self, services.terms, resumed=resumed)
        self.books = services.books.of(type_, client.user)
        """Who counts this user's messages; mostly nobody."""
        self._services = services
        self._server: Server | None = None
        self._is_known = False
        """Whether a server was told of this session already."""

    # -- who counts

    def count_for(self, book: Book) -> None:
        """From now on this book counts the messages, with those that are on their way."""
        if book.follow(self.client.user):
            self.books += (book,)
            for message in self.lane:
                self._trace(message, (book,))

    def leave_out(self, book: Book) -> None:
        """It counts no more of the messages that come; of those that came it is told."""
        self.books = tuple(one for one in self.books if one is not book)

    def take(self, message: Message) -> Refusal | None:
        """`lane.take` where somebody counts."""
        self._trace(message, self.books)
        message.since = self._services.terms.clock()
        refusal = self.lane.take(message)
        if refusal is not None:
            self._count_refused(message, refusal.code)
        return refusal

    def _trace(self, message: Message, books: tuple[Book, ...]) -> None:
        if message.trace is None:
            message.trace = Trace(self.client.user)
        for book in books:
            message.trace.add(book, self.lane.epoch)

    def _count_answered(self, message: Message, answer: Answer) -> None:
        trace, epoch = message.trace, answer.epoch or self.lane.epoch
        assert trace is not None
        waited_s = self._services.terms.clock() - message.since
        if answer.code is Code.DEADLINE or _was_executed(answer):
            trace.refused(message.sequence, epoch, UNKNOWN.code, waited_s)
        else:
            said = answer.payload if answer.code in EXECUTED else None
            trace.answered(message.sequence, epoch, waited_s, said, is_last=not message.outstanding)

    def _not_delivered(self, message: Message, answer: Answer) -> None:
        """A reply though another came before, or of an owner of the past: it may yet turn out to count."""
        if not message.done and answer.code in EXECUTED:
            self._services.terms.room.keep_late(message, answer)
        trace, epoch = message.trace, answer.epoch or self.lane.epoch
        is_present = message.done and epoch >= self.lane.epoch
        if trace is not None and is_present and answer.code in EXECUTED:
            trace.answered_again(message.sequence, epoch, answer.payload)

    def _count_refused(self, message: Message, code: str) -> None:
        if message.trace is not None:
            waited_s = self._services.terms.clock() - message.since
            message.trace.refused(message.sequence, self.lane.epoch, code, waited_s)

    def _count_end(self, reason: str) -> None:
        """What has no outcome when the gate hangs up is unknown; who left by themselves asks again."""
        for message in self.lane:
            self._count_refused(message, UNKNOWN.code if reason == "draining" else LEFT)
        for book in self.books:
            book.ended(self.client.user, reason, self.lane.epoch, is_moving=not self.lane.is_settled)

    # -- the lane asks

    def look(self, lane: Lane, bounced: Route | None) -> None:
        for book in self.books:
            book.moves(self.client.user)
        self.client.looking(self)
        self._services.finder.find(lane, bounced)

    def greet(self, lane: Lane, route: Route) -> None:
        if not self.client.is_connected:  # a late login would take over from a client that came again
            self.client.gone("dropped")
            return
        server = self._services.peers.find(self.type, route)
        if server is None or server.line is None:
            away = Refusal("UNAVAILABLE", f"server {route.server_id} is not known here any more", 500)
            lane.ungreeted(lane.turn, "UNKNOWN_SERVER", away)
            return
        self._stay_with(server)
        context = self.client.context()
        context["resume"] = context.get("resume", False) or self._is_known
        server.line.send(
            ENTITY,
            LOGIN,
            _pack([self.type, self.client.user, self.client.session_id, context]),
            epoch=lane.epoch,
            budget_ms=int(self._services.terms.limits.wait_s * 1000),
            traceparent=self.client.traceparent,
            done=partial(self._greeted, lane.turn),
        )

    def transmit(self, lane: Lane, message: Message, oldest: int) -> None:
        server = self._server
        assert server is not None
        assert server.line is not None
        if message.trace is not None:
            message.trace.sent(lane.epoch)
        left_ms = int((message.due - self._services.terms.clock()) * 1000)
        server.line.send(
            ENTITY,
            MESSAGE,
            message.payload,
            epoch=lane.epoch,
            sequence=message.sequence,
            oldest=oldest,
            budget_ms=left_ms if left_ms > 0 else 1,
            traceparent=message.span.wire if message.span is not None else None,
            done=partial(self._answered, message, lane.turn),
        )

    def refuse(self, lane: Lane, message: Message, refusal: Refusal) -> None:
        self._count_refused(message, refusal.code)
        self.client.refuse(self, message, refusal)

    # -- the entity answers

    def _answered(self, message: Message, turn: int, answer: Answer | Exception) -> None:
        lane = self.lane
        if isinstance(answer, Exception):
            self._failed(message, turn, answer)
            return
        if message.late is not None:
            answer = _as_it_was(answer, message.late)
        if not answer.code:
            if lane.answered(message, turn, answer.epoch):
                if message.trace is not None:
                    self._count_answered(message, answer)
                self.client.deliver(self, message, answer.payload, answer.epoch)
            else:
                self._not_delivered(message, answer)
        elif answer.code in BOUNCES:
            ran = _was_executed(answer)
            lane.bounced(message, turn, answer.code.name, reason_of(answer), unknown=ran)
        elif answer.code is Code.OUT_OF_ORDER:
            lane.out_of_order(message, turn)
        elif answer.code is Code.NOT_OWNER:
            self.client.taken_over(answer.message)
        elif lane.answered(message, turn, answer.epoch):
            if message.trace is not None:
                self._count_answered(message, answer)
            self.client.refuse(self, message, reason_of(answer))
        else:
            self._not_delivered(message, answer)

    def _failed(self, message: Message, turn: int, error: Exception) -> None:
        """No answer: the time is over, the connection was lost, or it never left."""
        lane, is_unknown = self.lane, isinstance(error, OutcomeUnknown)
        if is_unknown and self._services.terms.clock() >= message.due - 0.01:
            lane.timed_out(message)
            return
        code = error.code if isinstance(error, RoostError) else "INTERNAL"
        lane.bounced(message, turn, code, self._away(error), unknown=is_unknown)

    def _greeted(self, turn: int, answer: Answer | Exception) -> None:
        lane = self.lane
        if isinstance(answer, Exception):
            code = answer.code if isinstance(answer, RoostError) else "INTERNAL"
            lane.ungreeted(turn, code, self._away(answer))
            return
        if answer.code is Code.NOT_OWNER:  # a younger session of the user is there
            self.client.taken_over(answer.message)
            return
        if answer.code:
            lane.ungreeted(turn, answer.code.name, reason_of(answer))
            return
        try:
            last, reason, durability = _read_login(answer.payload)
        except msgspec.MsgspecError:
            lane.ungreeted(turn, "BAD_ANSWER", Refusal("INTERNAL", "the server's answer cannot be read"))
            return
        self._is_known = True
        if self.welcome is None:
            self.welcome = TypeWelcome(last, reason, durability, answer.epoch)
        for book in self.books:
            book.moves(self.client.user)
        lane.greeted(turn, last, answer.epoch)
        self.client.greeted(self)

    def _away(self, error: Exception) -> Refusal:
        name = self._server.server_id if self._server is not None else "?"
        reason = error.message if isinstance(error, RoostError) else type(error).__name__
        return Refusal("UNAVAILABLE", f"server {name} does not answer: {reason}", 500)

    # -- where the user is logged in

    def lost(self) -> None:
        self.lane.lost()

    def _stay_with(self, server: Server | None) -> None:
        if self._server is not None:
            self._server.members.discard(self)
        self._server = server
        if server is not None:
            server.members.add(self)

    def close(self, reason: str, *, replaced: bool = False) -> None:
        """The session is over: its home is told, also behind a login that is on its way. `replaced`: by a
        younger one of the same client, here."""
        server = self._server
        self._count_end("replaced" if replaced else reason)
        self.lane.close()
        self._stay_with(None)
        if server is not None:
            parts = [self.type, self.client.user, self.client.session_id, reason]
            self._log_out(_pack(parts), server, self._follow)

    def _log_out(self, payload: bytes, server: Server, moved: Callable[[bytes, Server], None]) -> None:
        """One that is lost is found out by the entity itself."""

        def done(answer: Answer | Exception) -> None:
            if isinstance(answer, Answer) and answer.code is Code.MOVED:
                moved(payload, server)

        if server.line is not None:
            server.line.send(ENTITY, LOGOUT, payload, epoch=self.lane.epoch, budget_ms=LOGOUT_MS, done=done)

    def _follow(self, payload: bytes, former: Server) -> None:
        """The user was moved meanwhile: the new home is told, once."""

        def found(route: Route) -> None:
            server = self._services.peers.find(self.type, route)
            if server is not None and server is not former:
                self._log_out(payload, server, lambda *_: None)

        self._services.finder.home_of(self.type, self.client.user, found)


def reason_of(answer: Answer) -> Refusal:
    """An entity's refusal as the client hears it; one of a message that was executed before is none."""
    if answer.code is Code.REFUSED and _was_executed(answer):
        return Refusal(UNKNOWN.code, answer.message)
    code = "UNAVAILABLE" if answer.code is Code.MOVED else answer.code.name
    return Refusal(code, answer.message or code.lower().replace("_", " "), answer.retry_after_ms)


def _was_executed(answer: Answer) -> bool:
    return answer.code not in EXECUTED and _executed_in(answer.payload).executed


def _as_it_was(answer: Answer, late: Answer) -> Answer:
    """The reply that an earlier home gave, where the present one says that it is the one that counts."""
    digest = _executed_in(answer.payload).digest if answer.code is Code.REFUSED else b""
    is_it = digest == digest_of(late.code, late.payload)
    return Answer(late.payload, late.code, answer.epoch) if is_it else answer


def _executed_in(payload: bytes) -> Executed:
    try:
        return _read_executed(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Executed()
