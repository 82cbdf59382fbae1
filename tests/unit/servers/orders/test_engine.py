"""What the machine of a shard answers: refusals, numbers used again, events, halts."""

from __future__ import annotations

import pytest

from roost.lanes.commands import (
    MAX_PRICE,
    MAX_QUANTITY,
    Cancel,
    Method,
    New,
    Outcome,
    Reason,
    Side,
    State,
    decode_event,
)
from roost.servers.orders.accounts import MAX_ANSWERS, MAX_EVENTS
from roost.servers.orders.closed import MAX_CLOSED
from tests.unit.servers.orders.desk import EPOCH, LANE, SHARD, Desk, ids_in


def new(number: int, *, account: str = "ann", acked: int = 0, price: int = 100, quantity: int = 5) -> New:
    return New(account, number, acked, "ACME", Side.BUY, price, quantity)


def refused(outcome: Outcome) -> str:
    assert outcome.state == State.REFUSED
    return outcome.reason


def test_an_answer_has_a_receipt() -> None:
    desk = Desk()
    desk.buy("ann", 100, 5)

    outcome = desk.buy("ann", 100, 5)

    assert (outcome.state, outcome.filled, outcome.remaining) == (State.OPEN, 0, 5)
    assert (outcome.shard, outcome.lane, outcome.epoch, outcome.seq) == (SHARD, LANE, EPOCH, 2)
    assert (outcome.durability, outcome.at_ms) == (1, 1_002)


@pytest.mark.parametrize(
    ("side", "price", "quantity", "reason"),
    [
        (0, 100, 5, Reason.BAD_SIDE),
        (3, 100, 5, Reason.BAD_SIDE),
        (Side.BUY, 100, 0, Reason.BAD_QUANTITY),
        (Side.BUY, 100, -1, Reason.BAD_QUANTITY),
        (Side.BUY, 100, MAX_QUANTITY + 1, Reason.BAD_QUANTITY),
        (Side.BUY, 100, 2**64 - 1, Reason.BAD_QUANTITY),
        (Side.SELL, 0, 5, Reason.BAD_PRICE),
        (Side.SELL, -100, 5, Reason.BAD_PRICE),
        (Side.SELL, MAX_PRICE + 1, 5, Reason.BAD_PRICE),
    ],
)
def test_bad_input_is_refused_and_changes_no_book(side: int, price: int, quantity: int, reason: str) -> None:
    desk = Desk()

    outcome = desk.new("ann", side, price, quantity)

    assert refused(outcome) == reason
    assert desk.engine.book("ACME") is None
    assert desk.rows == []


def test_the_largest_order_is_taken() -> None:
    desk = Desk()
    desk.buy("ann", MAX_PRICE, MAX_QUANTITY)

    outcome = desk.sell("bob", 1, MAX_QUANTITY)

    assert (outcome.state, outcome.filled) == (State.FILLED, MAX_QUANTITY)


def test_a_cancel_names_an_open_order_of_its_account() -> None:
    desk = Desk()
    open_id = desk.buy("ann", 100, 5).order_id

    assert refused(desk.cancel("bob", open_id)) == Reason.NOT_YOURS
    assert refused(desk.cancel("ann", open_id + 1)) == Reason.UNKNOWN_ORDER
    assert refused(desk.cancel("ann", 2**64 - 1)) == Reason.UNKNOWN_ORDER
    assert refused(desk.cancel("ann", open_id, symbol="OTHER")) == Reason.UNKNOWN_ORDER
    assert ids_in(desk) == ([open_id], [])

    outcome = desk.cancel("ann", open_id)
    assert (outcome.order_id, outcome.state, outcome.remaining) == (open_id, State.CANCELLED, 5)
    assert refused(desk.cancel("ann", open_id)) == Reason.CLOSED
    assert refused(desk.cancel("bob", open_id)) == Reason.NOT_YOURS


def test_an_amend_is_checked_like_a_new_order() -> None:
    desk = Desk()
    order_id = desk.buy("ann", 100, 5).order_id
    desk.sell("bob", 100, 2)

    assert refused(desk.amend("bob", order_id, 100, 4)) == Reason.NOT_YOURS
    assert refused(desk.amend("ann", order_id, 100, 2)) == Reason.BAD_QUANTITY
    assert refused(desk.amend("ann", order_id, 100, -4)) == Reason.BAD_QUANTITY
    assert refused(desk.amend("ann", order_id, 0, 4)) == Reason.BAD_PRICE

    outcome = desk.amend("ann", order_id, 100, 4)
    assert (outcome.state, outcome.filled, outcome.remaining) == (State.OPEN, 2, 2)


def test_an_amend_to_a_better_price_trades() -> None:
    desk = Desk()
    desk.sell("bob", 105, 3)
    order_id = desk.buy("ann", 100, 5).order_id

    outcome = desk.amend("ann", order_id, 105, 3)

    assert (outcome.state, outcome.filled) == (State.FILLED, 3)
    assert ids_in(desk) == ([], [])
    assert [(event.account, event.price) for event in desk.events] == [("bob", 105), ("ann", 105)]


def test_an_order_that_is_larger_again_waits_behind_the_others() -> None:
    desk = Desk()
    first = desk.buy("ann", 100, 5).order_id
    second = desk.buy("bob", 100, 5).order_id

    desk.amend("ann", first, 100, 3)
    assert ids_in(desk) == ([first, second], [])
    desk.amend("ann", first, 100, 5)
    assert ids_in(desk) == ([second, first], [])


def test_a_halted_symbol_takes_cancels_only() -> None:
    desk = Desk()
    order_id = desk.buy("ann", 100, 5).order_id
    desk.halt("ACME")

    assert refused(desk.sell("bob", 100, 5)) == Reason.HALTED
    assert refused(desk.amend("ann", order_id, 100, 4)) == Reason.HALTED
    assert desk.sell("bob", 100, 5, symbol="OTHER").state == State.OPEN
    assert desk.cancel("ann", order_id).state == State.CANCELLED

    desk.resume("ACME")
    assert desk.sell("bob", 100, 5).state == State.OPEN


def test_the_same_number_gets_the_first_answer_again() -> None:
    desk = Desk()
    desk.run(Method.NEW, new(1), 11)
    desk.run(Method.NEW, new(1), 12)
    desk.run(Method.NEW, new(1, acked=1), 13)

    first, again, later = desk.results
    assert again[0] == later[0] == first[0]
    assert again[1:] == (None, None)
    assert ids_in(desk) == ([11], [])
    assert desk.engine.answer_to("ann", 1) == first[0]
    assert desk.engine.answer_to("bob", 1) is None


def test_a_refusal_is_the_first_answer_too() -> None:
    desk = Desk()
    desk.halt("ACME")
    desk.run(Method.NEW, new(1), 11)
    desk.resume("ACME")
    desk.run(Method.NEW, new(1), 12)

    assert desk.results[3][0] == desk.results[1][0]


@pytest.mark.parametrize("other", [new(1, quantity=6), new(1, price=99), Cancel("ann", 1, 0, 11)])
def test_a_number_is_not_used_for_something_else(other: New | Cancel) -> None:
    desk = Desk()
    desk.run(Method.NEW, new(1), 11)

    method = Method.NEW if isinstance(other, New) else Method.CANCEL
    assert refused(desk.run(method, other, 12)) == Reason.DUPLICATE

    assert desk.run(Method.NEW, new(1), 13).order_id == 11
    assert ids_in(desk) == ([11], [])


def test_numbers_of_two_accounts_have_nothing_to_do_with_each_other() -> None:
    desk = Desk()
    assert desk.run(Method.NEW, new(1), 11).order_id == 11
    assert desk.run(Method.NEW, new(1, account="bob"), 12).order_id == 12


@pytest.mark.parametrize("number", [0, -1])
def test_numbers_begin_at_one(number: int) -> None:
    desk = Desk()
    assert refused(desk.run(Method.NEW, new(number), 11)) == Reason.TOO_OLD
    desk.run(Method.NEW, new(1), 12)
    assert refused(desk.run(Method.NEW, new(number), 13)) == Reason.TOO_OLD


def test_answers_that_were_seen_are_dropped_and_their_numbers_never_executed_again() -> None:
    desk = Desk()
    for number in (1, 2, 3):
        desk.run(Method.NEW, new(number), 10 + number)
    desk.run(Method.NEW, new(7, acked=3), 14)

    assert [desk.engine.answer_to("ann", n) is None for n in (1, 2, 3, 7)] == [True, True, False, False]
    assert refused(desk.run(Method.NEW, new(2), 15)) == Reason.TOO_OLD
    assert desk.run(Method.NEW, new(5), 16).order_id == 16, "it was never used, and nothing says it was seen"


@pytest.mark.parametrize("restarts", [False, True])
def test_answers_that_were_not_seen_are_kept_beside_those_that_were(restarts: bool) -> None:
    desk = Desk()
    for number in (1, 5, 6):
        desk.run(Method.NEW, new(number), 10 + number)
    if restarts:
        desk.restart()
    desk.run(Method.NEW, new(7, acked=5), 17)

    assert [desk.engine.answer_to("ann", n) is None for n in (1, 5, 6, 7)] == [True, False, False, False]
    assert desk.run(Method.NEW, new(6), 18).order_id == 16, "the first answer, and no second order"


def test_what_an_account_acknowledges_is_at_most_what_it_has_sent() -> None:
    desk = Desk()
    desk.run(Method.NEW, new(1, acked=10**18), 11)

    assert desk.run(Method.NEW, new(1, acked=10**18), 12).order_id == 11
    assert desk.run(Method.NEW, new(2), 13).order_id == 13


def test_an_account_that_acknowledges_nothing_loses_its_oldest_answers() -> None:
    desk = Desk()
    for number in range(1, MAX_ANSWERS + 2):
        desk.run(Method.NEW, new(number), 10 + number)

    assert desk.engine.answer_to("ann", MAX_ANSWERS + 1) is not None
    assert desk.engine.answer_to("ann", 257) is not None
    assert refused(desk.run(Method.NEW, new(1), 9)) == Reason.TOO_OLD
    assert refused(desk.run(Method.NEW, new(256), 9)) == Reason.TOO_OLD


def test_a_fill_is_told_to_both_accounts() -> None:
    desk = Desk()
    maker = desk.sell("bob", 100, 5).order_id
    taker = desk.buy("ann", 101, 3).order_id

    of_maker, of_taker = desk.events
    assert (of_maker.account, of_maker.order_id, of_maker.side, of_maker.remaining) == ("bob", maker, 2, 2)
    assert (of_taker.account, of_taker.order_id, of_taker.side, of_taker.remaining) == ("ann", taker, 1, 0)
    assert {(event.price, event.quantity, event.seq) for event in desk.events} == {(100, 3, 2)}


def test_an_account_may_trade_with_itself_and_is_told_of_both_orders() -> None:
    desk = Desk()
    desk.sell("ann", 100, 5)
    desk.buy("ann", 100, 5)

    assert [(event.number, event.side) for event in desk.events] == [(1, Side.SELL), (2, Side.BUY)]


def test_one_row_for_each_order_that_changed() -> None:
    desk = Desk()
    first = desk.sell("bob", 100, 5).order_id
    second = desk.sell("cid", 100, 5).order_id
    taker = desk.buy("ann", 100, 7).order_id

    assert {row.order_id: (row.remaining, row.state) for row in desk.rows} == {
        first: (0, State.FILLED),
        second: (3, State.OPEN),
        taker: (0, State.FILLED),
    }
    assert {(row.shard, row.seq, row.epoch, row.updated_ms) for row in desk.rows} == {
        (SHARD, 3, EPOCH, 1_003)
    }


def test_events_after_a_cursor_and_a_gap_where_they_are_kept_no_longer() -> None:
    desk = Desk()
    for _ in range(MAX_EVENTS + 10):
        desk.sell("bob", 100, 1)
        desk.buy("ann", 100, 1)
    last = MAX_EVENTS + 10

    def after(account: str, number: int, seq: int = 10_000) -> tuple[int, list[int]]:
        goes_on, events = desk.engine.events_after(account, number, seq)
        return goes_on, [decode_event(event).number for event in events]

    assert after("ann", last - 2) == (last - 2, [last - 1, last])
    assert after("ann", last) == (last, [])
    assert after("ann", 10) == (10, list(range(11, last + 1)))
    assert after("ann", 3) == (10, list(range(11, last + 1)))  # what is kept is not withheld
    assert after("ann", last + 1) == (last, [])
    assert after("nobody", 0) == after("nobody", 1) == (0, [])
    newest = decode_event(desk.engine.events_after("ann", last - 1, 10_000)[1][0])
    assert after("ann", last - 2, newest.seq - 1) == (last - 2, [last - 1])  # the log has no more yet


def test_a_query_says_how_an_order_stands() -> None:
    desk = Desk()
    order_id = desk.sell("bob", 100, 5).order_id
    desk.buy("ann", 100, 2)

    row = desk.engine.query(order_id, "bob")
    assert not isinstance(row, str)
    assert (row.remaining, row.state, row.seq) == (3, State.OPEN, 2)
    assert desk.engine.query(order_id, "ann") == Reason.NOT_YOURS
    assert desk.engine.query(order_id + 9, "bob") == Reason.UNKNOWN_ORDER

    desk.cancel("bob", order_id)
    row = desk.engine.query(order_id, "bob")
    assert not isinstance(row, str)
    assert row.state == State.CANCELLED


def test_the_oldest_of_the_closed_orders_are_forgotten() -> None:
    desk = Desk()
    for number in range(1, MAX_CLOSED + 3):
        command = New("ann", number, number, "ACME", Side.BUY, 100, 5, immediate=True)
        desk.run(Method.NEW, command, 100 + number)

    assert desk.engine.query(102, "ann") == Reason.UNKNOWN_ORDER
    assert not isinstance(desk.engine.query(103, "ann"), str)
    digest = desk.engine.digest()
    desk.restart()
    assert desk.engine.digest() == digest
    assert desk.engine.query(102, "ann") == Reason.UNKNOWN_ORDER
    assert not isinstance(desk.engine.query(103, "ann"), str)


def test_markers_change_nothing() -> None:
    desk = Desk()
    desk.buy("ann", 100, 5)
    before = desk.engine.digest()

    assert desk.run(Method.TAKEOVER, b"").state == State.OPEN
    assert desk.run(Method.CHECK, before).seq == 3
    assert desk.engine.digest() == before


def test_an_id_that_was_given_out_twice_is_a_fault_that_changes_nothing() -> None:
    desk = Desk()
    desk.run(Method.NEW, new(1), 11)
    before = desk.engine.digest()

    with pytest.raises(ValueError, match="given out twice"):
        desk.run(Method.NEW, new(2), 11)

    assert desk.engine.digest() == before
    assert desk.engine.answer_to("ann", 2) is None


def test_a_method_that_is_not_for_the_log_is_a_fault() -> None:
    with pytest.raises(KeyError):
        Desk().run(Method.QUERY, b"\x92\xa3ann\x0b")


def test_only_parts_that_changed_are_written_and_one_without_orders_is_gone() -> None:
    desk = Desk()
    acme = desk.buy("ann", 100, 5).order_id
    desk.buy("bob", 100, 5, symbol="OTHER")
    assert {"book:ACME", "book:OTHER"} <= desk.engine.dirty().keys()

    desk.cancel("ann", acme)
    parts = desk.engine.dirty()

    assert parts["book:ACME"] == b""
    assert "book:OTHER" not in parts
    assert desk.engine.dirty() == {}


def test_a_part_of_another_program_is_refused() -> None:
    with pytest.raises(ValueError, match="no part"):
        Desk().engine.restore({"weather": b"\x90"})


def test_answers_outlive_a_restart() -> None:
    desk = Desk()
    desk.run(Method.NEW, new(1), 11)
    desk.run(Method.NEW, new(4, acked=2), 12)
    desk.restart()

    desk.run(Method.NEW, new(4), 13)
    assert desk.results[-1][0] == desk.results[1][0]
    assert refused(desk.run(Method.NEW, new(1), 14)) == Reason.TOO_OLD
    assert refused(desk.run(Method.NEW, new(4, quantity=9), 15)) == Reason.DUPLICATE
    assert ids_in(desk) == ([11, 12], [])
