"""Rate limits of this process: so many calls in a second from one source, some more at once."""

from __future__ import annotations

import time
from collections.abc import Callable

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
        now = self._clock()
        free_at = max(now, self._free_at.get(source, 0.0))
        if free_at - now > self._slack:
            raise TooManyRequests(retry_after_s=free_at - now - self._slack + ROUNDING_S)
        if len(self._free_at) >= MAX_KEPT:
            self._free_at = {key: at for key, at in self._free_at.items() if at > now}
        self._free_at[source] = free_at + self._period
