"""The verdicts on a trading evening: each can fail, and then says whom it concerns."""

from __future__ import annotations

import msgspec

from roost.drills.ledger import Verdict
from roost.drills.order_verdicts import (
    Logged,
    counts,
    ids_rise,
    in_order,
    nothing_lost,
    nothing_open,
    verdicts,
)
from roost.drills.trader_book import Sent, TraderBook
from roost.lanes.commands import Method, Outcome, State

SHARD, LANE = 3, 7


def outcome(order_id: int, seq: int, state: int = State.OPEN) -> Outcome:
    return Outcome(order_id, state, 0, 1, "", SHARD, LANE, 1, seq, 1, 0)


def evening() -> TraderBook:
    """Two orders and the cancel of the first."""
    book = TraderBook("ann", "ACME")
    book.commands = [
        Sent(1, Method.NEW, "ACME", b"", tries=1, outcome=outcome(100, 2)),
        Sent(2, Method.NEW, "ACME", b"", tries=1, outcome=outcome(101, 3)),
        Sent(3, Method.CANCEL, "ACME", b"", cancels=100, tries=1, outcome=outcome(100, 5, State.CANCELLED)),
    ]
    return book


def log_of(book: TraderBook) -> Logged:
    return Logged({(SHARD, one.outcome.seq): ("ann", one.number) for one in book.commands if one.outcome})


def broken(verdict: Verdict, said: str) -> bool:
    return not verdict.held and said in verdict.said


def test_a_good_evening_holds_with_its_numbers() -> None:
    book = evening()
    found = verdicts([book], log_of(book))
    assert [(one.guarantee, one.held) for one in found] == [(f"G{n}", True) for n in (13, 14, 15, 16)]
    assert found[1].said == "3 sent = 3 accepted + 0 rejected"
    assert counts([book])["cancels"] == 1


def test_g13_a_command_that_ran_before_an_earlier_one() -> None:
    book = evening()
    book.commands[1].outcome = outcome(101, 1)
    assert broken(in_order([book]), "ran before 2")


def test_g13_a_command_that_was_sent_twice_may_have_been_taken_either_time() -> None:
    book = evening()
    book.commands[0].tries, book.commands[0].outcome = 2, outcome(100, 4)
    assert in_order([book]).held


def test_g13_a_cancel_before_its_order() -> None:
    book = evening()
    book.commands[2].tries, book.commands[2].outcome = 2, outcome(100, 1, State.CANCELLED)
    assert broken(in_order([book]), "the cancel of 100 ran before its order")


def test_g14_a_command_without_an_answer() -> None:
    book = evening()
    book.commands[1].outcome = None
    assert broken(nothing_open([book]), "command 2 for ACME never got an answer")
    book.commands[1].refused = "BUSY"
    assert nothing_open([book]).said == "3 sent = 2 accepted + 1 rejected"


def test_g14_an_evening_on_which_nothing_was_sent_proves_nothing() -> None:
    assert broken(nothing_open([TraderBook("ann", "ACME")]), "nothing was sent")


def test_g15_an_id_that_was_given_twice() -> None:
    first, second = evening(), evening()
    assert broken(ids_rise([first, second]), "order id 100 was given 2 times")


def test_g15_ids_that_do_not_rise_in_their_lane() -> None:
    book = evening()
    book.commands[1].outcome = outcome(99, 3)
    assert broken(ids_rise([book]), "id 99 after 100")


def test_g16_an_accepted_command_that_the_log_lacks_or_has_as_anothers() -> None:
    book = evening()
    logged = log_of(book)
    del logged.commands[SHARD, 3]
    assert broken(nothing_lost([book], logged), "command 2 is not at 3/3 of the log")
    logged.commands[SHARD, 3] = "bob", 2
    assert broken(nothing_lost([book], logged), "command 2 is not at 3/3 of the log")
    logged.cut[SHARD] = 3
    assert nothing_lost([book], logged).held, "the snapshot has it"


def test_g16_another_answer_the_second_time() -> None:
    book = evening()
    book.again.append("ann: another answer to command 1")
    assert broken(nothing_lost([book], log_of(book)), "another answer to command 1")


def test_a_refused_command_is_not_looked_for_in_the_log() -> None:
    book = evening()
    refused = msgspec.structs.replace(outcome(0, 9), state=State.REFUSED, reason="CLOSED")
    book.commands.append(Sent(4, Method.CANCEL, "ACME", b"", tries=1, outcome=refused))
    assert nothing_lost([book], log_of(evening())).held
