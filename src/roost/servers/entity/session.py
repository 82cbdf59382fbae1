"""One user on this server: the object, what of it is not written yet, and who waits for an answer."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from enum import Enum
from hashlib import blake2b
from typing import Any, NamedTuple

from roost.core.owner import Owner
from roost.sdk.entity import Entity
from roost.servers.entity.replies import Replies, Reply
from roost.servers.entity.timers import Timers
from roost.servers.entity.trading import Trading
from roost.servers.entity.turns import Line
from roost.wire.answer import with_more
from roost.wire.codes import Code
from roost.wire.server import Answer, Call, Connection

NEVER = -1
"""No generation of a lease: what is claimed under it is served under no epoch."""


class Phase(Enum):
    OPENING = "opening"
    """Being claimed and loaded; messages wait."""
    OPEN = "open"
    ENDED = "ended"
    """Not on this server any more; whoever still waits is told so."""


class Ack(NamedTuple):
    """A reply that waits until its message is durable."""

    sequence: int
    call: Call
    reply: Reply


class Entry(NamedTuple):
    """A message in the journal, or on its way there."""

    sequence: int
    payload: bytes


def digest_of(state: bytes | None) -> bytes:
    """16 bytes; of an empty state others than of none."""
    if state is None:
        return blake2b(b"\0", digest_size=16).digest()
    return blake2b(b"\1" + state, digest_size=16).digest()


class Unsaved:
    """How far the row is behind the object. `since`: monotonic, of the oldest change that it lacks."""

    __slots__ = ("changes", "digest", "fault", "is_queued", "must", "revision", "saved", "sequence", "since")

    def __init__(self) -> None:
        self.changes = 0
        self.saved = 0
        self.since = 0.0
        self.revision = 0
        """The last one that was given to a write, whether it succeeded or not: none is used twice (R4)."""
        self.digest = digest_of(None)
        """Of the state that the row holds."""
        self.sequence = 0
        """The last message that the row holds."""
        self.must = 0
        """Changes up to here are in no journal: they are saved before anything on top is acknowledged."""
        self.fault = ""
        """Why the last write failed; empty if it did not."""
        self.is_queued = False
        """Whether the flusher looks at it in time."""

    @property
    def is_dirty(self) -> bool:
        return self.changes > self.saved

    def change(self, now: float) -> None:
        if self.changes == self.saved:
            self.since = now
        self.changes += 1

    def save(self, changes: int, sequence: int, taken_at: float, state: bytes) -> None:
        """A write that was taken then is in the row."""
        self.digest = digest_of(state)
        self.saved, self.fault = max(self.saved, changes), ""
        self.sequence = max(self.sequence, sequence)
        self.since = max(self.since, taken_at)


class Session:
    """Its line is the user's lock: whatever changes more than the client's side of it does so in a turn."""

    def __init__(self, user: str, partition: int, entity: Entity, line: Line, now: float) -> None:
        self.user = user
        self.partition = partition
        self.entity = entity
        self.line = line
        self.phase = Phase.OPENING
        self.farewell = Answer()
        """What those who still wait are told when it has ended."""
        self.owner = Owner("", "")
        self.epoch = 0
        self.generation = 0
        """Of the lease under which the epoch was claimed; `NEVER`: it must be claimed anew."""
        self.last_sequence = 0
        self.replies = Replies()
        self.unsaved = Unsaved()
        self.writing: asyncio.Future[None] | None = None
        """Under way while a state of this user is on its way to the database."""
        self.tail: deque[Entry] = deque()
        """Messages that the journal must hold until the row does."""
        self.appended = 0
        """The last of them that the journal has confirmed."""
        self.trimmed = 0
        """The last message that the journal was told to let go of."""
        self.timers = Timers()
        self.trading: Trading | None = None
        """None: a user who never traded."""
        self.used_at = now
        self.client = ""
        """The client's session; empty: it is logged out, or has not shown one yet."""
        self.peer: Connection | None = None
        self.is_let_go = False
        """Whether a release has told the object that its client left: the next message is then a return."""
        self.context: dict[str, Any] = {}
        """What the gate said of the client: nickname, address."""
        self.trace: bytes | None = None
        """The context in which the user is here, see `core/tracing.py`; None: they are not traced."""
        self.pushes = 0
        self.is_replaying = False
        self.is_doubted = False
        """Whether it is about to be claimed anew."""
        self.in_doubt = False
        """Nobody knows under which epoch the row is ours: nothing is written before it is claimed anew."""
        self._acks: deque[Ack] = deque()
        self._youngest = ""
        """The latest session of the client that was seen; gates give ids (ULIDs) that rise."""

    @property
    def is_open(self) -> bool:
        return self.phase is Phase.OPEN

    @property
    def has_ended(self) -> bool:
        return self.phase is Phase.ENDED

    # -- the client

    def attach(self, client: str, peer: Connection) -> tuple[str, Connection | None]:
        """The client's session and its gate from now on; what they were, where another session loses them."""
        former = (self.client, self.peer) if self.client and self.client != client else ("", None)
        self.client, self.peer, self.is_let_go = client, peer, False
        self._youngest = max(self._youngest, client)
        return former

    def inherit(self, client: str, context: dict[str, Any], pushes: int) -> None:
        """What the server that it comes from knew of the client; its gate is known by its next message."""
        self.client, self.context, self.pushes = client, context, pushes
        self._youngest = max(self._youngest, client)

    def is_superseded(self, client: str) -> bool:
        """Whether a later session took over: a login that was long under way must not take it back."""
        return client < self._youngest

    # -- messages

    def executed(self, sequence: int, reply: Reply, now: float) -> None:
        self.last_sequence = sequence
        self.replies.remember(sequence, reply)
        self.unsaved.change(now)

    def refuse(self, call: Call, refusal: Answer) -> None:
        """Turn a message away. One that ran is not said not to have: sent anew it would run twice.

        OVERLOADED says that nothing ran, whatever else is in it; who hears MOVED looks again and asks again.
        """
        if call.sequence is None or call.sequence > self.last_sequence:
            return call.reply(refusal)
        code = Code.MOVED if refusal.code is Code.OVERLOADED else refusal.code
        return call.reply(with_more(refusal, code, executed=True))

    def wait_for_durable(self, sequence: int, call: Call, reply: Reply) -> None:
        self._acks.append(Ack(sequence, call, reply))

    def is_durable(self, sequence: int) -> bool:
        return not self._acks or sequence < self._acks[0].sequence

    def durable(self, up_to: int) -> None:
        """Release the answers that waited for it."""
        for ack in self._take_acks(up_to):
            ack.call.reply(Answer(ack.reply.payload, ack.reply.code, self.epoch))

    def _take_acks(self, up_to: int) -> Iterator[Ack]:
        while self._acks and self._acks[0].sequence <= up_to:
            yield self._acks.popleft()

    @property
    def waiting_acks(self) -> int:
        return len(self._acks)

    def flushed(self, up_to: int) -> None:
        """The row holds everything up to this message."""
        while self.tail and self.tail[0].sequence <= up_to:
            self.tail.popleft()
        self.durable(up_to)

    # -- the end

    def end(self, farewell: Answer) -> None:
        """Whoever waits is told; nothing of it runs any more."""
        self.phase, self.farewell = Phase.ENDED, farewell
        self.timers.cancel_all()
        self.line.bounce_all()
        while self._acks:
            self.refuse(self._acks.popleft().call, farewell)
