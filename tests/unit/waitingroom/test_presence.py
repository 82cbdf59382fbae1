"""Marks of people whom the gateway answered by itself."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.errors import StoreUnavailable
from roost.waitingroom import presence as module
from roost.waitingroom.presence import Presence
from roost.waitingroom.service import WaitingRoom


class Room:
    def __init__(self, unknown: set[str] | None = None) -> None:
        self.unknown = unknown or set()
        self.marks: dict[str, int] = {}
        self.sizes: list[int] = []
        self.away = False

    async def touch(self, people: Sequence[tuple[str, int, int]], ticket_key: str = "") -> int:
        if self.away:
            raise StoreUnavailable
        self.sizes.append(len(people))
        known = [(user, poll_ms) for user, _, poll_ms in people if user not in self.unknown]
        self.marks |= dict(known)
        return len(known)


def presence(room: Room) -> Presence:
    return Presence(cast(WaitingRoom, room))


async def test_everybody_is_told_once_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH_LIMIT", 10)
    room = Room()
    marks = presence(room)
    for n in range(25):
        marks.mark(f"u{n}", n, 1000)
        marks.mark(f"u{n}", n, 2000)
    await marks.flush()
    await marks.flush()
    assert room.sizes == [10, 10, 5]
    assert set(room.marks.values()) == {2000}
    assert len(room.marks) == 25
    assert marks.unknown_to_store == set()


async def test_what_could_not_be_told_is_told_later_and_newer_marks_win() -> None:
    room = Room()
    marks = presence(room)
    marks.mark("ann", 1, 1000)
    marks.mark("bob", 2, 1000)
    room.away = True
    await marks.flush()
    marks.mark("ann", 1, 5000)
    room.away = False
    await marks.flush()
    assert room.marks == {"ann": 5000, "bob": 1000}


@given(st.integers(1, 40), st.data())
async def test_exactly_those_without_a_place_are_found(count: int, data: st.DataObject) -> None:
    users = [f"u{n}" for n in range(count)]
    unknown = set(data.draw(st.lists(st.sampled_from(users))))
    room = Room(unknown)
    marks = presence(room)
    for user in users:
        marks.mark(user, 7, 1000)
    await marks.flush()
    assert marks.unknown_to_store == {(user, 7) for user in unknown}
    assert room.marks.keys() == set(users) - unknown


async def test_one_among_many_is_found_with_few_calls() -> None:
    room = Room({"u77"})
    marks = presence(room)
    for n in range(500):
        marks.mark(f"u{n}", n, 1000)
    await marks.flush()
    assert marks.unknown_to_store == {("u77", 77)}
    assert len(room.sizes) <= 2 * 9 + 1


async def test_a_mark_that_the_store_took_confirms_the_place_and_no_other_does() -> None:
    room = Room({"kicked"})
    marks = presence(room)
    before = time.time()
    for user in ("ann", "kicked"):
        marks.mark(user, 7, 1000)
    assert marks.confirmed_at("ann", 7) == 0.0
    await marks.flush()
    assert before <= marks.confirmed_at("ann", 7) <= time.time()
    assert marks.confirmed_at("kicked", 7) == 0.0
    assert marks.confirmed_at("ann", 6) == 0.0, "the place that they had before"
