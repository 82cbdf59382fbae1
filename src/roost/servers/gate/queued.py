"""What waits in lanes: messages, their numbers, how many there may be, and what became of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from roost.core.tracing import Span
from roost.servers.gate.counting import Trace
from roost.servers.gate.silence import Silence
from roost.wire.answer import Answer


class Refusal(NamedTuple):
    """Why a message is not carried out, for the client."""

    code: str
    message: str
    retry_after_ms: int = 0


NO_HOME_YET = Refusal("UNAVAILABLE", "no server holds this user yet", 1000)
UNKNOWN = Refusal("OUTCOME_UNKNOWN", "it was sent and no reply came: it may or may not have been carried out")
NOT_RISING = Refusal("BAD_SEQUENCE", "seq must rise within a session, and begin above the welcome's lastSeq")
CLOSED = Refusal("CLOSED", "the session is over")
MOST_LATE_BYTES = 16 * 1024 * 1024
"""Of replies that wait at one gate for the word of a later home."""

LANE_FULL = Refusal("QUEUE_FULL", "too many of your messages wait for an answer", 250)
GATE_FULL = Refusal("GATE_FULL", "too many messages wait at this gate", 1000)


class Message:
    """A client's message until it is answered."""

    __slots__ = (
        *("done", "due", "id", "late", "outstanding", "payload", "sent_at", "sequence", "since", "span"),
        *("trace", "turn", "unknown"),
    )

    def __init__(self, id_: object, sequence: int, payload: bytes) -> None:
        self.id = id_
        self.sequence = sequence
        """0: the lane gives it a number."""
        self.payload = payload
        self.turn = 0
        """Of the lane, when it was last sent."""
        self.outstanding = 0
        """Attempts of which nothing has been heard."""
        self.unknown = False
        """An attempt ended without anybody knowing whether it was carried out."""
        self.late: Answer | None = None
        """The reply of a home that is none any more: nobody knows whether it counts."""
        self.done = False
        self.since = 0.0
        """Monotonic seconds when it was taken."""
        self.sent_at = 0.0
        """The same when it was last sent."""
        self.due = 0.0
        """When its client is told something, at the latest."""
        self.trace: Trace | None = None
        """Who counts what becomes of it, while a drain runs."""
        self.span: Span | None = None
        """Of a client who is traced."""

    def is_overdue(self, now: float, unsettled_since: float, wait_s: float) -> bool:
        """What may have been executed waits until it is due: the next home can tell what became of it."""
        if now >= self.due or self.unknown or self.outstanding:
            return now >= self.due
        return now >= max(self.since, unsettled_since) + wait_s

    def ended(self, outcome: str) -> None:
        if self.span is not None:
            self.span.end(outcome=outcome)
            self.span = None


class Room:
    """What waits at one gate, all lanes together."""

    def __init__(self, messages: int, bytes_: int) -> None:
        self.messages = 0
        self.bytes = 0
        self.late_bytes = 0
        self.on_empty: Callable[[], None] | None = None
        self._most = (messages, bytes_)

    def take(self, size: int) -> bool:
        if self.messages >= self._most[0] or self.bytes + size > self._most[1]:
            return False
        self.messages += 1
        self.bytes += size
        return True

    def keep_late(self, message: Message, reply: Answer) -> None:
        """Of several that of the latest home; where there is no room for it, none."""
        size = len(reply.payload)
        if message.late is not None:
            if message.late.epoch > reply.epoch:
                return
            size -= len(message.late.payload)
        if self.late_bytes + size <= MOST_LATE_BYTES:
            self.late_bytes += size
            message.late = reply

    def give_back(self, message: Message) -> None:
        self.messages -= 1
        self.bytes -= len(message.payload)
        if message.late is not None:
            self.late_bytes -= len(message.late.payload)
            message.late = None
        if not self.messages and self.on_empty is not None:
            self.on_empty()


@dataclass(frozen=True, slots=True)
class LaneLimits:
    window: int = 64
    """Messages of a lane that are in flight at once."""
    messages: int = 256
    bytes: int = 256 * 1024
    wait_s: float = 5.0
    """How long a message waits for a home."""
    timeout_s: float = 15.0
    """How long a message may take, all in all."""


@dataclass(slots=True)
class LaneCounts:
    """What happened in all lanes of a gate."""

    taken: int = 0
    answered: int = 0
    stale: int = 0
    """Replies of an older epoch, dropped."""
    resent: int = 0
    bounces: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Terms:
    """What all lanes of a gate share."""

    limits: LaneLimits
    room: Room
    counts: LaneCounts
    clock: Callable[[], float] = time.monotonic
    silence: Silence[Any] = field(default_factory=Silence)
    """Who hears nothing of their homes."""


class Numbers:
    """The numbers of one lane: the client's, which must rise, or our own where it does not number."""

    __slots__ = ("_floor", "_highest", "_resumed")

    def __init__(self, *, resumed: bool) -> None:
        self._highest = 0
        """Of the last message that was taken or, before the first, of the last that was executed."""
        self._floor = 0
        """A number of the client's must be above it."""
        self._resumed = resumed

    def allow(self, sequence: int) -> bool:
        """Whether a client may use this number; 0 is none."""
        return not sequence or sequence > self._floor

    def give(self, message: Message, *, is_settled: bool) -> None:
        """Note its number; where it has none and `is_settled` says from where to count, it gets one."""
        if not message.sequence and is_settled:
            message.sequence = self._highest + 1
        if message.sequence:
            self._highest = max(self._highest, message.sequence)
            self._floor = message.sequence

    def settle(self, last: int, waiting: Iterable[Message]) -> Iterator[Message]:
        """The first login says that `last` was executed: number what waits; yields what may not go."""
        if not self._resumed:
            self._floor = max(self._floor, last)
        self._highest = max(self._highest, last)
        for message in waiting:
            if not message.sequence:
                self._highest += 1
                self._floor = message.sequence = self._highest
            elif not self._resumed and message.sequence <= last:
                yield message
