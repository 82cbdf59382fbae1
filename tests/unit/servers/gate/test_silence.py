"""Lanes whose oldest message has no answer for too long are found, at a bounded cost, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from roost.servers.gate.silence import LEASES, Silence
from tests.unit.servers.gate.carried import OTHER, Carried

LEASE_S = 6.0
LONG_S = LEASE_S * LEASES


@pytest.fixture
def town() -> Carried:
    town = Carried()
    town.settle()
    return town


def overdue(town: Carried, most: int = 9) -> list[Any]:
    return town.terms.silence.overdue(town.clock.now, most)


def test_who_waits_for_an_answer_for_longer_than_a_lease_is_looked_after_once_in_such_a_time(
    town: Carried,
) -> None:
    town.say("a")
    town.clock.now += LEASE_S
    assert overdue(town) == []

    for _ in range(3):
        town.clock.now += LONG_S
        assert overdue(town) == [town.lane]
        town.clock.now += LONG_S / 2
        assert overdue(town) == []
        town.clock.now -= LONG_S / 2


def test_steady_traffic_is_never_looked_after_and_costs_one_place(town: Carried) -> None:
    for number in range(100):
        town.say(number)
        town.clock.now += 0.5
        assert overdue(town) == []
        assert len(town.terms.silence) <= 1
        town.take().ok(b"1", 10)


def test_the_oldest_without_an_answer_counts_and_when_it_was_sent_last(town: Carried) -> None:
    town.say("a")
    town.clock.now += LONG_S - 1
    town.say("b")
    town.take().ok(b"1", 10)
    town.clock.now += 2
    assert overdue(town) == []
    town.lane.lost()
    town.settle(OTHER, last=1)
    town.clock.now += LONG_S - 1
    assert overdue(town) == [], "it went out again just then"
    town.clock.now += 1
    assert overdue(town) == [town.lane]


def test_who_waits_for_nothing_or_left_has_no_place(town: Carried) -> None:
    town.say("a")
    town.carrier.close("closed")
    town.clock.now += LONG_S
    assert overdue(town) == []
    assert len(town.terms.silence) == 0


def test_a_home_with_thousands_is_asked_for_in_slices() -> None:
    towns = [Carried() for _ in range(3)]
    silence = Silence[Any](LEASE_S)
    for one in towns:
        one.settle()
        one.say("a")
        silence.watch(one.lane, one.clock.now)
    now = towns[0].clock.now + LONG_S
    found = [silence.overdue(now, 2), silence.overdue(now, 2), silence.overdue(now, 2)]
    assert [len(one) for one in found] == [2, 1, 0]
