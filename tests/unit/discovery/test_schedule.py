from __future__ import annotations

from collections import Counter

import pytest

from roost.discovery.schedule import BURST_S, LEAST_SHARE, FreeTime, Schedule


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_who_has_waited_longest_comes_first_and_nobody_before_it_is_due() -> None:
    clock = Clock()
    schedule = Schedule(clock, per_second=1000)
    for key, due in (("late", 3.0), ("first", 1.0), ("second", 2.0)):
        schedule.put(key, due)
    clock.now = 2.0
    assert list(schedule.take(10)) == ["first", "second"]
    assert schedule.wait_s() == 1.0
    assert list(schedule.take(10)) == []


def test_no_more_than_the_budget_and_what_was_not_used_is_not_made_up_for() -> None:
    clock = Clock()
    schedule = Schedule(clock, per_second=100)
    for n in range(1000):
        schedule.put(str(n), 0.0)
    clock.now = 60.0
    assert len(list(schedule.take(1000))) == 100 * BURST_S
    clock.now += 0.02
    assert len(list(schedule.take(1000))) == 2
    clock.now += 0.02
    assert len(list(schedule.take(1))) == 1


def test_who_was_dropped_or_put_off_is_not_taken() -> None:
    clock = Clock()
    schedule = Schedule(clock, per_second=1000)
    schedule.put("gone", 0.0)
    schedule.put("later", 0.0)
    schedule.drop("gone")
    schedule.put("later", 5.0)
    clock.now = 1.0
    assert list(schedule.take(10)) == []
    clock.now = 5.0
    assert list(schedule.take(10)) == ["later"]


def test_over_budget_turns_are_fair_and_the_interval_stretches() -> None:
    """Ten times as many as the budget allows: each waits ten times as long, and all the same."""
    clock = Clock()
    schedule = Schedule(clock, per_second=10)
    asked: Counter[str] = Counter()
    for n in range(500):
        schedule.put(str(n), 0.0)
    for _ in range(int(200 / 0.02)):
        clock.now += 0.02
        for key in schedule.take(1000):
            asked[key] += 1
            schedule.put(key, clock.now + 5.0)
    assert sum(asked.values()) > 1800
    assert set(asked.values()) <= {3, 4}


def test_those_in_doubt_have_half_of_the_budget_and_do_not_starve_the_others() -> None:
    """A hundred in doubt before a thousand others: they do not wait for a round, nor take all of it."""
    clock = Clock()
    schedule = Schedule(clock, per_second=100)
    asked: Counter[bool] = Counter()
    for n in range(1000):
        schedule.put(f"calm-{n}", 0.0)
    for n in range(100):
        schedule.put(f"doubt-{n}", 0.0, doubted=True)
    for _ in range(500):
        clock.now += 0.02
        for key in schedule.take(1000):
            doubted = key.startswith("doubt")
            asked[doubted] += 1
            schedule.put(key, clock.now + (1.0 if doubted else 5.0), doubted=doubted)
    assert min(asked.values()) > 0.45 * sum(asked.values())


def test_budget_that_those_in_doubt_leave_is_for_the_others_and_the_other_way_round() -> None:
    clock = Clock()
    schedule = Schedule(clock, per_second=200.1)
    schedule.put("doubt", 0.0, doubted=True)
    for n in range(3):
        schedule.put(f"calm-{n}", 0.0)
    clock.now = 1.0
    assert list(schedule.take(10)) == ["doubt", "calm-0", "calm-1", "calm-2"]
    for n in range(4):
        schedule.put(f"doubt-{n}", 1.0, doubted=True)
    clock.now = 2.0
    assert len(list(schedule.take(10))) == 4


def test_a_busy_thread_asks_less_but_never_nothing() -> None:
    clock, free = Clock(), [1.0]
    schedule = Schedule(clock, per_second=100, free_time=lambda: free[0])

    def asked_in(seconds: float) -> int:
        for n in range(1000):
            schedule.put(str(n), clock.now)
        count = 0
        for _ in range(int(seconds / 0.02)):
            clock.now += 0.02
            count += len(list(schedule.take(100)))
        return count

    idle = asked_in(4)
    free[0] = 0.5
    assert 0.4 < asked_in(4) / idle < 0.6
    free[0] = 0.0
    assert 0 < asked_in(4) <= idle * LEAST_SHARE * 1.5


def test_free_time_is_what_the_thread_did_not_use(monkeypatch: pytest.MonkeyPatch) -> None:
    now, used = 0.0, 0.0
    free_time = FreeTime(lambda: now, lambda: used)
    assert free_time() == 1.0
    for _ in range(100):
        now, used = now + 0.2, used + 0.15
        free_time()
    assert 0.24 < free_time() < 0.3
    now += 10
    assert free_time() == 1.0
