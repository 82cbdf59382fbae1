"""The clock of order ids: the store's time, carried on by this process's monotonic clock.

No wall clock of this machine is read, but once, at the start (`check_start`): then there is nothing else to
compare the store's time with. At each renewal of its lease an owner hears the store's time and anchors the
clock to it. Which time to believe:

- A step of up to `MAX_STEP_MS` is drift or a slow answer: taken over.
- A larger one, to either side, is a jump. It is counted, and time goes on as before by the monotonic clock.
- A jump that the store stands by for `ADOPT_AFTER` anchors in a row is taken over, if it is of at most
  `MAX_ADOPTED_MS`: the store was set right. A larger one never is while this clock lives: one that believed a
  year ahead would be a year ahead of every later clock. `jumps` and `offset_ms` show it. When the store's
  clock is right again the two agree; a restart before would be refused, or begin with the wrong time.

Time never steps back: where the believed time is behind what was said already, the clock runs at half speed
until they meet. So it also runs at half speed at least while a store's clock stands still.
"""

from __future__ import annotations

from datetime import UTC, datetime

from roost.core.errors import StartFailed

MAX_STEP_MS = 1_000
ADOPT_AFTER = 10
MAX_ADOPTED_MS = 3_600_000


def check_start(store_ms: int, host_ms: int) -> None:
    """`StartFailed` where no clock may begin with the store's time: this host's is far from it.

    What is numbered by a wrong clock is in log, snapshot and database for good: no later owner, of the right
    time, could number anything above it.
    """
    if abs(store_ms - host_ms) > MAX_ADOPTED_MS:
        raise StartFailed(
            f"the store's clock says {_utc(store_ms)}, this host's {_utc(host_ms)}: one of them is wrong",
            hint="set it right (NTP); where it is this host's, ROOST_ORDERS__CLOCK=store starts all the same",
        )


def _utc(ms: int) -> str:
    return datetime.fromtimestamp(ms // 1000, UTC).isoformat().replace("+00:00", "Z")


class IdClock:
    """Milliseconds since 1970 that never go back. Every method is told the monotonic time, in seconds.

    Take for `at` the middle between asking the store and its answer.
    """

    __slots__ = ("_at", "_base_ms", "_floor_ms", "_stood", "_told_ms", "jumps", "offset_ms")

    def __init__(self, store_ms: int, at: float) -> None:
        self.jumps = 0
        self.offset_ms = 0
        """How far the store's clock was ahead of this one at the last anchor, where that was not believed."""
        self._stood = 0
        self._at = at
        self._base_ms = self._floor_ms = self._told_ms = store_ms

    def now_ms(self, at: float) -> int:
        passed_ms = int((at - self._at) * 1000)
        now = max(self._base_ms + passed_ms, self._floor_ms + passed_ms // 2, self._told_ms)
        self._told_ms = now
        return now

    def anchor(self, store_ms: int, at: float) -> bool:
        """Compare with the store's time; False if it was not believed."""
        offset = store_ms - self._base_ms - int((at - self._at) * 1000)
        if abs(offset) > MAX_STEP_MS and not self._stands_by(offset):
            return False
        self.offset_ms = self._stood = 0
        self._floor_ms = self.now_ms(at)
        self._base_ms = store_ms
        self._at = at
        return True

    def _stands_by(self, offset_ms: int) -> bool:
        """Whether this jump has been there for long enough to be the truth."""
        if self._stood == 0 or abs(offset_ms - self.offset_ms) > MAX_STEP_MS:
            self.jumps += 1
            self._stood = 0
        self._stood += 1
        self.offset_ms = offset_ms
        return self._stood >= ADOPT_AFTER and abs(offset_ms) <= MAX_ADOPTED_MS
