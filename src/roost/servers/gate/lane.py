"""One user's messages to one service type: in order, numbered, sent again from the first without an answer.

A lane does no I/O. What it wants done it asks of its `Ways`; what became of it comes back with the `turn`
in which it was asked. A turn ends with whatever makes the gate look again for the user's home (a bounce, a
lost connection, a change in the feed): what was in flight then goes back to the head of the queue, and what
comes later of an earlier turn can complete a message, but moves nothing. The numbers make that safe: the
entity executes each once, in order, and answers a repeated one with what it remembers.

    IDLE ──take──▶ LOOKING ──routed──▶ GREETING ──greeted──▶ READY
                      ▲────── bounce, loss, change ────┴───────┘
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterator
from typing import Protocol

from roost.servers.gate.queued import (
    CLOSED,
    GATE_FULL,
    LANE_FULL,
    NO_HOME_YET,
    NOT_RISING,
    UNKNOWN,
    Message,
    Numbers,
    Refusal,
    Terms,
)
from roost.servers.gate.routes import Route

ORDERS_AGAIN = 3
"""How often in a row a lane sends again at once when the entity misses an earlier message; then it looks."""


class State(enum.Enum):
    IDLE = "nobody has asked for the user's home yet, or it was released"
    LOOKING = "the home is being looked for"
    GREETING = "the login is on its way to the home"
    READY = "messages flow"
    CLOSED = "the session is over"


class Ways(Protocol):
    """What a lane needs done. Each answer comes back to the lane, possibly before the call returns."""

    def look(self, lane: Lane, bounced: Route | None) -> None:
        """Find the user's home, `bounced` is where it is not any more; then `lane.routed`."""

    def greet(self, lane: Lane, route: Route) -> None:
        """Log the user in there; then `lane.greeted`, or `lane.ungreeted`."""

    def transmit(self, lane: Lane, message: Message, oldest: int) -> None:
        """Send it; then `lane.answered`, `lane.bounced` or `lane.fail`."""

    def refuse(self, lane: Lane, message: Message, refusal: Refusal) -> None:
        """Tell the client that it is not carried out."""


class Lane:
    def __init__(self, type_: str, user: str, ways: Ways, terms: Terms, *, resumed: bool = False) -> None:
        """`resumed`: numbers up to the last executed one may come again, to ask for their replies."""
        self.type = type_
        self.user = user
        self.state = State.IDLE
        self.turn = 0
        self.route: Route | None = None
        self.epoch = 0
        """The highest that was seen of this user, wherever: nothing older is believed."""
        self.last_sequence: int | None = None
        """What the first login said; None before it."""
        self.reason = NO_HOME_YET
        """Why there is no home, as far as anybody knows."""
        self.is_watched = False
        """Whether `silence` will look at it."""
        self.looks = 0
        """How often the home was looked for since the last answer."""
        self._ways = ways
        self._limits, self._room = terms.limits, terms.room
        self._counts, self._clock, self._silence = terms.counts, terms.clock, terms.silence
        self._numbers = Numbers(resumed=resumed)
        self.flying, self._waiting = deque[Message](), deque[Message]()
        self._bytes = 0
        self._unsettled_since = 0.0
        self._orders = 0

    def __len__(self) -> int:
        return len(self.flying) + len(self._waiting)

    def __iter__(self) -> Iterator[Message]:
        """What has no answer yet, in order."""
        return iter((*self.flying, *self._waiting))

    # -- the client's side

    def take(self, message: Message) -> Refusal | None:
        """Queue a message; a refusal means that it was not taken, and nothing else has changed."""
        refusal = self._judge(message)
        if refusal is not None:
            self._counts.refused[refusal.code] += 1
            return refusal
        self._bytes += len(message.payload)
        self._counts.taken += 1
        message.since = self._clock()
        message.due = message.since + self._limits.timeout_s
        self._waiting.append(message)
        if self.state is State.READY:
            self._pump()
        elif self.state is State.IDLE:
            self.start()
        return None

    def start(self) -> None:
        """Find the home and log in there, also without a message."""
        if self.state is State.IDLE:
            self._look(None)

    def close(self) -> None:
        self.state = State.CLOSED
        self.turn += 1
        for message in self:
            message.done = True
            self._room.give_back(message)
        self.flying.clear()
        self._waiting.clear()

    def expire(self) -> None:
        """Refuse what has waited too long for a home; to be called now and then while there is none."""
        if self.state in (State.READY, State.CLOSED):
            return
        now, since, wait_s = self._clock(), self._unsettled_since, self._limits.wait_s
        for message in [one for one in self._waiting if one.is_overdue(now, since, wait_s)]:
            self.fail(message, self.reason)

    # -- the home's side

    def routed(self, turn: int, route: Route) -> None:
        """The user's home is there, as far as the map knows."""
        if turn != self.turn or self.state is not State.LOOKING:
            return
        self.route = route
        self.epoch = max(self.epoch, route.epoch)
        self.state = State.GREETING
        self._ways.greet(self, route)

    def greeted(self, turn: int, last_sequence: int, epoch: int) -> None:
        if turn != self.turn or self.state is not State.GREETING:
            return
        if epoch < self.epoch:
            self._counts.stale += 1
            self._look(self.route)
            return
        self.epoch = epoch
        if self.last_sequence is None:
            self.last_sequence = last_sequence
            for unfit in list(self._numbers.settle(last_sequence, list(self._waiting))):
                self.fail(unfit, NOT_RISING)
        self.state = State.READY
        self._pump()

    def ungreeted(self, turn: int, why: str, reason: Refusal) -> None:
        if turn == self.turn and self.state is State.GREETING:
            self._counts.bounces[why] += 1
            self.reason = reason
            self._look(self.route)

    def answered(self, message: Message, turn: int, epoch: int) -> bool:
        """A reply came; False: it does not count, because of its epoch or because another came before."""
        message.outstanding -= 1
        if message.done:
            return False
        if epoch and epoch < self.epoch:
            self._counts.stale += 1
            message.unknown = True
            if turn == self.turn:
                self._look(self.route)
            return False
        if epoch > self.epoch:
            self.epoch = epoch
        self._orders = self.looks = 0
        self._counts.answered += 1
        self._complete(message)
        if self._waiting and self.state is State.READY:
            self._pump()
        return True

    def bounced(self, message: Message, turn: int, why: str, reason: Refusal, unknown: bool = False) -> None:
        """Not executed there; or, `unknown`, nobody knows, which its number takes care of."""
        message.outstanding -= 1
        message.unknown |= unknown
        if message.done or turn != self.turn:
            return
        self._counts.bounces[why] += 1
        self.reason = reason
        self._look(self.route)

    def out_of_order(self, message: Message, turn: int) -> None:
        """The entity misses an earlier one: all without an answer go out again, from the first."""
        message.outstanding -= 1
        if message.done or turn != self.turn:
            return
        self._counts.bounces["OUT_OF_ORDER"] += 1
        self._orders += 1
        if self._orders > ORDERS_AGAIN:
            self._orders = 0
            self._look(self.route)
            return
        self._turn_back()
        self._pump()

    def timed_out(self, message: Message) -> None:
        """It is due and there is no reply."""
        message.outstanding -= 1
        message.unknown = True
        self.fail(message, UNKNOWN)

    def fail(self, message: Message, refusal: Refusal) -> None:
        """Give up on a message; what follows it goes on."""
        if message.done:
            return
        self._refuse(message, refusal)
        self._pump()

    def changed(self, route: Route) -> None:
        """The feed tells where the user lives; without a server: released, until a login or message asks."""
        if self.state is State.CLOSED or route.epoch < self.epoch:
            return
        here, self.epoch = self.route, route.epoch
        if here is not None and route.is_with(here):
            self.route = route
        elif not route.server_id and not len(self) and self.last_sequence is not None:
            self._turn_back()
            self.route, self.state = None, State.IDLE
        elif here is not None:
            self._look(None)

    @property
    def is_settled(self) -> bool:
        """Whether nothing waits for a home."""
        return self.state in (State.READY, State.CLOSED, State.IDLE)

    def lost(self) -> None:
        """The connection to the home has ended, so that its pushes do not come any more."""
        if self.state in (State.READY, State.GREETING):
            self._look(self.route)

    # -- inside

    def _judge(self, message: Message) -> Refusal | None:
        if self.state is State.CLOSED:
            return CLOSED
        if not self._numbers.allow(message.sequence):
            return NOT_RISING
        size = len(message.payload)
        if len(self) >= self._limits.messages or self._bytes + size > self._limits.bytes:
            return LANE_FULL
        if not self._room.take(size):
            return GATE_FULL
        self._numbers.give(message, is_settled=self.last_sequence is not None)
        return None

    def _look(self, bounced: Route | None) -> None:
        if self.state in (State.READY, State.IDLE):
            self._unsettled_since = self._clock()
        self._turn_back()
        self.looks += 1
        self.state = State.LOOKING
        self._ways.look(self, bounced)

    def _turn_back(self) -> None:
        """What is in flight goes back to the head of the queue, in order."""
        self.turn += 1
        self._counts.resent += len(self.flying)
        self._waiting.extendleft(reversed(self.flying))
        self.flying.clear()

    def _pump(self) -> None:
        """Send what fits into the window. NB: `transmit` may bounce at once, and so end the turn."""
        while self._waiting and self.state is State.READY and len(self.flying) < self._limits.window:
            message, now = self._waiting[0], self._clock()
            if message.due <= now:
                self._refuse(message, self.reason)
                continue
            self._waiting.popleft()
            self.flying.append(message)
            if not self.is_watched:
                self._silence.watch(self, now)
            message.turn, message.sent_at = self.turn, now
            message.outstanding += 1
            self._ways.transmit(self, message, self.flying[0].sequence)

    def _refuse(self, message: Message, refusal: Refusal) -> None:
        """Sends nothing: however many are overdue, it is one loop that refuses them, in order."""
        if message.unknown or message.outstanding:
            refusal = UNKNOWN
        self._counts.refused[refusal.code] += 1
        self._complete(message)
        self._ways.refuse(self, message, refusal)

    def _complete(self, message: Message) -> None:
        message.done = True
        self._bytes -= len(message.payload)
        self._room.give_back(message)
        if self.flying and self.flying[0] is message:
            self.flying.popleft()
        elif message in self.flying:
            self.flying.remove(message)
        else:
            self._waiting.remove(message)
