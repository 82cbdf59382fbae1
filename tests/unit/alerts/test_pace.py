from __future__ import annotations

from email.utils import formatdate

import pytest

from roost.alerts import pace
from roost.alerts.pace import Repeats, TokenBucket, retry_after_s
from roost.alerts.payloads import Alert

NOW = 1_790_000_000.0
ILL = Alert("unhealthy", "501", "It is silent", NOW, {"type": "game"})
WELL = Alert("recovered", "501", "It answers", NOW)


def test_a_bucket_gives_its_burst_and_then_one_at_a_time() -> None:
    bucket = TokenBucket(interval_s=2.0, burst=3)
    assert [bucket.take(100.0) for _ in range(4)] == [0, 0, 0, 2.0]
    assert bucket.take(101.5) == pytest.approx(0.5)
    assert bucket.take(102.0) == 0
    assert bucket.take(102.0) == pytest.approx(2.0)


def test_a_bucket_never_holds_more_than_its_burst() -> None:
    bucket = TokenBucket(interval_s=2.0, burst=2)
    bucket.take(0.0)
    assert [bucket.take(1e6) for _ in range(3)] == [0, 0, 2.0]


def test_waiting_as_long_as_it_says_is_enough() -> None:
    bucket, now = TokenBucket(interval_s=60 / 7, burst=1), 12345.678
    for _ in range(1000):
        wait_s = bucket.take(now)
        if wait_s:
            now += wait_s
            assert bucket.take(now) == 0


def test_an_exact_repeat_is_no_news_for_ten_seconds() -> None:
    repeats = Repeats()
    later = Alert("unhealthy", "501", "It is silent", NOW + 5, {"type": "game"})
    assert repeats.is_news(ILL, 0.0)
    assert not repeats.is_news(later, 5.0)
    assert not repeats.is_news(later, 9.9)
    assert repeats.is_news(later, 10.0)


def test_what_differs_in_anything_is_news() -> None:
    repeats = Repeats()
    assert repeats.is_news(ILL, 0.0)
    assert repeats.is_news(Alert("unhealthy", "502", "It is silent", NOW, {"type": "game"}), 0.0)
    assert repeats.is_news(Alert("unhealthy", "501", "It refuses", NOW, {"type": "game"}), 0.0)
    assert repeats.is_news(Alert("unhealthy", "501", "It refuses", NOW), 0.0)


def test_a_second_fall_after_a_recovery_is_news() -> None:
    """Else the incident would stay resolved while the server is ill."""
    repeats = Repeats()
    assert [repeats.is_news(alert, 0.0) for alert in (ILL, WELL, ILL, WELL)] == [True] * 4


def test_what_is_remembered_does_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "MAX_REMEMBERED", 3)
    repeats = Repeats()
    told = [Alert("unhealthy", str(n), "s", NOW) for n in range(10)]
    for alert in told:
        repeats.is_news(alert, 0.0)
    assert [repeats.is_news(alert, 0.0) for alert in reversed(told[-4:])] == [False, False, False, True]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, 0),
        ("", 0),
        ("7", 7),
        ("60", 60),
        ("3600", 60),
        ("9" * 400, 60),
        ("-5", 0),
        ("nan", 0),
        ("soon", 0),
        (formatdate(NOW + 20, usegmt=True), 20),
        (formatdate(NOW + 9000, usegmt=True), 60),
        (formatdate(NOW - 20, usegmt=True), 0),
    ],
)
def test_a_receiver_is_heard_but_not_for_longer_than_a_minute(header: str | None, seconds: float) -> None:
    assert retry_after_s(header, NOW) == pytest.approx(seconds)
