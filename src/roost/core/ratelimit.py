"""Limits of this process, by source: how many calls in a second, and how many things held open at once."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from roost.core.errors import TooManyRequests

MAX_KEPT = 100_000
ROUNDING_S = 1e-6
"""What sums of periods may be off by; without it the last call of a burst would be refused now and then."""


class Limiter:
    """GCRA: one number for each source, the time at which it has been fully forgiven."""

    def __init__(self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._period = 1.0 / per_second
        self._slack = self._period * (burst - 1) + ROUNDING_S
        self._clock = clock
        self._free_at: dict[str, float] = {}

    @property
    def kept(self) -> int:
        """Sources of which something is remembered."""
        return len(self._free_at)

    def check(self, source: str) -> None:
        """Count one call, or refuse it with the time after which it would be taken."""
        self.look(source)
        now = self._clock()
        free_at = max(now, self._free_at.get(source, 0.0))
        if len(self._free_at) >= MAX_KEPT:
            self._free_at = {key: at for key, at in self._free_at.items() if at > now}
        self._free_at[source] = free_at + self._period

    def look(self, source: str) -> None:
        """Refuse what `check` would refuse, and count nothing."""
        now = self._clock()
        over_s = self._free_at.get(source, 0.0) - now - self._slack
        if over_s > 0:
            raise TooManyRequests(retry_after_s=over_s + ROUNDING_S)


class AtOnce:
    """How many things of one kind are open, by source. Exact: it looks and counts without a wait between."""

    def __init__(self, what: str, *, each: int, total: int = 0) -> None:
        """`what` is open is said in the refusal. 0: as many as there are."""
        self._what = what
        self._each = each
        self._total = total
        self._open: Counter[str] = Counter()
        self.open = 0

    @contextmanager
    def one_more(self, source: str) -> Iterator[None]:
        """Hold one while the block runs, or `TooManyRequests`."""
        if self._each and self._open[source] >= self._each:
            raise TooManyRequests(f"{self._each} {self._what} are open there already", retry_after_s=5.0)
        if self._total and self.open >= self._total:
            raise TooManyRequests(f"as many {self._what} are open here as may be", retry_after_s=5.0)
        self._open[source] += 1
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1
            self._open[source] -= 1
            if not self._open[source]:
                del self._open[source]
