"""A client that is logged in: its messages into the lanes, and what comes back to its connection."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from msgspec import UNSET, UnsetType

from roost.core.errors import InvalidInput
from roost.core.tracing import Span, Tracer
from roost.servers.gate.carrier import Carrier, Services
from roost.servers.gate.messages import Codec, FromClient
from roost.servers.gate.queued import Message, Refusal

log = logging.getLogger("roost.gate")

BAD_MESSAGES = 32
"""Messages that cannot be read before the client is put out."""

TAKEN_OVER = Refusal("TAKEN_OVER", "this user logged in elsewhere")
DRAINING = Refusal(
    "DRAINING", "this gate stops: connect again, here or to another, with the resume token", 100
)
IDLE = Refusal("IDLE", "nothing came for too long")
SLOW_READER = Refusal("SLOW_READER", "too much was left unread")
FLOOD = Refusal("BAD_REQUEST", "too many messages that cannot be read")
LOGGED_OUT = Refusal("LOGGED_OUT", "good bye")


class Port(Protocol):
    """A client's connection, whatever it speaks. Two of them are the same inside the gate."""

    address: str

    @property
    def is_open(self) -> bool:
        """Whether somebody may still be there."""

    def send(self, data: bytes) -> None:
        """Write a message; who has left too much unread is cut."""

    def cut(self, why: str) -> None:
        """Hang up at once."""

    def close(self, last: bytes, code: str) -> None:
        """Write a last message and hang up, within a bounded time."""


class Owner(Protocol):
    """The gate, as a session sees it."""

    services: Services
    default_type: str
    outcomes: Counter[str]

    def looking(self, carrier: Carrier) -> None: ...

    def ended(self, session: Session, reason: str) -> None: ...

    def resume_token(self, session: Session) -> str: ...


class Who:
    """What a login proved."""

    __slots__ = ("nickname", "previous", "trace", "types", "user")

    def __init__(self, user: str, nickname: str, types: tuple[str, ...], previous: str = "") -> None:
        self.user = user
        self.nickname = nickname
        self.types = types
        """Those that this client may name."""
        self.previous = previous
        """The session that is resumed; empty: a new one."""
        self.trace = ""
        """The context in which they were let in; empty: no ticket, or not sampled."""

    def again(self) -> Who:
        """The same person, in a new session that resumes nothing yet."""
        same = Who(self.user, self.nickname, self.types)
        same.trace = self.trace
        return same


class Session:
    def __init__(
        self, gate: Owner, port: Port, codec: Codec, who: Who, session_id: str, clock: Callable[[], float]
    ) -> None:
        self.user = who.user
        self.session_id = session_id
        self.who = who
        self.port = port
        self.codec = codec
        self.carriers: dict[str, Carrier] = {}
        self.heard_at = clock()
        self.renewed_at = self.heard_at
        """When the client got its last resume token."""
        self.is_over = False
        self.keeps_place = False
        """Whether another session of the user takes over the place in the world."""
        self.is_replaced = False
        """Whether it ends because its user has logged in here again."""
        self.on_greeted: Callable[[Carrier], None] | None = None
        """Set while the login waits."""
        self.on_over: Callable[[], None] | None = None
        """The same."""
        self.traceparent: bytes | None = None
        """The context of the login, which goes along to the homes; None: it is not traced."""
        self._tracer: Tracer | None = None
        self._trace = ""
        self._gate = gate
        self._clock = clock
        self._bad = 0

    def trace(self, tracer: Tracer | None, login: Span | None) -> None:
        """Tell a span of each message, below that of the login, if there is one."""
        if tracer is not None and login is not None:
            self._tracer, self._trace, self.traceparent = tracer, login.context, login.wire

    # -- the client says

    def received(self, data: bytes | str) -> None:
        """One message. Whatever is wrong with it is answered; nothing is dropped silently."""
        if self.is_over:
            return
        self.heard_at = self._clock()
        try:
            message = self.codec.read(data)
        except InvalidInput as error:
            self._is_bad(error.message)
            return
        if message.body is not UNSET:
            self._take(message)
        elif message.ping is not UNSET:
            self.port.send(self.codec.pong(message.ping))
        elif message.logout:
            self.end(LOGGED_OUT, "closed")
        else:
            self._is_bad("a message needs a body", message)

    def _take(self, message: FromClient) -> None:
        type_ = message.type if message.type is not UNSET else self._gate.default_type
        carrier = self.carriers.get(type_)
        try:
            if carrier is None:
                carrier = self.carrier(type_)
            body = self.codec.body_of(message)
        except InvalidInput as error:
            self._is_bad(error.message, message, type_)
            return
        seq = message.seq if message.seq is not UNSET else 0
        taken = Message(message.id, seq, carrier.envelope.around(body))
        if self._tracer is not None:
            taken.span = self._tracer.begin("request", self._trace, type=type_)
        refusal = carrier.take(taken) if carrier.books else carrier.lane.take(taken)
        if refusal is not None:
            self._gate.outcomes[refusal.code] += 1
            taken.ended(refusal.code)
            self.port.send(self.codec.error(refusal, message.id, message.seq, type_))

    def carrier(self, type_: str) -> Carrier:
        """The way to a service type; `InvalidInput` if this client may not talk to it."""
        if type_ not in self.carriers:
            if type_ not in self.who.types:
                raise InvalidInput(f"you may talk to {', '.join(self.who.types)}, not to {type_}")
            resumed = bool(self.who.previous)
            self.carriers[type_] = Carrier(self, type_, self._gate.services, resumed=resumed)
        return self.carriers[type_]

    def _is_bad(self, reason: str, message: FromClient | None = None, type_: str | UnsetType = UNSET) -> None:
        self._bad += 1
        self._gate.outcomes["BAD_REQUEST"] += 1
        refusal = Refusal("BAD_REQUEST", reason)
        if message is None:
            self.port.send(self.codec.error(refusal))
        else:
            self.port.send(self.codec.error(refusal, message.id, message.seq, type_))
        if self._bad > BAD_MESSAGES:
            self.end(FLOOD, "closed")

    # -- the home says

    @property
    def is_connected(self) -> bool:
        return self.port.is_open

    def context(self) -> dict[str, Any]:
        return {
            "nickname": self.who.nickname,
            "address": self.port.address,
            "resume": bool(self.who.previous),
        }

    def greeted(self, carrier: Carrier) -> None:
        if self.on_greeted is not None:
            self.on_greeted(carrier)

    def looking(self, carrier: Carrier) -> None:
        self._gate.looking(carrier)

    def deliver(self, carrier: Carrier, message: Message, payload: bytes, epoch: int) -> None:
        try:
            data = self.codec.result(message.id, message.sequence, carrier.type, payload, epoch)  # type: ignore[arg-type]
        except InvalidInput as error:
            self.refuse(carrier, message, Refusal("FAILED", error.message))
            return
        self._gate.outcomes["ok"] += 1
        if message.span is not None:
            message.ended("ok")
        self.port.send(data)

    def refuse(self, carrier: Carrier, message: Message, refusal: Refusal) -> None:
        self._gate.outcomes[refusal.code] += 1
        message.ended(refusal.code)
        seq = message.sequence or UNSET
        self.port.send(self.codec.error(refusal, message.id, seq, carrier.type))  # type: ignore[arg-type]

    def pushed(self, type_: str, payload: bytes, epoch: int) -> bool:
        """A push of the home; False: of an older epoch, or nothing that can be told."""
        carrier = self.carriers.get(type_)
        if carrier is None or epoch < carrier.lane.epoch:
            return False
        try:
            data = self.codec.push(type_, payload, epoch)
        except InvalidInput as error:
            log.warning("push not told", extra={"userId": self.user, "reason": error.message})
            return False
        carrier.lane.epoch = epoch
        self.port.send(data)
        return True

    def taken_over(self, reason: str) -> None:
        self.end(Refusal("TAKEN_OVER", reason or TAKEN_OVER.message), "taken-over")

    # -- the end

    def renew(self) -> None:
        """Give the client a fresh resume token."""
        self.renewed_at = self._clock()
        self.port.send(self.codec.resume(self._gate.resume_token(self)))

    def end(self, refusal: Refusal, reason: str) -> None:
        """Say why, hang up, and tell the homes. The first reason counts."""
        if self.is_over:
            return
        token = self._gate.resume_token(self) if refusal is DRAINING else ""
        self.port.close(self.codec.bye(refusal, token), refusal.code)
        self.gone(reason)

    def gone(self, reason: str) -> None:
        """The connection is over, however it came about."""
        if self.is_over:
            return
        self.is_over = True
        if self.on_over is not None:
            self.on_over()
        for carrier in self.carriers.values():
            for message in carrier.lane if self._tracer is not None else ():
                message.ended("CLOSED")
            carrier.close(reason, replaced=self.is_replaced)
        self._gate.ended(self, reason)
