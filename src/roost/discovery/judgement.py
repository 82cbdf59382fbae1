"""When a server counts as unhealthy, and when as recovered. Pure: outcomes and time in, a verdict out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

FALL = 3
RISE = 2
FLAP_HALF_LIFE_S = 60.0
MAX_RISE_FACTOR = 8

Turn = Literal["fell", "rose"]


@dataclass(slots=True)
class Judgement:
    """One server's health by what its checks said.

    `fall` failures in a row make it unhealthy, `rise` successes in a row healthy again. Who falls often must
    show more successes before it is believed: each fall adds a penalty that halves every minute.
    """

    fall: int = FALL
    rise: int = RISE
    healthy: bool = True
    """A new server is healthy until proven otherwise."""
    _row: int = 0
    """Outcomes in a row that speak against the present verdict."""
    _penalty: float = field(default=0.0)
    _penalty_at: float = field(default=0.0)

    def note(self, ok: bool, now: float) -> Turn | None:
        """Take one outcome; returns the turn if it made one."""
        if ok == self.healthy:
            self._row = 0
            return None
        self._row += 1
        if self._row < (self.fall if self.healthy else self._rise_needed(now)):
            return None
        return self._turn(now)

    @property
    def in_transition(self) -> bool:
        """Whether the next outcome may turn it: then it is asked sooner."""
        return self._row > 0

    def _turn(self, now: float) -> Turn:
        self.healthy = not self.healthy
        self._row = 0
        if self.healthy:
            return "rose"
        self._penalty = self._decayed(now) + 1.0
        self._penalty_at = now
        return "fell"

    def _rise_needed(self, now: float) -> int:
        """Twice as many for each recent fall but the first."""
        falls = max(0, round(self._decayed(now)) - 1)
        return self.rise * min(MAX_RISE_FACTOR, 1 << falls)

    def _decayed(self, now: float) -> float:
        return float(self._penalty * 0.5 ** ((now - self._penalty_at) / FLAP_HALF_LIFE_S))
