"""What a client's own book finds: what may not happen in a hot update is seen, and nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from roost.drills.client_book import ClientBook


def book_of(*numbers: int, end: int | None = None, unknown: int = 0) -> ClientBook:
    book = ClientBook("ann")
    for number in numbers:
        book.counted(number)
    for _ in range(unknown):
        book.no_answer(counts=True)
    book.close(max(numbers, default=0) if end is None else end)
    return book


def faults(book: ClientBook) -> tuple[int, int, int]:
    return book.lost, book.doubled, book.reordered


def test_numbers_that_rise_by_one_are_well() -> None:
    assert faults(book_of(1, 2, 3, 4)) == (0, 0, 0)
    assert faults(book_of()) == (0, 0, 0)


def test_a_number_given_twice_is_a_lost_message() -> None:
    assert faults(book_of(1, 2, 3, 3, 4)) == (1, 0, 0)
    assert faults(book_of(1, 2, 3, 4, 2, 3, 4, 5)) == (3, 0, 0)


def test_an_end_below_the_last_number_is_a_loss_too() -> None:
    assert faults(book_of(1, 2, 3, end=1)) == (2, 0, 0)


def test_a_number_that_nobody_was_given_is_a_message_executed_twice() -> None:
    assert faults(book_of(1, 2, 4, 5)) == (0, 1, 0)
    assert faults(book_of(1, 2, end=5)) == (0, 3, 0)


def test_numbers_that_changed_places_are_out_of_order() -> None:
    assert faults(book_of(1, 3, 2, 4)) == (0, 0, 1)


def test_what_nobody_knows_of_may_have_been_executed_or_not() -> None:
    assert faults(book_of(1, 2, 4, unknown=1)) == (0, 0, 0)
    assert faults(book_of(1, 2, 3, unknown=1)) == (0, 0, 0)
    assert faults(book_of(1, 2, 5, unknown=1)) == (0, 1, 0)


def test_a_version_that_nobody_knows_of_explains_no_number() -> None:
    book = ClientBook("ann")
    book.no_answer(counts=False)
    book.close(1)
    assert (book.unknown, book.doubled) == (1, 1)


@given(st.lists(st.sampled_from(["answered", "unknown", "dropped"]), max_size=60))
def test_a_server_that_executes_once_and_in_order_is_never_blamed(outcomes: list[str]) -> None:
    """`unknown`: executed and not answered; `dropped`: neither."""
    book, number = ClientBook("ann"), 0
    for outcome in outcomes:
        if outcome == "dropped":
            book.no_answer(counts=True)
            continue
        number += 1
        if outcome == "answered":
            book.counted(number)
        else:
            book.no_answer(counts=True)
    book.close(number)
    assert faults(book) == (0, 0, 0)


@given(st.integers(1, 40), st.data())
def test_one_message_executed_twice_is_always_found(total: int, data: st.DataObject) -> None:
    twice = data.draw(st.integers(1, total))
    numbers = [n + (n > twice) for n in range(1, total + 1)]
    assert faults(book_of(*numbers, end=total + 1)) == (0, 1, 0)


@given(st.integers(2, 40), st.data())
def test_a_state_that_fell_back_is_always_found(total: int, data: st.DataObject) -> None:
    """To what it was `back` messages before: so many acknowledged ones are lost."""
    back = data.draw(st.integers(1, total - 1))
    numbers = [*range(1, total + 1), *range(total - back + 1, total + 1)]
    assert faults(book_of(*numbers))[0] == back
