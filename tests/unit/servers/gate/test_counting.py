"""What a gate counts while a drain runs: each fault is found, and none where there is none."""

from __future__ import annotations

from roost.binding.drain.certificate import GateReport
from roost.servers.gate.counting import MOST_EPOCHS, MOVING_S, Book, Tally
from roost.servers.gate.queued import LaneLimits
from roost.servers.gate.routes import Route
from roost.wire.codes import Code
from tests.unit.servers.gate.carried import HOME, OTHER, Carried

MOVED = Code.MOVED


def told(book: Book) -> GateReport:
    found = book.report("g@1", 0.0, is_final=True)
    assert found.adds_up
    assert found.taken == found.answered + found.all_refused + found.open + found.lost
    return found


def faults(book: Book) -> dict[str, int]:
    found, names = told(book), ("lost", "doubled", "reordered", "disconnected")
    return {name: getattr(found, name) for name in names if getattr(found, name)}


def test_without_a_job_nothing_is_kept_of_a_message() -> None:
    town = Carried()
    town.settle()
    town.say("a")
    assert [message.trace for message in town.lane] == [None]
    assert town.carrier.books == ()


def test_a_book_that_is_opened_again_counts_what_is_on_its_way_once() -> None:
    """A rollback that is ordered while the drain counts its last."""
    town = Carried()
    town.settle()
    book = town.counted()
    town.say("a")
    sent = town.take()
    town.carrier.leave_out(book)
    town.carrier.count_for(book)
    sent.ok(b"1", 10)
    assert faults(book) == {}
    assert (told(book).taken, told(book).answered) == (1, 1)


def test_a_planned_move_under_load_has_no_fault() -> None:
    town = Carried()
    town.settle()
    book = town.counted()
    for name in "abc":
        town.say(name)
    town.take().ok(b"1", 10)
    parked = [town.take(), town.take()]
    town.say("d")
    parked.append(town.take())
    for one in parked:
        one.refused(MOVED)
    town.clock.now += 0.25
    town.settle(OTHER, last=1)
    for name in "bcd":
        town.take().ok(name.encode(), 20)
    assert faults(book) == {}
    found = told(book)
    assert (found.users, found.taken, found.answered, found.open) == (1, 4, 4, 0)
    assert (found.forwarded, found.resent, found.longest_pause_ms) == (7, 3, 250)
    assert {at: (c.taken, c.sent, c.answered) for at, c in book.users["ann"].epochs.items()} == {
        10: (4, 4, 1),
        20: (0, 3, 3),
    }


def test_what_was_on_its_way_when_the_counting_began_is_counted() -> None:
    town = Carried()
    town.settle()
    town.say("a")
    book = town.counted()
    assert (book.taken, book.open) == (1, 1)
    town.take().ok(b"1", 10)
    assert (book.answered, book.open) == (1, 0)


def test_what_comes_after_the_end_is_not_counted_and_what_came_before_is() -> None:
    town = Carried()
    town.settle()
    book = town.counted()
    town.say("a")
    town.books.remove(book)
    town.carrier.leave_out(book)
    town.say("b")
    assert (book.taken, book.open) == (1, 1)
    for answer in (b"1", b"2"):
        town.take().ok(answer, 10)
    assert (book.answered, book.open) == (1, 0)


def test_two_jobs_count_each_for_itself() -> None:
    town = Carried()
    town.settle()
    first = town.counted("job-1")
    town.say("a")
    second = town.counted("job-2")
    town.say("b")
    for answer in (b"1", b"2"):
        town.take().ok(answer, 10)
    assert [(book.taken, book.answered) for book in (first, second)] == [(2, 2), (2, 2)]


def test_a_message_without_a_reply_in_its_time_is_lost() -> None:
    town = Carried()
    town.settle()
    book = town.counted()
    town.say("a")
    town.clock.now += 15
    town.take().lost()
    assert town.client.told == [("a", "OUTCOME_UNKNOWN")]
    assert faults(book) == {"lost": 1}
    assert told(book).unknown == 1


def test_an_answer_that_the_time_was_over_is_an_unknown_outcome_too() -> None:
    town = Carried()
    town.settle()
    book = town.counted()
    town.say("a")
    town.take().refused(Code.DEADLINE, epoch=10)
    assert faults(book) == {"lost": 1}


def test_what_was_executed_and_whose_reply_is_not_kept_is_lost() -> None:
    """The client is told `OUTCOME_UNKNOWN`; a certificate that says "answered" hides it."""
    town = Carried()
    town.settle()
    book = town.counted()
    town.say("a")
    town.lane.changed(OTHER)
    town.settle(OTHER, last=1)
    town.take()
    town.take().refused(Code.REFUSED, epoch=20, executed=True)
    assert town.client.told == [("a", "OUTCOME_UNKNOWN")]
    assert faults(book) == {"lost": 1}
    assert told(book).answered == 0


def test_an_unknown_outcome_is_no_longer_lost_once_the_reply_comes() -> None:
    town = Carried()
    town.settle()
    book = town.counted()
    town.say("a")
    town.take().lost()
    town.settle(OTHER)
    again = town.take()
    town.clock.now += 15
    town.lane.fail(next(iter(town.lane)), town.lane.reason)
    assert faults(book) == {"lost": 1}
    again.ok(b"1", 20)
    assert faults(book) == {}
    assert told(book).answered == 1


def test_an_unknown_outcome_is_known_when_the_client_asks_again_by_the_number() -> None:
    town = Carried()
    town.settle()
    book = town.counted()
    town.say("a", sequence=7)
    town.clock.now += 15
    town.take().lost()
    town.carrier.close("dropped")
    town.client, town.carrier = town.session("ann", resumed=True)
    town.settle(OTHER, last=7)
    town.say("a", sequence=7)
    town.take().ok(b"1", 20)
    assert faults(book) == {}
    assert (told(book).taken, told(book).answered) == (2, 2)


def test_a_reply_of_an_owner_of_the_past_makes_nothing_known() -> None:
    town = Carried()
    town.settle()
    book = town.counted()
    town.say("a")
    old = town.take()
    town.lane.changed(OTHER)
    town.clock.now += 15
    town.lane.fail(next(iter(town.lane)), town.lane.reason)
    old.ok(b"1", 10)
    assert faults(book) == {"lost": 1}


def test_a_second_reply_with_another_payload_is_a_doubled_message() -> None:
    town = Carried()
    town.settle()
    book = town.counted()
    town.say("a")
    town.say("b")
    first, second = town.take(), town.take()
    second.refused(MOVED)
    first.ok(b"one", 10)
    assert town.lane.turn > 0
    town.settle(OTHER)
    town.take().ok(b"two", 20)
    assert faults(book) == {}

    town.say("c")
    slow = town.take()
    town.lane.lost()
    town.settle(Route("502", "7", 21), last=2)
    repeated = town.take()
    slow.ok(b"three", 21)
    repeated.ok(b"three, executed again", 21)
    assert faults(book) == {"doubled": 1}


def test_the_same_reply_again_is_none() -> None:
    town = Carried()
    town.settle()
    book = town.counted()
    town.say("a")
    slow = town.take()
    town.lane.lost()
    town.settle(HOME)
    repeated = town.take()
    slow.ok(b"one", 10)
    repeated.ok(b"one", 10)
    assert faults(book) == {}


def test_a_reply_that_is_no_longer_kept_is_no_second_execution() -> None:
    town = Carried()
    town.settle()
    book = town.counted()
    town.say("a")
    slow = town.take()
    town.lane.lost()
    town.settle(HOME)
    repeated = town.take()
    slow.ok(b"one", 10)
    repeated.refused(Code.REFUSED, epoch=10, executed=True)
    assert faults(book) == {}


def test_whoever_hears_that_a_reply_is_no_longer_kept_is_not_told_that_nothing_was_executed() -> None:
    """A client would send it again under a new number, and have it executed twice."""
    town = Carried()
    town.settle()
    town.say("a")
    town.take().lost()
    town.settle()
    town.take().refused(Code.REFUSED, epoch=10, executed=True)
    assert town.client.told == [("a", "OUTCOME_UNKNOWN")]


def test_what_an_entity_refuses_is_refused() -> None:
    town = Carried()
    town.settle()
    town.say("a")
    town.take().refused(Code.REFUSED, epoch=10)
    assert town.client.told == [("a", "REFUSED")]


def test_a_late_reply_of_the_past_owner_after_that_of_the_new_one_is_none_either() -> None:
    town = Carried()
    town.settle()
    book = town.counted()
    town.say("a")
    old = town.take()
    town.lane.changed(OTHER)
    town.settle(OTHER)
    town.take().ok(b"v2", 20)
    old.ok(b"v1", 10)
    assert faults(book) == {}


def test_a_lower_number_answered_by_a_later_home_is_reordered() -> None:
    town = Carried()
    town.settle()
    book = town.counted()
    town.say("a")
    town.say("b")
    first, second = town.take(), town.take()
    second.ok(b"b", 10)  # the home executed b, though a was missing
    first.refused(MOVED)
    town.settle(OTHER)
    town.take().ok(b"a", 20)
    assert faults(book) == {"reordered": 1}


def test_replies_that_overtake_each_other_under_one_epoch_are_not() -> None:
    town = Carried()
    town.settle()
    book = town.counted()
    town.say("a")
    town.say("b")
    first, second = town.take(), town.take()
    second.ok(b"b", 10)
    first.ok(b"a", 10)
    assert faults(book) == {}


def test_a_refusal_out_of_turn_is_no_execution_and_reorders_nothing() -> None:
    town = Carried()
    town.settle()
    book = town.counted()
    town.say("a")
    town.say("b")
    first, second = town.take(), town.take()
    second.refused(Code.BAD_REQUEST, epoch=10)
    first.refused(MOVED)
    town.settle(OTHER)
    town.take().ok(b"a", 20)
    assert faults(book) == {}


def test_a_resumed_session_may_ask_for_numbers_that_were_answered() -> None:
    town = Carried()
    town.settle()
    book = town.counted()
    for name in "ab":
        town.say(name)
        town.take().ok(name.encode(), 10)
    town.carrier.close("dropped")
    town.client, town.carrier = town.session("ann", resumed=True)
    town.settle(OTHER, last=2)
    town.say("a", sequence=1)
    town.take().ok(b"a", 20)
    assert faults(book) == {}
    assert told(book).users == 1


def test_refusals_are_counted_by_code_and_are_not_lost() -> None:
    town = Carried(limits=LaneLimits(messages=1, wait_s=5))
    book = town.counted()
    assert town.say("a") is None
    assert town.say("b") is not None
    town.clock.now += 6
    town.lane.expire()
    assert told(book).refused == {"QUEUE_FULL": 1, "UNAVAILABLE": 1}
    assert faults(book) == {}


def test_what_a_client_leaves_behind_is_not_lost() -> None:
    town = Carried()
    town.settle()
    book = town.counted()
    town.say("a")
    town.carrier.close("closed")
    assert told(book).refused == {"LEFT": 1}
    assert faults(book) == {}


def test_what_a_gate_that_stops_leaves_without_an_outcome_is_lost() -> None:
    town = Carried()
    town.settle()
    book = town.counted()
    town.clock.now += MOVING_S
    town.say("a")
    town.carrier.close("draining")
    assert faults(book) == {"lost": 1}


def test_a_session_that_ends_during_the_move_by_anything_but_the_client_is_disconnected() -> None:
    for reason, is_fault in (("taken-over", True), ("draining", True), ("closed", False), ("dropped", False)):
        town = Carried()
        town.settle()
        book = town.counted()
        town.clock.now += MOVING_S
        town.say("a")
        town.take().refused(MOVED)
        town.carrier.close(reason)
        assert book.disconnected == is_fault, reason


def test_a_session_that_ends_soon_after_the_move_is_disconnected_and_later_it_is_not() -> None:
    for seconds, is_fault in ((MOVING_S - 1, True), (MOVING_S + 1, False)):
        town = Carried()
        book = town.counted()
        town.settle(OTHER)
        town.clock.now += seconds
        town.carrier.close("taken-over")
        assert book.disconnected == is_fault, seconds


def test_who_comes_again_to_this_gate_was_not_disconnected() -> None:
    town = Carried()
    book = town.counted()
    town.settle(OTHER)
    town.carrier.close("taken-over", replaced=True)
    assert faults(book) == {}


def test_the_memory_is_bounded_and_a_report_says_when_it_did_not_do() -> None:
    town = Carried()
    book = town.counted(most_users=1)
    _, other = town.session("bob")
    assert other.books == ()
    town.say("a", carrier=other)
    assert (book.taken, len(book.users), told(book).uncounted) == (0, 1, 1)
    assert town.session("ann")[1].books == (book,)


def test_only_so_many_homes_of_a_user_are_kept_apart() -> None:
    tally = Tally()
    for epoch in range(1, 3 * MOST_EPOCHS):
        tally.at(epoch).taken += 1
        tally.at(epoch).top = epoch
    assert len(tally.epochs) == MOST_EPOCHS
    assert sum(counts.taken for counts in tally.epochs.values()) == 3 * MOST_EPOCHS - 1
    assert tally.is_behind(1, 3 * MOST_EPOCHS)
