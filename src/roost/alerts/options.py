"""How alerts are sent: the same for every webhook."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from roost.core.backoff import Backoff
from roost.core.clock import Clock, SystemClock

PER_MINUTE = 30
BURST = 10
QUEUE_LIMIT = 1000
RETRY_S = 600.0
"""How old an alert may become before it is given up."""
TIMEOUT_S = 5.0
FLUSH_S = 2.0
CLAIM_S = 20.0
"""How long a claim outlasts the attempt, or the pause, for which it was taken."""
CLAIM_RETRY_S = 1.0
HELD_RETRY_S = 3.0
"""How often a process asks for what another one tells: the end of an incident waits for its beginning."""
LOG_EVERY_DROPS = 100


def _default_backoff() -> Backoff:
    return Backoff(base_s=1.0, cap_s=30.0)


@dataclass(frozen=True, slots=True)
class SendOptions:
    source: str = "roost"
    """Names this Roost to the reader of an alert."""
    secret: str = field(default="", repr=False)
    """Signs every request; empty: unsigned."""
    per_minute: int = PER_MINUTE
    burst: int = BURST
    timeout_s: float = TIMEOUT_S
    flush_s: float = FLUSH_S
    """How long a stop may wait for what is queued."""
    backoff: Callable[[], Backoff] = _default_backoff
    clock: Clock = field(default_factory=SystemClock)
    wall: Callable[[], float] = time.time
    """Epoch seconds, for signatures and for dates in Retry-After."""
