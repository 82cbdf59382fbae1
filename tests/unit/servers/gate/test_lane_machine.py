"""Any interleaving of sends, deliveries, moves, lost connections and news, against a home that keeps rule R9.

What is held: the home executes in the order in which the client sent, and nothing twice; every reply belongs
to its message and is told once; what was refused as not carried out never was; the bounds hold.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from roost.servers.gate.lane import Lane, State
from roost.servers.gate.queued import LaneCounts, LaneLimits, Message, Refusal, Room, Terms
from roost.servers.gate.routes import Route

BOUND = 8
MOVED = Refusal("UNAVAILABLE", "moved", 100)


@dataclass
class Home:
    """The user's one row and map record; whoever owns it executes by rule R9."""

    owner: str = "A"
    epoch: int = 1
    last: int = 0
    executed: list[bytes] = field(default_factory=list)
    replies: dict[int, bytes] = field(default_factory=dict)

    def route(self) -> Route:
        return Route(self.owner, self.owner, self.epoch)

    def handle(self, server: str, sequence: int, oldest: int, body: bytes) -> tuple[str, bytes, int]:
        if server != self.owner:
            return "MOVED", b"", 0
        due = max(self.last, oldest - 1) + 1
        if sequence > due:
            return "OUT_OF_ORDER", b"", 0
        if sequence == due:
            self.last = sequence
            self.executed.append(body)
            self.replies[sequence] = body
        return "OK", self.replies.get(sequence, b"?"), self.epoch


@dataclass
class Sent:
    server: str
    message: Message
    turn: int
    oldest: int
    reply: tuple[str, bytes, int] | None = None


class LaneMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.home = Home()
        self.now = 0.0
        self.counts = LaneCounts()
        self.room = Room(1000, 1 << 20)
        limits = LaneLimits(window=3, messages=BOUND, wait_s=5, timeout_s=60)
        self.lane = Lane("entity", "ann", self, Terms(limits, self.room, self.counts, lambda: self.now))
        self.looking: int | None = None
        self.greeting: tuple[int, str] | None = None
        self.lines: dict[str, deque[Sent]] = {"A": deque(), "B": deque()}
        self.news: deque[Route] = deque()
        self.taken: list[bytes] = []
        self.told: dict[bytes, str] = {}
        self.messages: list[Message] = []
        self.number = 0

    # -- what the lane asks for

    def look(self, lane: Lane, bounced: Route | None) -> None:
        self.looking = lane.turn

    def greet(self, lane: Lane, route: Route) -> None:
        self.greeting = (lane.turn, route.server_id)

    def transmit(self, lane: Lane, message: Message, oldest: int) -> None:
        assert lane.route is not None
        self.lines[lane.route.server_id].append(Sent(lane.route.server_id, message, lane.turn, oldest))

    def refuse(self, lane: Lane, message: Message, refusal: Refusal) -> None:
        self._tell(message, refusal.code)

    def _tell(self, message: Message, what: str) -> None:
        assert message.payload not in self.told, "told twice"
        self.told[message.payload] = what

    # -- what may happen

    @rule(numbered=st.booleans(), gap=st.integers(1, 3))
    def client_sends(self, numbered: bool, gap: int) -> None:
        body = b"m%d" % self.number
        self.number += 1
        sequence = self.highest() + gap if numbered and self.lane.last_sequence is not None else 0
        message = Message(None, sequence, body)
        refusal = self.lane.take(message)
        if refusal is None:
            self.taken.append(body)
            self.messages.append(message)
        else:
            assert len(self.lane) >= BOUND

    def highest(self) -> int:
        return max((message.sequence for message in self.messages), default=0)

    @precondition(lambda self: self.looking is not None)
    @rule()
    def look_ends(self) -> None:
        turn, self.looking = self.looking, None
        assert turn is not None
        self.lane.routed(turn, self.home.route())

    @precondition(lambda self: self.greeting is not None)
    @rule()
    def login_arrives(self) -> None:
        assert self.greeting is not None
        (turn, server), self.greeting = self.greeting, None
        if server == self.home.owner:
            self.lane.greeted(turn, self.home.last, self.home.epoch)
        else:
            self.lane.ungreeted(turn, "MOVED", MOVED)

    @rule(server=st.sampled_from("AB"))
    def a_request_arrives(self, server: str) -> None:
        sent = next((one for one in self.lines[server] if one.reply is None), None)
        if sent is not None:
            sent.reply = self.home.handle(server, sent.message.sequence, sent.oldest, sent.message.payload)

    @rule(server=st.sampled_from("AB"))
    def a_reply_arrives(self, server: str) -> None:
        line = self.lines[server]
        if line and line[0].reply is not None:
            self._hand_over(line.popleft())

    def _hand_over(self, sent: Sent) -> None:
        assert sent.reply is not None
        what, body, epoch = sent.reply
        if what == "MOVED":
            self.lane.bounced(sent.message, sent.turn, what, MOVED)
        elif what == "OUT_OF_ORDER":
            self.lane.out_of_order(sent.message, sent.turn)
        else:
            seen = self.lane.epoch
            if self.lane.answered(sent.message, sent.turn, epoch):
                assert epoch >= seen, "a reply of an older epoch"
                assert body == sent.message.payload, "the reply of another message"
                self._tell(sent.message, "OK")

    @rule(server=st.sampled_from("AB"))
    def a_connection_is_lost(self, server: str) -> None:
        lost, self.lines[server] = self.lines[server], deque()
        for sent in lost:
            self.lane.bounced(sent.message, sent.turn, "LOST", MOVED, unknown=True)
        if self.lane.route is not None and self.lane.route.server_id == server:
            self.lane.lost()

    @rule()
    def the_user_moves(self) -> None:
        self.home.owner = "B" if self.home.owner == "A" else "A"
        self.home.epoch += 1
        self.news.append(self.home.route())

    @rule()
    def the_home_is_renewed(self) -> None:
        self.home.epoch += 1
        self.news.append(self.home.route())

    @precondition(lambda self: self.news)
    @rule()
    def news_arrives(self) -> None:
        self.lane.changed(self.news.popleft())

    @rule(seconds=st.sampled_from([0.5, 6.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.lane.expire()

    # -- what always holds

    @invariant()
    def executed_in_order_and_once(self) -> None:
        executed = self.home.executed
        assert len(set(executed)) == len(executed)
        order = {body: place for place, body in enumerate(self.taken)}
        places = [order[body] for body in executed]
        assert places == sorted(places)

    @invariant()
    def what_was_refused_as_not_carried_out_never_was(self) -> None:
        certain = {body for body, what in self.told.items() if what not in ("OK", "OUTCOME_UNKNOWN")}
        assert not certain & set(self.home.executed)

    @invariant()
    def what_was_answered_was_executed(self) -> None:
        assert {body for body, what in self.told.items() if what == "OK"} <= set(self.home.executed)

    @invariant()
    def the_bounds_hold(self) -> None:
        assert len(self.lane) <= BOUND
        assert self.room.messages == len(self.lane) == len(self.taken) - len(self.told)

    def teardown(self) -> None:
        """Without further faults everybody is told something."""
        for _ in range(2000):
            if self.looking is not None:
                self.look_ends()
            if self.greeting is not None:
                self.login_arrives()
            for server in "AB":
                self.a_request_arrives(server)
                self.a_reply_arrives(server)
            if len(self.lane) == 0:
                break
        assert len(self.lane) == 0, (self.lane.state, self.lines, self.home)
        assert self.told.keys() == set(self.taken)
        self.executed_in_order_and_once()
        self.what_was_refused_as_not_carried_out_never_was()
        assert self.lane.state in (State.IDLE, State.READY, State.LOOKING, State.GREETING)


TestLane = LaneMachine.TestCase
TestLane.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
