"""Whether this server may serve, by its own clock. Pure.

The store counts a lease from the moment it hears a beat, we from the moment we sent it, less a margin: so we
stop first, however long an answer takes and whatever our clock's rate is. Its lease clock may jump by
`MAX_STEP_MS` where the server's clock is stepped, so that much is left too. Written by the thread that beats,
read by the loop that serves.

While the store does not answer, a lease in the database carries ours on, if it was kept before ours was over:
then nobody can have been between the two. Once the store answers again it may have granted our users to
others, who waited for that lease; so the end of what the *store* had granted is a lapse all the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from roost.core.lease import MAX_STEP_MS

DRIFT = 0.1
"""Share of a lease that is never used: for two clocks' rates, and for what runs between look and act."""
MOST_LEFT = 1 / 3
"""Share of a lease that is left at most: of a short one the rest would be nothing."""


def usable_s(ttl_ms: int) -> float:
    """How long after a beat was sent this server may serve."""
    left_ms = max(ttl_ms * DRIFT, min(MAX_STEP_MS, ttl_ms * MOST_LEFT))
    return (ttl_ms - left_ms) / 1000


class Lease:
    """Of one partition of users."""

    __slots__ = ("_now", "beaten_at", "ended", "generation", "granted_until", "until")

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self.until = 0.0
        """Our own monotonic time at which it ends."""
        self.granted_until = 0.0
        """The same, of what the store granted."""
        self.beaten_at = 0.0
        """When the last beat was sent that was taken."""
        self.generation = 0
        """Rises with every lapse: what was claimed under an earlier one must be claimed again (R3)."""
        self.ended = False
        """The store has ended this life: no beat brings it back."""

    @property
    def is_valid(self) -> bool:
        return self._now() < self.until

    def renewed(self, sent_at: float, ttl_ms: int) -> None:
        """A beat that was sent then has been taken."""
        if self._now() >= self.granted_until:
            self.generation += 1  # first: who sees the new end sees the new generation too
        self.beaten_at = max(self.beaten_at, sent_at)
        self.granted_until = max(self.granted_until, sent_at + usable_s(ttl_ms))
        self.until = max(self.until, self.granted_until)

    def may_be_carried(self, limit_s: float) -> bool:
        return self._now() < min(self.until, self.beaten_at + limit_s)

    def carried(self, sent_at: float, ttl_ms: int, limit_s: float) -> None:
        """A lease in the database that was asked for then is kept; `limit_s`: after the last beat no more."""
        if self.is_valid:
            self.until = max(self.until, min(sent_at + usable_s(ttl_ms), self.beaten_at + limit_s))

    def end(self) -> None:
        self.ended, self.until, self.granted_until = True, 0.0, 0.0

    def begin_again(self) -> None:
        """A new life: nothing of the former one counts."""
        self.ended, self.until, self.granted_until = False, 0.0, 0.0
