"""Whose turn it is to be asked: who has waited longest, and no more than the budget allows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from pathlib import Path

PROBES_PER_S = 200.0
"""The budget of one checker: about a fortieth of a core. Where more are due, everybody waits longer."""
BURST_S = 0.02
"""Unused budget is kept for so long: a checker that was held up does not make up for it at once."""
LEAST_SHARE = 0.125
"""Of the budget, that even a thread without a free moment spends."""
SMOOTHED_OVER_S = 0.5
LOOK_EVERY_S = 0.1


class FreeTime:
    """Which share of its time the calling thread had nothing to do lately. Requests go first, probes take the
    rest. Who waits for a core has something to do: on a machine that is busy with others nothing is left."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, used_s: Callable[[], float] | None = None
    ) -> None:
        self._clock = clock
        self._used_s = used_s or wanted_core_s
        self._looked_at = clock()
        self._used = self._used_s()
        self._share = 1.0

    def __call__(self) -> float:
        now = self._clock()
        took = now - self._looked_at
        if took >= LOOK_EVERY_S:
            used = self._used_s()
            idle = 1.0 - max(0.0, min(1.0, (used - self._used) / took))
            weight = min(1.0, took / SMOOTHED_OVER_S)
            self._share += weight * (idle - self._share)
            self._looked_at, self._used = now, used
        return self._share


def wanted_core_s() -> float:
    """How long the calling thread has run or waited for a core; only how long it ran, where nobody knows."""
    try:
        ran, waited, _ = Path("/proc/thread-self/schedstat").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return time.thread_time()
    return (int(ran) + int(waited)) / 1e9


class Schedule:
    """Keys in the order in which they are due. One that was taken is out until it is put in again.

    Who is in doubt waits in a line of its own, which has up to half of the budget: a verdict takes several
    answers, and must not take as many rounds through a large fleet.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        per_second: float = PROBES_PER_S,
        free_time: Callable[[], float] = lambda: 1.0,
    ) -> None:
        self._clock = clock
        self._free_time = free_time
        self._per_second = per_second
        self._most = max(1.0, per_second * BURST_S)
        self._calm: list[tuple[float, str]] = []
        self._doubted: list[tuple[float, str]] = []
        self._due: dict[str, float] = {}
        """What counts: an entry of a line that says otherwise is out of date."""
        self._allowance = 0.0
        self._first = 0
        """Of an odd number each line has the odd one in turn."""
        self._looked_at = clock()

    def put(self, key: str, due: float, *, doubted: bool = False) -> None:
        self._due[key] = due
        heappush(self._doubted if doubted else self._calm, (due, key))

    def drop(self, key: str) -> None:
        self._due.pop(key, None)

    def wait_s(self) -> float:
        """How long until somebody is due; less than nothing where somebody waits."""
        first = min((line[0][0] for line in (self._calm, self._doubted) if line), default=float("inf"))
        return first - self._clock()

    def take(self, most: int) -> Iterator[str]:
        """Those whose turn it is now, at most so many."""
        now = self._clock()
        pace = self._per_second * max(LEAST_SHARE, self._free_time())
        grown = self._allowance + (now - self._looked_at) * pace
        self._allowance, self._looked_at = min(grown, self._most), now
        count = min(most, int(self._allowance))
        half, self._first = (count + self._first) // 2, self._first ^ (count & 1)
        for line, share in ((self._doubted, half), (self._calm, count), (self._doubted, count)):
            while share > 0 and count > 0 and (key := self._pop(line, now)) is not None:
                share, count = share - 1, count - 1
                self._allowance -= 1.0
                yield key

    def _pop(self, line: list[tuple[float, str]], now: float) -> str | None:
        """The first of a line if it is due."""
        while line and line[0][0] <= now:
            due, key = heappop(line)
            if self._due.get(key) == due:
                del self._due[key]
                return key
        return None
