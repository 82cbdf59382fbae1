"""The rate limits of one process."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core import ratelimit as limits
from roost.core.errors import TooManyRequests
from roost.core.networks import network_of
from roost.core.ratelimit import AtOnce, Limiter


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def passes(limiter: Limiter, source: str = "a") -> bool:
    try:
        limiter.check(source)
    except TooManyRequests:
        return False
    return True


def test_some_at_once_then_so_many_in_a_second() -> None:
    clock = Clock()
    limiter = Limiter(5, 10, clock)
    assert [passes(limiter) for _ in range(12)] == [True] * 10 + [False] * 2
    clock.now += 0.2
    assert [passes(limiter) for _ in range(2)] == [True, False]
    clock.now += 100.0
    assert [passes(limiter) for _ in range(11)] == [True] * 10 + [False]


def test_a_refusal_says_when_the_next_call_is_taken() -> None:
    clock = Clock()
    limiter = Limiter(5, 1, clock)
    limiter.check("a")
    with pytest.raises(TooManyRequests) as refused:
        limiter.check("a")
    assert refused.value.retry_after_s == pytest.approx(0.2)
    clock.now += refused.value.retry_after_s + 1e-9
    limiter.check("a")


def test_a_refused_call_costs_nothing_and_sources_are_apart() -> None:
    clock = Clock()
    limiter = Limiter(1, 1, clock)
    limiter.check("a")
    assert [passes(limiter) for _ in range(100)] == [False] * 100
    assert passes(limiter, "b")
    clock.now += 1.0
    assert passes(limiter)


@given(st.lists(st.floats(0, 0.5), min_size=1, max_size=200), st.integers(1, 20), st.integers(1, 20))
def test_no_more_pass_than_burst_and_rate_allow(pauses: list[float], per_second: int, burst: int) -> None:
    clock = Clock()
    limiter, started, passed = Limiter(per_second, burst, clock), clock.now, 0
    for pause in pauses:
        clock.now += pause
        passed += passes(limiter)
        assert passed <= burst + (clock.now - started) * per_second + 1e-6


def test_who_has_been_forgiven_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_KEPT", 10)
    clock = Clock()
    limiter = Limiter(1, 1, clock)
    for n in range(1000):
        clock.now += 0.5
        limiter.check(f"source-{n}")
    assert limiter.kept <= 10


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("no:address", "no:address"),
    ],
)
def test_one_source_is_an_address_or_what_one_customer_has(address: str, network: str) -> None:
    assert network_of(address) == network


def test_a_look_counts_nothing() -> None:
    limiter = Limiter(1, 2, Clock())
    for _ in range(10):
        limiter.look("a")
    assert [passes(limiter) for _ in range(3)] == [True, True, False]
    with pytest.raises(TooManyRequests):
        limiter.look("a")


def test_so_many_of_each_and_of_all_at_once() -> None:
    streams = AtOnce("streams", each=2, total=3)
    with streams.one_more("a"), streams.one_more("a"):
        with pytest.raises(TooManyRequests, match="2 streams are open there"), streams.one_more("a"):
            pass
        with streams.one_more("b"), pytest.raises(TooManyRequests, match="as many"), streams.one_more("c"):
            pass
    assert streams.open == 0
    with streams.one_more("a"):
        assert streams.open == 1
