"""The book of one symbol, beside a plain one, and what a reader of its rules would try first."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from roost.db.orders import OrderRow
from roost.lanes.commands import Side, State
from roost.servers.orders.book import Book, Order
from tests.unit.servers.orders.naive import NaiveBook, NaiveOrder


class Step(NamedTuple):
    what: str
    side: int
    price: int
    quantity: int
    which: int


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(["add", "add", "add", "immediate", "cancel", "amend"]),
        st.sampled_from([Side.BUY, Side.SELL]),
        st.integers(95, 105),
        st.integers(1, 30),
        st.integers(0, 1_000_000),
    ),
    max_size=200,
)


def order(order_id: int, side: int, price: int, quantity: int) -> Order:
    return Order(order_id, 0, 0, 0, "ann", "ACME", side, price, quantity, quantity, State.OPEN, 0, 0)


def both_sides(book: Book) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]:
    bids = [(one.order_id, one.price, one.remaining) for one in book.bids]
    return bids, [(one.order_id, one.price, one.remaining) for one in book.asks]


@settings(max_examples=300)
@given(STEPS)
def test_it_does_what_a_plain_book_does(steps: list[Step]) -> None:
    book, plain = Book("ACME"), NaiveBook()
    live: dict[int, Order] = {}
    for order_id, step in enumerate(steps, 1):
        found = sorted(live)[step.which % len(live)] if live else None
        naive = plain.find(found) if found is not None else None
        if step.what in ("add", "immediate"):
            immediate = step.what == "immediate"
            mine = order(order_id, step.side, step.price, step.quantity)
            copy = NaiveOrder(order_id, step.side, step.price, step.quantity, step.quantity)
            fills = book.add(mine, immediate)
            expected = plain.add(copy, immediate)
            assert mine.remaining == copy.remaining
            live[order_id] = mine
        elif found is None or naive is None:
            continue
        elif step.what == "cancel":
            fills, expected = (), []
            book.cancel(live[found])
            plain.cancel(found)
        else:
            quantity = naive.quantity - naive.remaining + step.quantity
            fills = book.amend(live[found], step.price, quantity)
            expected = plain.amend(naive, step.price, quantity)

        assert [(maker.order_id, maker.price, quantity) for maker, quantity in fills] == expected
        assert both_sides(book) == (plain.side(Side.BUY), plain.side(Side.SELL))
        live = {one.order_id: one for one in live.values() if one.state == State.OPEN}
        assert sorted(live) == sorted(one.order_id for one in book)
        assert not book.bids.keys or not book.asks.keys or book.bids.keys[-1] < -book.asks.keys[-1]


@given(STEPS)
def test_a_book_made_of_its_orders_is_the_same(steps: list[Step]) -> None:
    book = Book("ACME")
    for order_id, step in enumerate(steps, 1):
        book.add(order(order_id, step.side, step.price, step.quantity))

    again = Book("ACME", list(book))

    assert both_sides(again) == both_sides(book)
    assert bool(again) is bool(book)


def test_an_order_has_the_fields_of_its_row_in_the_database() -> None:
    assert Order.__struct_fields__ == OrderRow._fields


def test_a_taker_pays_what_the_maker_asked() -> None:
    book = Book("ACME")
    book.add(order(1, Side.SELL, 100, 5))

    [(maker, quantity)] = book.add(order(2, Side.BUY, 110, 5))

    assert (maker.price, quantity) == (100, 5)


def test_what_an_immediate_order_does_not_get_is_cancelled() -> None:
    book = Book("ACME")
    book.add(order(1, Side.SELL, 100, 3))
    taker = order(2, Side.BUY, 100, 5)

    book.add(taker, immediate=True)

    assert (taker.state, taker.filled, taker.remaining) == (State.CANCELLED, 3, 2)
    assert not book


def test_a_smaller_quantity_keeps_its_place_and_a_larger_one_does_not() -> None:
    book = Book("ACME")
    first, second = order(1, Side.BUY, 100, 5), order(2, Side.BUY, 100, 5)
    book.add(first)
    book.add(second)

    book.amend(first, 100, 4)
    assert [one.order_id for one in book.bids] == [1, 2]

    book.amend(first, 100, 5)
    assert [one.order_id for one in book.bids] == [2, 1]
