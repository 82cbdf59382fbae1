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
    settled: bool = False
    """Whether its own checks have said enough; before, `healthy` is only what was believed at first."""
    _agreed: int = 0
    """Outcomes in a row that speak for the first belief."""
    _row: int = 0
    """Outcomes in a row that speak against the present verdict."""
    _penalty: float = field(default=0.0)
    _penalty_at: float = field(default=0.0)

    def note(self, ok: bool, now: float) -> Turn | None:
        """Take one outcome; returns the turn if it made one."""
        if ok == self.healthy:
            self._row = 0
            self._agree()
            return None
        self._agreed = 0
        self._row += 1
        if self._row < (self.fall if self.healthy else self._rise_needed(now)):
            return None
        return self._turn(now)

    @property
    def in_transition(self) -> bool:
        """Whether the next outcome may turn it: then it is asked sooner."""
        return self._row > 0

    def _agree(self) -> None:
        if not self.settled:
            self._agreed += 1
            self.settled = self._agreed >= (self.rise if self.healthy else self.fall)

    def _turn(self, now: float) -> Turn:
        self.healthy = not self.healthy
        self.settled = True
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


class Evidence:
    """What speaks for and against one server: what it answered, and what callers reported of it.

    The two are judged apart, because a mere TCP connect refutes what TCP probes found and nothing else: a
    stopped process accepts connections.
    """

    __slots__ = ("_asked", "_reported", "_thresholds", "healthy")

    def __init__(self, thresholds: tuple[int, int] = (FALL, RISE), *, healthy: bool = True) -> None:
        self._thresholds = thresholds
        self._asked: Judgement | None = None
        self._reported: Judgement | None = None
        self.healthy = healthy
        """At first what is believed without evidence of our own."""

    def begun_anew(self, healthy: bool) -> Evidence:
        return Evidence(self._thresholds, healthy=healthy)

    @property
    def settled(self) -> bool:
        return any(judgement.settled for judgement in self._judgements())

    @property
    def in_transition(self) -> bool:
        return any(judgement.in_transition for judgement in self._judgements())

    def probed(self, ok: bool, now: float, *, proves_life: bool) -> None:
        """An answer, or none. One that proves life refutes what callers reported."""
        self._asked = self._asked or Judgement(*self._thresholds, healthy=self.healthy)
        self._asked.note(ok, now)
        if ok and proves_life and self._reported is not None:
            self._reported.note(ok, now)
        self._conclude()

    def reported(self, ok: bool, now: float) -> None:
        """What happened to callers' own requests. Good ones prove life."""
        self._asked = self._asked or Judgement(*self._thresholds, healthy=self.healthy)
        self._reported = self._reported or Judgement(*self._thresholds)
        self._reported.note(ok, now)
        if ok:
            self._asked.note(ok, now)
        self._conclude()

    def _conclude(self) -> None:
        self.healthy = all(judgement.healthy for judgement in self._judgements())

    def _judgements(self) -> list[Judgement]:
        """Made when there is something to judge: most servers are never reported on, new ones never asked."""
        return [judgement for judgement in (self._asked, self._reported) if judgement is not None]
