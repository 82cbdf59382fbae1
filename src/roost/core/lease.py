"""A lease with an epoch: the one idea under instances, users, shards and leaders.

The store's side is `store/lua/lease_*.lua`. This is the holder's side: how long it may act on what
the store told it. The store measures a lease in lease time, which runs only while somebody looks and
may jump by at most `MAX_STEP_MS` when the server's clock is stepped; the holder measures by its own
monotonic clock, from before the request left, and stops `MAX_STEP_MS` early. So the holder has always
stopped when the store lets go, also when the server's clock is stepped meanwhile.

NB: that holds for one step forward in the life of a lease. A clock that goes forward, back and forward
again within it takes `MAX_STEP_MS` each time; then the epoch alone tells the late holder from the new one.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_STEP_MS = 2000
"""The most that one look may add to a lease clock; `store/lua/lease_clock.lua` is called with it."""

MIN_TTL_MS = 3 * MAX_STEP_MS // 2
"""A shorter lease would leave its holder no time between renewal and the early stop."""


@dataclass(frozen=True, slots=True)
class Tenure:
    """What a holder knows of its lease. `holder` and `epoch` go with every write: the fence."""

    holder: str
    epoch: int
    asked_at: float
    """Monotonic seconds just before the request that granted or renewed it."""
    ttl_ms: int

    @property
    def ends_at(self) -> float:
        """Monotonic seconds at which the holder must have stopped."""
        return self.asked_at + (self.ttl_ms - MAX_STEP_MS) / 1000

    def holds(self, now: float) -> bool:
        return now < self.ends_at


def renew_interval_s(ttl_ms: int) -> float:
    """Three chances to renew within the time the holder may act."""
    return (ttl_ms - MAX_STEP_MS) / 3000
