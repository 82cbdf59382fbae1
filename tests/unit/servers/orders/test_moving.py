"""A symbol goes to another shard and comes back: its orders, its halt and the answers about it go with it."""

from __future__ import annotations

import pytest

from roost.lanes.commands import Method, MoveOut, New, Reason, Side, State, Turn, decode_outcome
from roost.servers.orders import moving
from roost.servers.orders.accounts import MAX_ANSWERS
from roost.servers.orders.engine import Engine
from roost.servers.orders.moving import decode_moved
from tests.unit.servers.orders.desk import SHARD, Desk, ids_in, replay

OTHER_SHARD = 9


def two_shards() -> tuple[Desk, Desk]:
    here = Desk()
    return here, Desk(OTHER_SHARD, here.clients)


def test_a_book_arrives_as_it_left() -> None:
    here, there = two_shards()
    bids = [here.buy("ann", price, 5).order_id for price in (100, 99, 100)]
    ask = here.sell("bob", 105, 5).order_id
    here.buy("ann", 50, 1, symbol="STAYS")

    book = here.move_out("ACME", "m1", OTHER_SHARD)
    there.move_in("ACME", "m1", book)

    assert ids_in(here) == ([], [])
    assert ids_in(there) == ([bids[0], bids[2], bids[1]], [ask])
    assert {row.order_id: row.shard for row in there.rows} == dict.fromkeys([*bids, ask], OTHER_SHARD)
    assert here.engine.symbols() == ["STAYS"]
    assert there.cancel("ann", bids[1]).state == State.CANCELLED


def test_the_old_shard_knows_where_it_went_until_its_orders_are_closed() -> None:
    here = Desk()
    order_id = here.buy("ann", 100, 5).order_id
    here.move_out("ACME", "m1", OTHER_SHARD, lane=4)
    here.restart()

    assert here.engine.forward_of(order_id) == (OTHER_SHARD, 4, "ACME")
    assert here.engine.forward_of_symbol("ACME") == (OTHER_SHARD, 4)
    assert here.engine.query(order_id, "ann") == Reason.MOVED
    assert here.buy("ann", 100, 5).reason == Reason.MOVED
    assert here.cancel("ann", order_id, symbol="ACME").reason == Reason.MOVED
    assert here.halt("ACME").reason == Reason.MOVED
    assert here.resume("ACME").reason == Reason.MOVED

    here.engine.closed_elsewhere([order_id, 123])
    assert here.engine.forward_of(order_id) is None
    assert here.engine.forward_of_symbol("ACME") == (OTHER_SHARD, 4)


def test_what_another_shard_says_changes_no_digest() -> None:
    here = Desk()
    order_id = here.buy("ann", 100, 5).order_id
    here.move_out("ACME", "m1", OTHER_SHARD)
    before = here.engine.digest()

    here.engine.closed_elsewhere([order_id])
    here.engine.arrived("ACME")

    assert here.engine.digest() == before
    again = Engine(SHARD)
    replay(again, here.entries)
    assert again.digest() == before


def test_a_book_is_kept_until_it_has_arrived() -> None:
    here = Desk()
    here.buy("ann", 100, 5)
    book = here.move_out("ACME", "m1", OTHER_SHARD)
    here.restart()

    assert here.engine.departed()["ACME"].book == book
    assert here.engine.departed()["ACME"].move_id == "m1"
    here.engine.arrived("ACME")
    here.restart()
    assert here.engine.departed() == {}


def test_a_symbol_leaves_once() -> None:
    here = Desk()
    here.buy("ann", 100, 5)
    here.move_out("ACME", "m1", OTHER_SHARD)

    assert here.move_out("ACME", "m2", 5) == b""
    assert here.engine.forward_of_symbol("ACME") == (OTHER_SHARD, 1)


def test_a_book_that_is_too_large_for_its_way_stays_live_and_in_a_replay() -> None:
    """With everything that goes with it: a hundred answers are larger than the one order that is open."""
    here = Desk()
    for _ in range(100):
        here.cancel("ann", here.buy("ann", 100, 5).order_id)
    order_id = here.buy("ann", 100, 5).order_id
    before = here.engine.digest()

    assert here.move_out("ACME", "m1", OTHER_SHARD, most_bytes=4096) == b""

    assert decode_outcome(here.results[-1][0]).reason == Reason.TOO_LARGE
    assert here.engine.digest() == before
    assert here.engine.departed() == {}
    again = Engine(SHARD)
    replay(again, here.entries)
    assert again.digest() == before
    assert here.cancel("ann", order_id).state == State.CANCELLED
    assert len(here.move_out("ACME", "m2", OTHER_SHARD, most_bytes=1 << 20)) > 4096


def test_a_move_is_taken_once() -> None:
    here, there = two_shards()
    order_id = here.buy("ann", 100, 5).order_id
    book = here.move_out("ACME", "m1", OTHER_SHARD)
    there.move_in("ACME", "m1", book)
    there.cancel("ann", order_id)
    there.restart()
    before = there.engine.digest()

    assert there.move_in("ACME", "m1", book).state == State.OPEN

    assert there.engine.digest() == before
    assert ids_in(there) == ([], [])


def test_a_move_that_was_taken_is_refused_when_the_symbol_has_left_again() -> None:
    """Whoever sends a book under it would drop the last copy if it heard that this shard has it."""
    here, there = two_shards()
    order_id = here.buy("ann", 100, 5).order_id
    there.move_in("ACME", "m1", here.move_out("ACME", "m1", OTHER_SHARD))
    here.move_in("ACME", "m2", there.move_out("ACME", "m2", SHARD))
    late = here.move_out("ACME", "m1", OTHER_SHARD)
    there.restart()
    before = there.engine.digest()

    assert there.move_in("ACME", "m1", late).reason == Reason.MOVED

    assert there.engine.digest() == before
    assert there.engine.forward_of(order_id) == (SHARD, 1, "ACME")
    again = Engine(OTHER_SHARD)
    replay(again, there.entries)
    assert again.digest() == before


def test_a_symbol_that_comes_home_is_forwarded_no_more() -> None:
    here, there = two_shards()
    order_id = here.buy("ann", 100, 5).order_id
    there.move_in("ACME", "m1", here.move_out("ACME", "m1", OTHER_SHARD))

    here.move_in("ACME", "m2", there.move_out("ACME", "m2", SHARD))

    assert here.engine.forward_of(order_id) is None
    assert here.engine.forward_of_symbol("ACME") is None
    assert here.engine.departed() == {}
    assert there.engine.forward_of(order_id) == (SHARD, 1, "ACME")
    assert ids_in(here) == ([order_id], [])
    assert here.sell("bob", 100, 5).filled == 5


def test_a_command_that_is_sent_again_after_the_move_is_not_executed_again() -> None:
    here, there = two_shards()
    first = New("ann", 1, 0, "ACME", Side.BUY, 100, 5)
    here.run(Method.NEW, first, 11)
    here.run(Method.NEW, New("ann", 2, 0, "STAYS", Side.BUY, 100, 5), 12)
    there.move_in("ACME", "m1", here.move_out("ACME", "m1", OTHER_SHARD))
    there.restart()

    there.run(Method.NEW, first, 13)

    assert there.results[-1][0] == here.results[0][0]
    assert ids_in(there) == ([11], [])
    assert there.engine.answer_to("ann", 2) is None


def test_an_answer_that_comes_home_counts_more_than_that_the_symbol_was_away() -> None:
    here, there = two_shards()
    there.move_in("ACME", "m1", here.move_out("ACME", "m1", OTHER_SHARD))
    first = New("ann", 1, 0, "ACME", Side.BUY, 100, 5)
    assert here.run(Method.NEW, first, 11).reason == Reason.MOVED
    accepted = there.run(Method.NEW, first, 12)

    here.move_in("ACME", "m2", there.move_out("ACME", "m2", SHARD))
    here.restart()

    assert here.run(Method.NEW, first, 13) == accepted
    assert ids_in(here) == ([12], [])


def test_any_other_answer_that_is_kept_stays() -> None:
    here, there = two_shards()
    here.run(Method.NEW, New("ann", 1, 0, "ACME", Side.BUY, 100, 5), 11)
    there.run(Method.NEW, New("ann", 1, 0, "OTHER", Side.BUY, 100, 5), 12)
    kept = there.results[-1][0]

    there.move_in("ACME", "m1", here.move_out("ACME", "m1", OTHER_SHARD))

    assert there.engine.answer_to("ann", 1) == kept


def test_a_number_whose_answer_was_dropped_is_too_old_at_the_other_shard_too() -> None:
    here, there = two_shards()
    first = New("ann", 1, 0, "ACME", Side.BUY, 100, 5)
    here.run(Method.NEW, first, 11)
    here.run(Method.NEW, New("ann", 2, 2, "ACME", Side.BUY, 100, 5), 12)
    there.move_in("ACME", "m1", here.move_out("ACME", "m1", OTHER_SHARD))

    assert there.run(Method.NEW, first, 13).reason == Reason.TOO_OLD


def acknowledging(desk: Desk, account: str, number: int) -> New:
    """An order that closes at once, then one of another symbol that says its answer was seen; the first."""
    first = New(account, number, number, "ACME", Side.BUY, 100, 5, immediate=True)
    desk.run(Method.NEW, first, desk.order_id())
    desk.run(Method.NEW, New(account, number + 1, number + 1, "STAYS", Side.BUY, 1, 1), desk.order_id())
    return first


def test_a_number_that_left_no_order_and_no_answer_is_too_old_at_the_other_shard_too() -> None:
    """All that is known of it is the account's floor: a late duplicate would be a second order."""
    here, there = two_shards()
    first = acknowledging(here, "ann", 1)
    here.restart()
    there.move_in("ACME", "m1", here.move_out("ACME", "m1", OTHER_SHARD))
    there.restart()

    assert there.run(Method.NEW, first, there.order_id()).reason == Reason.TOO_OLD
    assert there.run(Method.NEW, New("ann", 3, 3, "ACME", Side.BUY, 100, 5), 31).state == State.OPEN


def test_what_was_dropped_for_want_of_room_takes_no_answers_of_another_shard() -> None:
    """It was not acknowledged: the trader may still ask about a lower number there."""
    here, there = two_shards()
    unseen = New("ann", 1, 1, "W", Side.BUY, 100, 5)
    first = there.run(Method.NEW, unseen, there.order_id())
    for number in range(2, MAX_ANSWERS + 100):
        here.run(Method.NEW, New("ann", number, 1, "STAYS", Side.BUY, 1, 1, immediate=True), here.order_id())
    here.buy("bob", 100, 5)
    there.move_in("ACME", "m1", here.move_out("ACME", "m1", OTHER_SHARD))

    assert there.run(Method.NEW, unseen, there.order_id()) == first
    assert there.run(Method.NEW, New("ann", 50, 1, "W", Side.BUY, 1, 1), there.order_id()).state == State.OPEN


def test_of_very_many_accounts_those_with_the_highest_numbers_are_known_at_the_other_shard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Numbers of the SDK are times: it is a command of lately that may come twice."""
    monkeypatch.setattr(moving, "MAX_FLOORS", 2)
    here, there = two_shards()
    firsts = {name: acknowledging(here, name, number) for name, number in (("a", 70), ("b", 90), ("c", 90))}
    live = here.move_out("ACME", "m1", OTHER_SHARD)
    there.move_in("ACME", "m1", live)

    outcomes = {name: there.run(Method.NEW, first, there.order_id()) for name, first in firsts.items()}

    assert [name for name, one in outcomes.items() if one.reason == Reason.TOO_OLD] == ["b", "c"]
    again = Engine(SHARD)
    replay(again, here.entries)
    assert again.departed()["ACME"].book == live


@pytest.mark.parametrize("room", range(0, 320, 5))
def test_a_book_stays_for_no_floor_that_has_no_room_on_the_way(
    monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """Of what an older server let go each replay comes to the same."""
    here = Desk()
    here.buy("ann", 100, 5)
    for number in range(20):
        acknowledging(here, f"account-{number}", 10)
    here.collect()
    with monkeypatch.context() as patched:
        patched.setattr(moving, "MAX_FLOORS", 0)
        bare = Engine(SHARD)
        bare.restore(here.parts)
        command = MoveOut("ACME", "m1", OTHER_SHARD, 1)
        reply, _, _ = bare.apply(Turn(SHARD, 1, 1, 1), 99, Method.MOVE_OUT, 1, 0, command)
        least = len(decode_moved(reply).book)

    assert here.move_out("ACME", "m1", OTHER_SHARD, most_bytes=least - 1) == b""
    book = here.move_out("ACME", "m1", OTHER_SHARD, most_bytes=least + room)

    assert least <= len(book) <= least + room


def test_a_halted_symbol_stays_halted() -> None:
    here, there = two_shards()
    here.halt("ACME")
    there.move_in("ACME", "m1", here.move_out("ACME", "m1", OTHER_SHARD))

    assert there.buy("ann", 100, 5).reason == Reason.HALTED
    assert here.engine.halts() == {}


def test_orders_that_came_too_early_line_up_behind_those_that_move_and_trade_with_them() -> None:
    here, there = two_shards()
    moved = here.buy("ann", 100, 5).order_id
    same_side, crossing = 21, 22
    there.run(Method.NEW, New("bob", 1, 0, "ACME", Side.BUY, 100, 1), same_side)
    there.run(Method.NEW, New("cid", 1, 0, "ACME", Side.SELL, 101, 2), crossing)
    there.run(Method.NEW, New("cid", 2, 0, "OTHER", Side.SELL, 100, 2), 23)
    here.amend("ann", moved, 101, 5)

    there.move_in("ACME", "m1", here.move_out("ACME", "m1", OTHER_SHARD))

    assert ids_in(there) == ([moved, same_side], [])
    assert [(event.account, event.price, event.quantity) for event in there.events] == [
        ("ann", 101, 2),
        ("cid", 101, 2),
    ]
    rows = {row.order_id: (row.remaining, row.state) for row in there.rows}
    assert rows == {moved: (3, State.OPEN), same_side: (1, State.OPEN), crossing: (0, State.FILLED)}


def test_a_book_under_another_name_is_a_fault_that_changes_nothing() -> None:
    here, there = two_shards()
    here.buy("ann", 100, 5)
    book = here.move_out("ACME", "m1", OTHER_SHARD)
    before = there.engine.digest()

    with pytest.raises(ValueError, match="was sent as"):
        there.move_in("OTHER", "m1", book)
    with pytest.raises(ValueError):
        there.move_in("ACME", "m1", book[:-3])
    assert there.engine.digest() == before

    there.move_in("ACME", "m1", book)
    with pytest.raises(ValueError, match="here already"):
        there.move_in("ACME", "m2", book)


def test_a_symbol_that_came_by_a_move_does_not_leave_by_it() -> None:
    """Within one shard, where the owner that asks again is not sure whether it was done."""
    here = Desk()
    order_id = here.buy("ann", 100, 5).order_id
    here.move_in("ACME", "m1", here.move_out("ACME", "m1", SHARD, lane=4))
    here.restart()

    assert here.move_out("ACME", "m1", SHARD, lane=4) == b""

    assert decode_outcome(here.results[-1][0]).reason == Reason.MOVED
    assert ids_in(here) == ([order_id], [])
    assert here.move_out("ACME", "m2", OTHER_SHARD) != b""
