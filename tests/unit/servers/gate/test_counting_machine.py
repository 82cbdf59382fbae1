"""Any interleaving of moves, lost connections and late replies, with a home that keeps rule R9.

What is counted is what the client was told, and no fault is counted that did not happen.
"""

from __future__ import annotations

from collections import Counter, deque

import hypothesis.strategies as st
import msgspec
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from roost.servers.gate.carrier import LOGIN
from roost.servers.gate.queued import LaneLimits
from roost.servers.gate.routes import Route
from roost.wire.answer import Answer, digest_of, refusal
from roost.wire.codes import Code
from tests.unit.servers.gate.carried import HOME, OTHER, Carried, Sent

_pack = msgspec.msgpack.encode

servers = st.sampled_from([HOME.server_id, OTHER.server_id])


class Fleet:
    """Two servers and one row: the owner executes each number once and in order, and remembers."""

    def __init__(self) -> None:
        self.home = HOME
        self.last = 0
        self.replies: dict[int, bytes] = {}
        self.short = False
        """Whether replies are too large to be kept, but for their digest."""
        self.twice = False
        """Whether a repeated number is executed again: the fault that is looked for."""

    def move(self) -> None:
        there = OTHER if self.home.server_id == HOME.server_id else HOME
        self.home = Route(there.server_id, there.life, self.home.epoch + 1)

    def handle(self, sent: Sent) -> Answer:
        if sent.server != self.home.server_id:
            return refusal(Code.MOVED, "not here")
        if sent.method == LOGIN:
            return Answer(_pack([self.last, "return", "write-back:1000"]), epoch=self.home.epoch)
        due = max(self.last, sent.oldest - 1) + 1
        if sent.sequence > due:
            return refusal(Code.OUT_OF_ORDER, f"{due} is missing")
        if sent.sequence == due or self.twice:
            self.last = max(self.last, sent.sequence)
            self.replies[sent.sequence] = b"%d under %d" % (sent.sequence, self.home.epoch)
        elif self.short:
            digest = digest_of(Code.OK, self.replies[sent.sequence])
            return refusal(Code.REFUSED, "", epoch=self.home.epoch, executed=True, digest=digest)
        return Answer(self.replies[sent.sequence], epoch=self.home.epoch)


class CountingMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.town = Carried(limits=LaneLimits(window=3, messages=8, wait_s=5, timeout_s=60))
        self.book = self.town.counted()
        self.fleet = Fleet()
        self.news: deque[Route] = deque()
        self.replies: dict[str, deque[tuple[Sent, Answer]]] = {"501": deque(), "502": deque()}
        self.said = 0
        self.moves = 0
        self.refused_at_once = 0

    @rule(short=st.booleans())
    def replies_are(self, short: bool) -> None:
        self.fleet.short = short

    @rule()
    def client_sends(self) -> None:
        self.said += 1
        self.refused_at_once += self.town.say(self.said) is not None

    @precondition(lambda self: self.town.looks)
    @rule()
    def look_ends(self) -> None:
        turn, _ = self.town.looks.pop(0)
        self.town.lane.routed(turn, self.fleet.home)

    @rule(server=servers)
    def a_call_arrives(self, server: str) -> None:
        sent = next((one for one in self.town.sent if one.server == server), None)
        if sent is not None:
            self.town.sent.remove(sent)
            self.replies[server].append((sent, self.fleet.handle(sent)))

    @rule(server=servers)
    def a_reply_arrives(self, server: str) -> None:
        if self.replies[server]:
            sent, answer = self.replies[server].popleft()
            sent.reply(answer)

    @rule(server=servers)
    def a_connection_is_lost(self, server: str) -> None:
        lost = [sent for sent, _ in self.replies[server]]
        self.replies[server].clear()
        lost += [sent for sent in self.town.sent if sent.server == server]
        self.town.sent[:] = [sent for sent in self.town.sent if sent.server != server]
        for sent in lost:
            sent.lost()
        if self.town.lane.route is not None and self.town.lane.route.server_id == server:
            self.town.lane.lost()

    @rule()
    def the_user_moves(self) -> None:
        self.moves += 1
        self.fleet.move()
        self.news.append(self.fleet.home)

    @precondition(lambda self: self.news)
    @rule()
    def news_arrives(self) -> None:
        self.town.lane.changed(self.news.popleft())

    @rule(seconds=st.sampled_from([0.01, 0.5, 6.0]))
    def time_passes(self, seconds: float) -> None:
        self.town.clock.now += seconds
        self.town.lane.expire()

    # -- what always holds

    @invariant()
    def everything_is_counted_once(self) -> None:
        report = self.book.report("g@1", 0.0, is_final=False)
        assert report.adds_up
        assert report.taken == self.said
        assert report.open == len(self.town.lane)
        assert report.taken == report.answered + report.all_refused + report.open + report.lost

    @invariant()
    def the_counts_are_what_the_client_was_told(self) -> None:
        told = Counter(what for _, what in self.town.client.told)
        report = self.book.report("g@1", 0.0, is_final=False)
        known_later = told["OUTCOME_UNKNOWN"] - report.lost
        assert 0 <= known_later <= told["OUTCOME_UNKNOWN"]
        assert report.answered == told["ok"] + known_later
        assert report.all_refused == self.refused_at_once + sum(
            count for what, count in told.items() if what not in ("ok", "OUTCOME_UNKNOWN")
        )

    @invariant()
    def no_fault_is_counted_that_did_not_happen(self) -> None:
        """NB: who moves three times while one message is out may have a remembered reply taken for a late
        execution: a gate cannot tell them apart."""
        report = self.book.report("g@1", 0.0, is_final=False)
        assert (report.doubled, report.disconnected) == (0, 0)
        assert report.reordered == 0 or self.moves > 2

    def teardown(self) -> None:
        for _ in range(2000):
            if not len(self.town.lane):
                break
            if self.town.looks:
                self.look_ends()
            for server in ("501", "502"):
                self.a_call_arrives(server)
                self.a_reply_arrives(server)
        self.everything_is_counted_once()
        self.the_counts_are_what_the_client_was_told()
        assert self.book.open == 0


TestCounting = CountingMachine.TestCase
TestCounting.settings = settings(max_examples=200, stateful_step_count=60, deadline=None)
