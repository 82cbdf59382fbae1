"""How fast counters grow, from one look to the next. Pure."""

from __future__ import annotations

LONGEST_S = 30.0
"""Of what was counted longer ago no rate is told."""


class Rates:
    """The rate of every counter by name: what it grew by since the look before."""

    def __init__(self) -> None:
        self._before: dict[str, int] = {}
        self._before_at = float("-inf")
        self._now: dict[str, int] = {}
        self._now_at = float("-inf")

    def look(self, at: float) -> None:
        """Begin a look at `at`, seconds of any clock that only grows."""
        self._before, self._before_at = self._now, self._now_at
        self._now, self._now_at = {}, at

    def of(self, name: str, count: int) -> float | None:
        """None: it was not counted lately, or began anew."""
        self._now[name] = count
        passed = self._now_at - self._before_at
        before = self._before.get(name)
        if before is None or before > count or not 0 < passed <= LONGEST_S:
            return None
        return round((count - before) / passed, 1)
