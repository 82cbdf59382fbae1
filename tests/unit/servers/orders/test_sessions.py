"""Who follows which accounts over which connections, and which numbers are remembered for how long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from roost.core.errors import InvalidInput
from roost.servers.orders.sessions import Sessions
from roost.wire.connection import Connection


class Follower:
    def __init__(self) -> None:
        self.pushed: list[bytes] = []
        self.ends: list[Callable[[Any], None]] = []

    def push(self, service: int, method: int, payload: bytes) -> None:
        self.pushed.append(payload)

    def on_close(self, told: Callable[[Any], None]) -> None:
        self.ends.append(told)

    def hang_up(self) -> None:
        for told in self.ends:
            told(self)


def following(sessions: Sessions, *accounts: str) -> Follower:
    follower = Follower()
    for account in accounts:
        sessions.follow(account, cast(Connection, follower))
    return follower


def test_an_account_that_is_not_followed_any_more_is_not_told_of() -> None:
    sessions = Sessions()
    one, other = following(sessions, "ann", "bob"), following(sessions, "ann")

    sessions.unfollow("ann", cast(Connection, one))
    sessions.unfollow("nobody", cast(Connection, one))
    sessions.tell([("ann", b"1"), ("bob", b"2")])

    assert (one.pushed, other.pushed) == ([b"2"], [b"1"])
    assert sessions.followed == 2


def test_accounts_that_come_and_go_over_one_connection_leave_nothing() -> None:
    sessions = Sessions()
    follower = following(sessions, "stays")
    for number in range(100):
        sessions.follow(f"a{number}", cast(Connection, follower))
        sessions.unfollow(f"a{number}", cast(Connection, follower))

    assert sessions.followed == 1
    assert len(follower.ends) == 1
    follower.hang_up()
    assert sessions.followed == 0


@pytest.mark.parametrize("name", ["", "a" * 129, "ann\0", "\ud800ann", "\udfff"])
def test_what_no_row_of_the_database_could_name_is_no_account(name: str) -> None:
    sessions = Sessions()

    with pytest.raises(InvalidInput, match="an account has 1 to 128 characters"):
        sessions.numbers_of(name, 0)

    assert sessions.numbers == {}


def test_numbers_of_an_account_that_is_silent_for_long_are_forgotten() -> None:
    sessions = Sessions()
    sessions.numbers_of("silent", 0)[1] = "ACME"
    sessions.numbers_of("ann", 0)[1] = "ACME"

    sessions.age()
    assert sessions.numbers_of("ann", 0) == {1: "ACME"}
    sessions.age()

    assert sessions.numbers_of("ann", 0) == {1: "ACME"}
    assert sessions.numbers_of("silent", 0) == {}


def test_whoever_holds_the_numbers_sees_what_is_forgotten() -> None:
    """The host looks there for every command."""
    sessions = Sessions()
    numbers = sessions.numbers
    sessions.numbers_of("ann", 0)[1] = "ACME"

    sessions.age()

    assert numbers is sessions.numbers
    assert numbers == {}
