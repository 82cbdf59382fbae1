"""How long to wait before the next attempt."""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass(slots=True)
class Backoff:
    """Delays that double from `base_s` to `cap_s`, each drawn from its upper half.

    The jitter keeps a fleet that lost the same server from returning in the same instant; the lower
    half is left out so that a delay is never near zero twice in a row.
    """

    base_s: float = 0.05
    cap_s: float = 2.0
    rng: random.Random = field(default_factory=random.Random)
    _attempt: int = 0

    def next(self) -> float:
        ceiling = min(self.cap_s, self.base_s * 2.0 ** min(self._attempt, 32))
        self._attempt += 1
        return ceiling * self.rng.uniform(0.5, 1.0)

    def reset(self) -> None:
        self._attempt = 0


def jittered(interval_s: float, share: float = 0.1, rng: random.Random | None = None) -> float:
    """`interval_s` give or take `share` of it, so that loops started together drift apart."""
    return interval_s * (rng or random).uniform(1.0 - share, 1.0 + share)
