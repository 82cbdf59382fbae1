"""A lane: whatever comes back in whatever order, a user's messages are executed in order and once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from roost.servers.gate.lane import Lane, State
from roost.servers.gate.queued import (
    CLOSED,
    GATE_FULL,
    LANE_FULL,
    NOT_RISING,
    UNKNOWN,
    LaneCounts,
    LaneLimits,
    Message,
    Refusal,
    Room,
    Terms,
)
from roost.servers.gate.routes import Route

HOME, OTHER = Route("501", "1", 10), Route("502", "7", 20)
MOVED = Refusal("UNAVAILABLE", "moved", 100)


class Scripted:
    """Ways that write down what was asked of them."""

    def __init__(self) -> None:
        self.looks: list[Route | None] = []
        self.greets: list[Route] = []
        self.sent: list[tuple[int, int]] = []
        """(sequence, oldest)"""
        self.messages: list[tuple[Message, int]] = []
        self.refused: list[tuple[object, str]] = []
        self.bounce_at_once = False
        self.on_refuse: Callable[[], None] | None = None
        self.room = Room(5000, 1 << 20)

    def look(self, lane: Lane, bounced: Route | None) -> None:
        self.looks.append(bounced)

    def greet(self, lane: Lane, route: Route) -> None:
        self.greets.append(route)

    def transmit(self, lane: Lane, message: Message, oldest: int) -> None:
        self.sent.append((message.sequence, oldest))
        self.messages.append((message, lane.turn))
        if self.bounce_at_once:
            lane.bounced(message, lane.turn, "NOT_SENT", MOVED)

    def refuse(self, lane: Lane, message: Message, refusal: Refusal) -> None:
        self.refused.append((message.id, refusal.code))
        if self.on_refuse is not None:
            self.on_refuse()


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def a_lane(limits: LaneLimits | None = None, *, resumed: bool = False) -> tuple[Lane, Scripted, Clock]:
    ways, clock = Scripted(), Clock()
    terms = Terms(limits or LaneLimits(), ways.room, LaneCounts(), clock)
    return (
        Lane("entity", "ann", ways, terms, resumed=resumed),
        ways,
        clock,
    )


def ready(lane: Lane, route: Route = HOME, last: int = 0) -> None:
    lane.start()
    lane.routed(lane.turn, route)
    lane.greeted(lane.turn, last, route.epoch)


def a_message(id_: object = None, sequence: int = 0, payload: bytes = b"x") -> Message:
    return Message(id_, sequence, payload)


def test_messages_wait_for_the_home_and_are_numbered_after_what_was_executed() -> None:
    lane, ways, _ = a_lane()
    for name in "abc":
        assert lane.take(a_message(name)) is None
    assert (ways.looks, ways.sent) == ([None], [])

    lane.routed(lane.turn, HOME)
    lane.greeted(lane.turn, 41, 10)

    assert ways.sent == [(42, 42), (43, 42), (44, 42)]


def test_no_lookup_and_no_login_while_messages_flow() -> None:
    lane, ways, _ = a_lane()
    ready(lane)
    for _ in range(5):
        lane.take(a_message())
        message, turn = ways.messages[-1]
        assert lane.answered(message, turn, 10)
    assert (ways.looks, ways.greets) == ([None], [HOME])


def test_the_oldest_without_an_answer_travels() -> None:
    lane, ways, _ = a_lane()
    ready(lane)
    lane.take(a_message())
    lane.take(a_message())
    lane.answered(*ways.messages[0], 10)
    lane.take(a_message())
    assert ways.sent == [(1, 1), (2, 1), (3, 2)]


def test_after_a_bounce_all_go_again_in_order_from_the_first_without_an_answer() -> None:
    lane, ways, _ = a_lane()
    ready(lane)
    for _ in range(4):
        lane.take(a_message())
    lane.answered(*ways.messages[0], 10)
    lane.bounced(*ways.messages[1], "MOVED", MOVED)
    lane.bounced(*ways.messages[2], "MOVED", MOVED)  # of the turn before: it moves nothing
    lane.take(a_message())
    assert ways.looks == [None, HOME]
    ways.sent.clear()

    lane.routed(lane.turn, OTHER)
    lane.greeted(lane.turn, 1, 20)

    assert ways.sent == [(2, 2), (3, 2), (4, 2), (5, 2)]


def test_a_late_reply_of_an_earlier_turn_completes_its_message() -> None:
    lane, ways, _ = a_lane()
    ready(lane)
    lane.take(a_message("a"))
    lane.take(a_message("b"))
    lane.bounced(*ways.messages[1], "MOVED", MOVED)
    assert lane.answered(*ways.messages[0], 10)
    ways.sent.clear()
    lane.routed(lane.turn, OTHER)
    lane.greeted(lane.turn, 1, 20)
    assert ways.sent == [(2, 2)]


def test_a_reply_of_an_older_epoch_does_not_count_and_the_message_goes_to_the_new_home() -> None:
    lane, ways, _ = a_lane()
    ready(lane)
    lane.take(a_message("a"))
    lane.changed(OTHER)
    assert not lane.answered(*ways.messages[0], 10)
    lane.routed(lane.turn, OTHER)
    lane.greeted(lane.turn, 0, 20)
    assert ways.sent == [(1, 1), (1, 1)]
    assert lane.answered(*ways.messages[1], 20)
    assert not lane.answered(*ways.messages[1], 20), "once is enough"


def test_a_home_that_answers_under_an_older_epoch_than_seen_is_looked_for_again() -> None:
    lane, ways, _ = a_lane()
    ready(lane, OTHER)
    lane.take(a_message())
    assert not lane.answered(*ways.messages[0], 19)
    assert (lane.state, ways.looks[-1], lane.epoch) == (State.LOOKING, OTHER, 20)


def test_a_login_under_an_older_epoch_than_seen_is_none() -> None:
    lane, _, _ = a_lane()
    lane.start()
    lane.routed(lane.turn, OTHER)
    lane.greeted(lane.turn, 0, 19)
    assert lane.state is State.LOOKING


def test_only_so_many_are_in_flight_and_only_so_many_wait() -> None:
    lane, ways, _ = a_lane(LaneLimits(window=2, messages=3))
    ready(lane)
    refusals = [lane.take(a_message(number)) for number in range(5)]
    assert refusals == [None, None, None, LANE_FULL, LANE_FULL]
    assert len(ways.sent) == 2
    lane.answered(*ways.messages[0], 10)
    assert ways.sent[-1] == (3, 2)


def test_bytes_are_bounded_too_and_given_back() -> None:
    ways, counts, clock = Scripted(), LaneCounts(), Clock()
    room = Room(10, 100)
    terms = Terms(LaneLimits(bytes=60), room, counts, clock)
    ann, bob = (Lane("e", user, ways, terms) for user in ("ann", "bob"))
    for lane in (ann, bob):
        ready(lane)
    assert ann.take(a_message(payload=b"x" * 50)) is None
    assert ann.take(a_message(payload=b"x" * 11)) is LANE_FULL
    assert bob.take(a_message(payload=b"x" * 51)) is GATE_FULL
    ann.close()
    assert (room.messages, room.bytes) == (0, 0)
    assert bob.take(a_message(payload=b"x" * 51)) is None
    assert dict(counts.refused) == {"QUEUE_FULL": 1, "GATE_FULL": 1}


def test_who_waits_too_long_is_told_why_and_the_next_one_waits_on() -> None:
    lane, ways, clock = a_lane(LaneLimits(wait_s=5))
    lane.take(a_message("a"))
    clock.now += 3
    lane.take(a_message("b"))
    lane.reason = Refusal("MIGRATING", "on the move")
    clock.now += 2.5
    lane.expire()
    assert ways.refused == [("a", "MIGRATING")]
    assert len(lane) == 1


def test_what_may_have_been_executed_is_never_said_not_to_be() -> None:
    lane, ways, clock = a_lane()
    ready(lane)
    for name in "abc":
        lane.take(a_message(name))
    lane.bounced(*ways.messages[0], "LOST", MOVED, unknown=True)
    lane.bounced(*ways.messages[1], "MOVED", MOVED)
    clock.now += 6
    lane.expire()
    assert ways.refused == [("b", "UNAVAILABLE")], "the next home can tell what became of the others"
    clock.now += 10
    lane.expire()  # of c nothing has been heard
    assert ways.refused[1:] == [("a", "OUTCOME_UNKNOWN"), ("c", "OUTCOME_UNKNOWN")]


def test_a_message_that_times_out_leaves_the_way_to_the_next() -> None:
    lane, ways, _ = a_lane(LaneLimits(window=1))
    ready(lane)
    lane.take(a_message("a"))
    lane.take(a_message("b"))
    lane.timed_out(ways.messages[0][0])
    assert ways.refused == [("a", UNKNOWN.code)]
    assert ways.sent == [(1, 1), (2, 2)]


def test_however_many_are_overdue_each_is_refused_in_order() -> None:
    lane, ways, clock = a_lane(LaneLimits(window=1, messages=3000, timeout_s=15))
    ready(lane)
    for name in range(3000):
        assert lane.take(a_message(name)) is None
    clock.now += 16
    lane.timed_out(ways.messages[0][0])
    assert [name for name, _ in ways.refused] == list(range(3000))
    assert len(lane) == 0


def test_who_is_hung_up_on_at_a_refusal_frees_the_room_once() -> None:
    lane, ways, clock = a_lane(LaneLimits(window=1))
    ready(lane)
    for name in "abc":
        lane.take(a_message(name))
    ways.on_refuse = lane.close
    clock.now += 16
    lane.timed_out(ways.messages[0][0])
    assert ways.refused == [("a", UNKNOWN.code)]
    assert (ways.room.messages, ways.room.bytes) == (0, 0)


def test_a_missing_earlier_message_makes_all_go_again_at_once() -> None:
    lane, ways, _ = a_lane()
    ready(lane)
    for _ in range(3):
        lane.take(a_message())
    lane.out_of_order(*ways.messages[2])
    assert ways.sent[3:] == [(1, 1), (2, 1), (3, 1)]
    assert lane.state is State.READY


def test_an_entity_that_never_finds_the_order_is_looked_for_again() -> None:
    lane, ways, _ = a_lane()
    ready(lane)
    lane.take(a_message())
    for _ in range(4):
        lane.out_of_order(*ways.messages[-1])
    assert lane.state is State.LOOKING


def test_a_way_that_bounces_at_once_ends_the_turn() -> None:
    lane, ways, _ = a_lane()
    lane.take(a_message())
    lane.take(a_message())
    ways.bounce_at_once = True
    lane.routed(lane.turn, HOME)
    lane.greeted(lane.turn, 0, 10)
    assert ways.sent == [(1, 1)]
    assert (lane.state, len(lane)) == (State.LOOKING, 2)


def test_a_clients_numbers_must_rise_above_what_was_executed() -> None:
    lane, ways, _ = a_lane()
    ready(lane, last=7)
    assert lane.take(a_message(sequence=7)) is NOT_RISING
    assert lane.take(a_message(sequence=8)) is None
    assert lane.take(a_message(sequence=8)) is NOT_RISING
    assert lane.take(a_message(sequence=12)) is None
    assert lane.take(a_message()) is None
    assert [number for number, _ in ways.sent] == [8, 12, 13]


def test_numbers_that_came_before_the_login_are_judged_by_it() -> None:
    lane, ways, _ = a_lane()
    lane.take(a_message("old", sequence=3))
    lane.take(a_message("new", sequence=9))
    ready(lane, last=5)
    lane.routed(lane.turn, HOME)
    lane.greeted(lane.turn, 5, 10)
    assert ways.refused == [("old", "BAD_SEQUENCE")]
    assert ways.sent == [(9, 9)]


def test_a_resumed_session_asks_again_for_what_was_executed() -> None:
    lane, ways, _ = a_lane(resumed=True)
    ready(lane, last=7)
    for number in (6, 7, 8):
        assert lane.take(a_message(sequence=number)) is None
    assert ways.sent == [(6, 6), (7, 6), (8, 6)]


def test_a_released_user_is_looked_for_when_they_ask_again() -> None:
    lane, ways, _ = a_lane()
    ready(lane)
    lane.changed(Route("", "", 10))
    assert (lane.state, ways.looks) == (State.IDLE, [None])
    lane.take(a_message())
    assert ways.looks == [None, None]


@pytest.mark.parametrize("news_first", [True, False])
def test_a_release_during_the_first_login_does_not_end_the_search(news_first: bool) -> None:
    lane, ways, _ = a_lane()
    lane.start()
    lane.routed(lane.turn, HOME)
    asked, released = lane.turn, Route("", "", HOME.epoch)
    if news_first:
        lane.changed(released)
        lane.ungreeted(asked, "MOVED", MOVED)
    else:
        lane.ungreeted(asked, "MOVED", MOVED)
        lane.changed(released)
    assert lane.state is State.LOOKING
    lane.routed(lane.turn, OTHER)
    lane.greeted(lane.turn, 0, OTHER.epoch)
    assert (lane.state, ways.greets) == (State.READY, [HOME, OTHER])


def test_a_release_while_the_first_home_is_looked_for_changes_nothing() -> None:
    lane, ways, _ = a_lane()
    lane.start()
    lane.changed(Route("", "", 10))
    assert (lane.state, ways.looks) == (State.LOOKING, [None])


def test_the_same_home_under_a_new_epoch_needs_no_login() -> None:
    lane, ways, _ = a_lane()
    ready(lane)
    lane.changed(Route("501", "1", 15))
    assert (lane.state, lane.epoch, ways.greets) == (State.READY, 15, [HOME])


def test_news_that_is_older_than_what_was_seen_changes_nothing() -> None:
    lane, ways, _ = a_lane()
    ready(lane, OTHER)
    lane.changed(HOME)
    assert (lane.state, lane.route, ways.looks) == (State.READY, OTHER, [None])


def test_an_idle_user_logs_in_again_when_the_connection_to_the_home_is_lost() -> None:
    lane, ways, _ = a_lane()
    ready(lane)
    lane.lost()
    assert ways.looks == [None, HOME]


def test_after_the_end_nothing_is_taken_and_nothing_counts() -> None:
    lane, ways, _ = a_lane()
    ready(lane)
    lane.take(a_message())
    lane.close()
    assert lane.take(a_message()) is CLOSED
    assert not lane.answered(*ways.messages[0], 10)
    lane.changed(OTHER)
    lane.expire()
    assert (lane.state, ways.refused) == (State.CLOSED, [])
