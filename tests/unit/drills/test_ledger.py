"""The drill's verdict: each guarantee can fail, and is then named with what broke it."""

from __future__ import annotations

import pytest

from roost.drills.ledger import MAX_KEPT, Book, percentile


def evening(users: int = 2) -> Book:
    """Everybody came, went in by a ticket of their own and left again."""
    book = Book(users)
    for number in range(users):
        book.let_in(f"u{number}", f"t{number}", "ws://s1")
        book.out(f"u{number}")
        book.counts["finished"] += 1
    return book


def broken(book: Book, overadmit: int = 0) -> dict[str, str]:
    """Guarantee → what was said of it, of those that did not hold."""
    return {one.guarantee: one.said for one in book.verdicts(overadmit) if not one.held}


def test_a_good_evening_holds_all_three() -> None:
    book = evening()
    book.saw_server("ws://s1", 1)
    assert broken(book) == {}
    assert [one.guarantee for one in book.verdicts(0)] == ["G10", "G11", "G12"]
    assert book.verdicts(0)[0].said == "at most 1 inside at once, none too many"


def test_g10_breaks_with_more_people_on_a_server_than_it_takes() -> None:
    book = Book(2, counts=evening().counts)
    book.saw_server("ws://s1", 1)
    book.let_in("ann", "t1", "ws://s1")
    book.let_in("bob", "t2", "ws://s2")
    assert broken(book) == {}
    book.let_in("cid", "t3", "ws://s1")
    assert broken(book) == {"G10": "2 people on ws://s1, which takes 1"}


def test_a_server_is_held_against_the_most_that_it_ever_said_it_takes() -> None:
    book = evening()
    book.saw_server("ws://s1", 2)
    book.saw_server("ws://s1", 0)
    for number, user in enumerate(("ann", "bob")):
        book.let_in(user, f"again-{number}", "ws://s1")
    assert broken(book) == {}


def test_g10_breaks_when_the_store_says_so() -> None:
    assert broken(evening(), overadmit=3) == {"G10": "the store counted 3 tickets too many"}


def test_g11_breaks_with_somebody_inside_twice() -> None:
    book = evening()
    book.let_in("ann", "t-a", "ws://s1")
    book.let_in("ann", "t-b", "ws://s2")
    assert broken(book) == {"G11": "ann is inside ws://s1 and ws://s2"}


def test_g11_breaks_with_a_ticket_used_twice_also_one_after_the_other() -> None:
    book = evening()
    for user in ("ann", "bob"):
        book.let_in(user, "the same", "ws://s1")
        book.out(user)
    assert broken(book) == {"G11": "a ticket of bob let somebody in twice"}


def test_g12_breaks_with_somebody_lost() -> None:
    book = evening(3)
    book.counts["finished"] -= 1
    assert broken(book) == {"G12": "1 of 3 people never got in and out"}


def test_of_many_faults_all_are_counted_and_the_first_are_told() -> None:
    book = evening()
    for number in range(MAX_KEPT + 5):
        book.broken("G12", f"fault {number}")
    assert book.counts["broken G12"] == MAX_KEPT + 5
    assert len(book.faults["G12"]) == MAX_KEPT
    assert broken(book) == {"G12": "fault 0; fault 1; fault 2"}


def test_the_most_people_inside_at_once_are_remembered() -> None:
    book = evening(0)
    for user in ("ann", "bob", "cid"):
        book.let_in(user, user, "ws://s1")
    book.out("ann")
    book.let_in("dan", "dan", "ws://s1")
    assert book.most_inside == 3


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([], 0.99, 0.0),
        ([7.0], 0.5, 7.0),
        ([3.0, 1.0, 2.0], 0.5, 2.0),
        ([float(n) for n in range(100)], 0.99, 99.0),
        ([1.0, 2.0], 1.0, 2.0),
    ],
)
def test_a_percentile_is_one_of_the_values(values: list[float], share: float, expected: float) -> None:
    assert percentile(values, share) == expected
