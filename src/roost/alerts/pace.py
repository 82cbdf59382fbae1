"""How fast alerts may follow each other: decided from the past and the time, without I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

from roost.alerts.payloads import Alert

REPEAT_S = 10.0
MAX_REMEMBERED = 10_000
MAX_RETRY_AFTER_S = 60.0


@dataclass(slots=True)
class TokenBucket:
    """`burst` at once, then one every `interval_s`."""

    interval_s: float
    burst: int
    _tokens: float = field(init=False)
    _as_of: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._tokens = float(self.burst)

    def take(self, now: float) -> float:
        """Take a token; returns 0, or the seconds until there is one (and takes none)."""
        self._tokens = min(float(self.burst), self._tokens + max(now - self._as_of, 0.0) / self.interval_s)
        self._as_of = now
        if self._tokens >= 1.0 - 1e-9:  # what floats lose must not cost another wait
            self._tokens = max(self._tokens - 1.0, 0.0)
            return 0.0
        return (1.0 - self._tokens) * self.interval_s

    def give_back(self) -> None:
        """A token that was taken in vain."""
        self._tokens = min(float(self.burst), self._tokens + 1.0)


@dataclass(slots=True)
class Repeats:
    """Knows what was last told of each subject, so that saying it again at once is no news.

    Only the last counts: unhealthy, recovered, unhealthy again within seconds are three pieces of news.
    """

    window_s: float = REPEAT_S
    _last: dict[str, tuple[float, Alert]] = field(default_factory=dict)

    def is_news(self, alert: Alert, now: float) -> bool:
        told_at, told = self._last.get(alert.dedup_key, (now, None))
        if told is not None and now - told_at < self.window_s and alert.repeats(told):
            return False
        self._remember(alert, now)
        return True

    def _remember(self, alert: Alert, now: float) -> None:
        self._last.pop(alert.dedup_key, None)
        self._last[alert.dedup_key] = (now, alert)
        if len(self._last) > MAX_REMEMBERED:
            del self._last[next(iter(self._last))]


def retry_after_s(header: str | None, now: float) -> float:
    """What a receiver asks for, in seconds or as a date, at most a minute; 0 if it says nothing usable."""
    try:
        asked: float = int(header or "0")
    except ValueError:
        asked = _seconds_until(header or "", now)
    return float(min(max(asked, 0.0), MAX_RETRY_AFTER_S))


def _seconds_until(date: str, now: float) -> float:
    try:
        return parsedate_to_datetime(date).timestamp() - now
    except (ValueError, OverflowError, TypeError):
        return 0.0
