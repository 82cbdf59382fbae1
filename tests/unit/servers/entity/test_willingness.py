"""What a class says of a move, whatever it says: a survey of all users carries it."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from roost.binding.protocol import Unwilling, Willing
from roost.sdk.entity import Later, Now, Pinned
from roost.servers.entity.departing import LONGEST_LATER_MS, LONGEST_PARTY, willingness


class Odd:
    def __str__(self) -> str:
        raise ValueError("a fault of the class")


def said(answer: Any) -> Willing | Unwilling:
    session: Any = SimpleNamespace(user="ann", entity=SimpleNamespace(can_move=lambda: answer))
    found = willingness(session)
    msgspec.msgpack.encode(found)
    return found


def test_a_long_name_of_a_party_fits_and_is_no_other_partys() -> None:
    longest = "p" * LONGEST_PARTY
    assert said(Now(longest)) == Willing(longest)
    long = [said(Now(name * 10_000)) for name in ("a", "b", "a", "é")]
    assert long[0] == long[2]
    assert len({one.party for one in long if isinstance(one, Willing)}) == 3
    assert all(len(one.party.encode()) <= LONGEST_PARTY for one in long if isinstance(one, Willing))


@pytest.mark.parametrize(
    ("seconds", "retry_ms"),
    [
        (2.5, 2500),
        (0, 0),
        (-1, 0),
        (math.inf, LONGEST_LATER_MS),
        (-math.inf, 0),
        (1e20, LONGEST_LATER_MS),
        (1e308, LONGEST_LATER_MS),
    ],
)
def test_later_is_within_an_hour(seconds: Any, retry_ms: int) -> None:
    assert said(Later(seconds)) == Unwilling("later", "", retry_ms)


@pytest.mark.parametrize(
    "answer",
    [Later(math.nan), Later("5"), Later(None), Pinned(Odd()), Now(party=Odd())],  # type: ignore[arg-type]
)
def test_what_cannot_be_told_is_asked_again(answer: Any) -> None:
    assert said(answer) == Unwilling("later", "can_move failed", 1000)


@pytest.mark.parametrize("answer", [None, False, "pinned", Pinned])
def test_what_is_no_answer_moves_nobody(answer: Any) -> None:
    assert said(answer) == Unwilling("later", "can_move failed", 1000)


def test_a_class_whose_can_move_must_be_awaited_moves_nobody() -> None:
    async def can_move() -> Pinned:
        return Pinned("in a duel")

    asked = can_move()
    try:
        assert said(asked) == Unwilling("later", "can_move failed", 1000)
    finally:
        asked.close()


def test_a_text_that_no_message_can_carry_is_told_as_far_as_it_can_be() -> None:
    assert said(Pinned("in a duel \ud800")) == Unwilling("pinned", "in a duel ?", 0)
    assert said(Now(party="red \ud800")) == Willing("red ?")
