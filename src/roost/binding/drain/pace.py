"""How fast users are moved: additive increase, multiplicative decrease. Pure; the caller brings the time.

    all is well       up by a tenth each second, to what was asked for
    something is not  halved, down to one in a second

So a database that has no head-room is left alone within seconds, and found again within a minute.
"""

from __future__ import annotations

from dataclasses import dataclass, field

FLOOR = 1.0
EVERY_S = 1.0
RAISE = 1.1
CUT = 0.5
FREEZE_SHARE = 0.5
"""Of the time for which a user may be held up: the slowest twentieth must stay below it."""
DATABASE_P95_MS = 100.0
ABORT_RATIO = 0.01
LEAST_ABORTS = 2
"""One move that came back says nothing."""
BURST_S = 0.1


@dataclass(slots=True)
class Window:
    """What was seen since the last judgement."""

    freeze_ms: list[float] = field(default_factory=list)
    database_ms: list[float] = field(default_factory=list)
    tries: int = 0
    aborts: int = 0

    def moved(self, phases: dict[str, float]) -> None:
        self.tries += 1
        self.freeze_ms.append(phases.get("total", 0.0))
        self.database_ms.append(max(phases.get("flush", 0.0), phases.get("accept", 0.0)))

    def returned(self) -> None:
        self.tries += 1
        self.aborts += 1

    @property
    def abort_ratio(self) -> float:
        return self.aborts / self.tries if self.tries and self.aborts >= LEAST_ABORTS else 0.0


class Pace:
    """The rate of one source server."""

    def __init__(self, cap: float, max_block_ms: float, *, rate: float | None = None) -> None:
        """`rate`: where a controller before this one was."""
        self.cap = max(FLOOR, cap)
        self.rate = min(self.cap, max(FLOOR, rate or self.cap))
        self.why = "as asked for"
        self._most_freeze_ms = max_block_ms * FREEZE_SHARE
        self._judged_at: float | None = None

    def judge(
        self, freeze_p95_ms: float, database_p95_ms: float, abort_ratio: float, now: float
    ) -> tuple[float, str]:
        """The rate from now on and why; it changes at most once a second."""
        if self._judged_at is None or now < self._judged_at:
            self._judged_at = now
        if now - self._judged_at < EVERY_S:
            return self.rate, self.why
        self._judged_at = now
        fault = self._fault(freeze_p95_ms, database_p95_ms, abort_ratio)
        if fault:
            self.rate, self.why = max(FLOOR, self.rate * CUT), f"halved: {fault}"
        elif self.rate < self.cap:
            self.rate = min(self.cap, self.rate * RAISE)
            self.why = "as asked for" if self.rate == self.cap else "rising: all is well"
        return self.rate, self.why

    def is_due(self, now: float) -> bool:
        return self._judged_at is None or now - self._judged_at >= EVERY_S

    def _fault(self, freeze_ms: float, database_ms: float, abort_ratio: float) -> str:
        if abort_ratio > ABORT_RATIO:
            return f"{abort_ratio:.0%} of the moves came back"
        if database_ms > DATABASE_P95_MS:
            return f"database p95 {database_ms:.0f} ms"
        if freeze_ms > self._most_freeze_ms:
            return f"pause p95 {freeze_ms:.0f} ms"
        return ""


class Bucket:
    """Tokens at a rate; unused ones are kept for a tenth of a second, and always for one.

    A party goes whole where there is one token: what it is above that is a debt, and the next wait for it.
    """

    def __init__(self, now: float) -> None:
        self._tokens = 1.0
        self._at = now

    def take(self, rate: float, now: float, most: int) -> int:
        """How many may go now, `most` at most."""
        burst = max(1.0, rate * BURST_S)
        self._tokens = min(burst, self._tokens + max(0.0, now - self._at) * rate)
        self._at = max(self._at, now)
        taken = max(0, min(int(self._tokens), most))
        self._tokens -= taken
        return taken

    def overdraw(self, users: int) -> None:
        """So many more went than were given; less than none: nothing is given back."""
        self._tokens -= max(0, users)

    def wait_s(self, rate: float) -> float:
        """Until there is one."""
        return max(0.0, (1.0 - self._tokens) / rate)


def p95(values: list[float]) -> float:
    """The value below which 95 of 100 are; of few the slowest but one; 0 of less than two.

    One slow move says nothing: a rate near the floor would be judged by it alone, and never rise again.
    """
    return sorted(values)[min(len(values) - 2, int(len(values) * 0.95))] if len(values) > 1 else 0.0
