"""Whether something stays as large as it was: decided from its samples, without I/O.

The first fifth of the samples is warm-up and does not count. Of the rest the median of the first third is
held against the median of the last third, at least three samples each, so that one taken at a bad moment
decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

FEWEST = 6
"""With fewer samples nothing can be said."""
LEAST_THIRD = 3


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much more it may be at the end: what an allocator and a cache do, and no leak that matters."""

    share: float
    absolute: float

    def covers(self, early: float, late: float) -> bool:
        return late <= early * (1.0 + self.share) + self.absolute


MEMORY_MB = Allowance(0.05, 3.0)
DATA_MB = Allowance(0.10, 1.0)
FILES = Allowance(0.0, 5.0)
KEYS = Allowance(0.0, 5.0)
"""Of keys that nothing takes away but a script."""


@dataclass(frozen=True, slots=True)
class Course:
    """One thing over time."""

    early: float
    late: float
    flat: bool | None
    """None: too few samples to say."""


def course_of(values: Sequence[float], allowed: Allowance) -> Course:
    if not values:
        return Course(0.0, 0.0, None)
    settled = values[max(1, len(values) // 5) :] or values
    third = max(LEAST_THIRD, len(settled) // 3)
    early, late = median(settled[:third]), median(settled[-third:])
    enough = len(values) >= FEWEST
    return Course(round(early, 1), round(late, 1), allowed.covers(early, late) if enough else None)


def no_larger(now: Mapping[str, float], least: Mapping[str, float]) -> bool:
    """Whether each has been as small as it is now: then there is nothing to wait for."""
    return all(what in least and size <= least[what] for what, size in now.items())
