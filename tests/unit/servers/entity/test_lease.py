from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from roost.servers.entity.lease import Lease, usable_s


class Now:
    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def test_it_counts_from_when_the_beat_was_sent_and_stops_early() -> None:
    now = Now()
    lease = Lease(now)
    sent_at = now.at
    now.at += 3.0

    lease.renewed(sent_at, 6000)

    assert lease.is_valid
    now.at = sent_at + 4.0
    assert not lease.is_valid


def test_a_lapse_is_a_new_generation_and_a_renewal_in_time_is_none() -> None:
    now = Now()
    lease = Lease(now)
    lease.renewed(now.at, 6000)
    first = lease.generation
    now.at += 2
    lease.renewed(now.at, 6000)
    assert lease.generation == first

    now.at += 60
    lease.renewed(now.at, 6000)

    assert lease.generation == first + 1


def test_an_answer_that_comes_after_the_end_is_a_lapse_also_if_its_beat_was_sent_before() -> None:
    now = Now()
    lease = Lease(now)
    lease.renewed(now.at, 6000)
    first, sent_at = lease.generation, now.at + 3.9
    now.at += 4.1

    lease.renewed(sent_at, 6000)

    assert (lease.is_valid, lease.generation) == (True, first + 1)


def test_an_ended_life_is_not_held_and_a_new_one_begins_with_a_lapse() -> None:
    now = Now()
    lease = Lease(now)
    lease.renewed(now.at, 6000)
    lease.end()
    assert (lease.is_valid, lease.ended) == (False, True)

    lease.begin_again()
    lease.renewed(now.at, 6000)

    assert (lease.is_valid, lease.ended, lease.generation) == (True, False, 2)


@given(st.integers(3000, 600_000))
def test_a_tenth_at_least_is_left_and_a_step_of_the_clock_where_it_can_be(ttl_ms: int) -> None:
    left_ms = ttl_ms - usable_s(ttl_ms) * 1000
    assert left_ms >= ttl_ms * 0.1 - 0.001
    assert left_ms >= min(2000, ttl_ms / 3) - 0.001


TTL_MS = 6000


def test_a_lease_in_the_database_carries_it_on_up_to_the_limit() -> None:
    now = Now()
    lease = Lease(now)
    lease.renewed(now.at, TTL_MS)
    beaten_at, generation = now.at, lease.generation
    while lease.may_be_carried(60):
        lease.carried(now.at, TTL_MS, 60)
        now.at += 1.5

    assert (lease.until, lease.generation) == (beaten_at + 60, generation)
    assert not lease.is_valid


def test_what_was_over_is_not_carried_on() -> None:
    now = Now()
    lease = Lease(now)
    lease.renewed(now.at, TTL_MS)
    sent_at = now.at + 3.9
    now.at += 4.1

    lease.carried(sent_at, TTL_MS, 60)

    assert not lease.is_valid
    assert not lease.may_be_carried(60)


def test_the_first_beat_after_the_stores_own_lease_is_a_lapse_and_one_before_its_end_is_none() -> None:
    now = Now()
    lease = Lease(now)
    lease.renewed(now.at, TTL_MS)
    first = lease.generation
    lease.carried(now.at + 3, TTL_MS, 60)
    now.at += 3.5
    lease.renewed(now.at, TTL_MS)
    assert lease.generation == first

    lease.carried(now.at + 3, TTL_MS, 60)
    now.at += 5
    assert lease.is_valid
    lease.renewed(now.at, TTL_MS)

    assert (lease.is_valid, lease.generation) == (True, first + 1)


class Sent(NamedTuple):
    """A beat, or a lease in the database: how long it takes there and back, and whether it arrives."""

    to: str
    there_s: float
    back_s: float
    arrives: bool
    is_answered: bool


class Passes(NamedTuple):
    seconds: float


class Dropped(NamedTuple):
    """The lease in the database, once the store has answered."""


class Asked(NamedTuple):
    """A user asks: claimed anew if need be."""


Event = Sent | Passes | Dropped | Asked
STEPS = 300
"""A walk that visits an outage, its end, and what is in doubt between, several times over."""


def walk(draw: random.Random) -> Iterator[Event]:
    yield Sent("store", 0, 0, True, True)
    yield Asked()
    at_once, passing = [0.0] * 8 + [0.1, 0.9, 2.9, 4.1], [0.5, 1.0, 1.5, 2.0, 2.0, 3.0] * 3 + [7.0]
    rest: list[Event] = [Dropped(), Asked(), Passes(0.0)]
    is_away = False
    for _ in range(STEPS):
        is_away ^= draw.random() < 0.1
        to = "database" if is_away else draw.choice(["store", "store", "database"])
        yield Sent(to, draw.choice(at_once), draw.choice(at_once), draw.random() < 0.9, draw.random() < 0.9)
        yield Passes(draw.choice(passing))
        yield draw.choice(rest)


class World:
    """One server and one user; the map grants the user to another as soon as it may."""

    def __init__(self) -> None:
        self.now = Now()
        self.lease = Lease(self.now)
        self.store_until = self.database_until = 0.0
        self.is_granted_away = self.is_taken = self.is_answering = False
        self.held: int | None = None
        """The generation under which the user was claimed."""

    def passes(self, seconds: float) -> None:
        self.now.at += seconds
        self.is_granted_away |= self.now.at >= self.store_until and self.held is not None
        self.is_taken |= self.is_granted_away and self.now.at >= self.database_until

    def send(self, event: Sent) -> None:
        sent_at = self.now.at
        if event.to == "database" and not self.lease.may_be_carried(60):
            return
        self.passes(event.there_s)
        if event.arrives and event.to == "store":
            self.store_until = max(self.store_until, self.now.at + TTL_MS / 1000)
        elif event.arrives:
            self.database_until = self.now.at + TTL_MS / 1000
        self.passes(event.back_s)
        self.is_answering = event.to == "store" and event.arrives and event.is_answered
        if event.arrives and event.is_answered:
            if event.to == "store":
                self.lease.renewed(sent_at, TTL_MS)
            else:
                self.lease.carried(sent_at, TTL_MS, 60)

    def asks(self) -> None:
        """Where another has the user, who comes back in the end, it is claimed anew as well."""
        if self.lease.is_valid and self.held != self.lease.generation and self.now.at < self.store_until:
            self.is_granted_away = self.is_taken = False
            self.held = self.lease.generation

    def follow(self, event: Event) -> None:
        match event:
            case Sent():
                self.send(event)
            case Passes(seconds):
                self.passes(seconds)
            case Dropped() if self.is_answering:
                self.database_until = 0.0
            case Asked():
                self.asks()

    @property
    def safe_until(self) -> float:
        """Before this nobody else can claim the row."""
        return max(self.database_until, 0.0 if self.is_granted_away else self.store_until)


def test_g7_nobody_can_claim_the_row_before_the_server_stops_serving() -> None:
    carried = 0
    for seed in range(50):
        world = World()
        for event in walk(random.Random(seed)):
            world.follow(event)
            if world.lease.is_valid and world.held == world.lease.generation:
                assert world.lease.until <= world.safe_until, (seed, event)
                assert not world.is_taken, (seed, event)
                carried += world.is_granted_away
    assert carried > 100, "the map named another, and the server still served"
