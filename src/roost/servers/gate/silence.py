"""Which lanes have waited too long for an answer: their homes may be dead, though the connection stands.

A home that hangs takes what is written to it and says nothing; the wire finds that out long after the lease
of the home has ended. Only lanes with messages in flight are here, each once, by when it is due to be looked
at: an answer costs nothing, and a tick sees those that are due.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from roost.binding.settings import BindingSettings

LEASE_S = BindingSettings().lease_ms / 1000
LEASES = 7 / 6
"""How many leases without an answer are too long: what was sent just before its home died is looked at when
that lease is over, and not a moment before."""


class Sent(Protocol):
    sent_at: float


class Flight(Protocol):
    """A lane, as it is seen here."""

    is_watched: bool
    """Whether it is here."""

    @property
    def flying(self) -> Sequence[Sent]:
        """Messages without an answer, in the order in which they were sent."""


F = TypeVar("F", bound=Flight)


class Silence(Generic[F]):
    def __init__(self, lease_s: float = LEASE_S) -> None:
        """`lease_s`: of entity servers."""
        self.longest_s = lease_s * LEASES
        self._due: list[tuple[float, int, F]] = []
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._due)

    def watch(self, lane: F, now: float) -> None:
        """Something is in flight there, and the lane is not here yet."""
        lane.is_watched = True
        heapq.heappush(self._due, (now + self.longest_s, next(self._numbers), lane))

    def overdue(self, now: float, most: int) -> list[F]:
        """Lanes that heard nothing for too long, at most so many; each comes again after as long a time."""
        found: list[F] = []
        while self._due and self._due[0][0] <= now and len(found) < most:
            lane = heapq.heappop(self._due)[2]
            if not lane.flying:
                lane.is_watched = False
            elif (since := lane.flying[0].sent_at) + self.longest_s > now:
                self.watch(lane, since)
            else:
                found.append(lane)
                self.watch(lane, now)
        return found
