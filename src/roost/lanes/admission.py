"""Which worker takes an item, or why none does. The same for work on a loop and in threads; never waits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from roost.core.errors import InvalidInput
from roost.lanes.halting import Halts
from roost.lanes.outcomes import Reason, Rejected
from roost.lanes.selector import fmix32, fnv1a32
from roost.lanes.worker import Worker, WorkerStats

Place = tuple[int, int]
"""Shard and lane."""

KEYS_REMEMBERED = 65_536
"""Keys whose worker is looked up, not computed. Forgetting them costs some microseconds for each."""

RETRY_MS = (1, 5_000)
"""Least and most that a rejection asks the caller to wait."""

UNMEASURED_RETRY_MS = 100


@dataclass(frozen=True, slots=True)
class Limits:
    """`workers_per_shard` may differ from run to run: the lane of a key does not depend on it."""

    shards: int = 16
    lanes: int = 64
    workers_per_shard: int = 4
    queue_limit: int = 65_536
    """Items that wait for one worker."""
    max_wait_ms: float = 0
    """Nothing but urgent items is accepted while the head of the queue has waited longer; 0: for ever."""
    cancel_share: float = 0.1
    """The last part of each queue, which only urgent items may fill."""
    failures_to_halt: int = 0
    """So many failures in a row of one key halt it; 0: never."""

    def validate(self) -> None:
        for name in ("shards", "lanes", "workers_per_shard", "queue_limit"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{name} must be at least 1")
        if self.workers_per_shard > self.lanes:
            raise InvalidInput("workers_per_shard must not exceed lanes: a lane has one worker")
        if not 0 <= self.cancel_share < 1:
            raise InvalidInput("cancel_share must be from 0 up to below 1")
        if self.max_wait_ms < 0 or self.failures_to_halt < 0:
            raise InvalidInput("max_wait_ms and failures_to_halt must not be negative")


@dataclass(frozen=True, slots=True)
class ExecutorStats:
    workers: tuple[WorkerStats, ...]
    misplaced: int
    """Items that no worker got: there is no such place."""

    @property
    def accepted(self) -> int:
        return sum(worker.accepted for worker in self.workers)

    @property
    def rejected(self) -> int:
        return self.misplaced + sum(sum(worker.rejected.values()) for worker in self.workers)

    @property
    def depth(self) -> int:
        return sum(worker.depth for worker in self.workers)

    @property
    def stuck(self) -> int:
        return sum(worker.stuck for worker in self.workers)

    def of_shard(self, shard: int) -> tuple[WorkerStats, ...]:
        return tuple(worker for worker in self.workers if worker.shard == shard)


class Admission:
    def __init__(
        self,
        name: str,
        limits: Limits,
        time: Callable[[], float],
        place_of: Callable[[str], Place] | None = None,
    ) -> None:
        limits.validate()
        self.halts = Halts(limits.failures_to_halt)
        self.closing = False
        self.workers = [
            Worker(f"{name}-shard-{shard}-w{number}", shard)
            for shard in range(limits.shards)
            for number in range(limits.workers_per_shard)
        ]
        self._time = time
        self._limits = limits
        self._most = limits.queue_limit
        self._most_normal = max(1, round(limits.queue_limit * (1 - limits.cancel_share)))
        self._max_wait_s = limits.max_wait_ms / 1000
        self._misplaced = 0
        self._place_of = place_of
        self._by_key: dict[str, Worker] = {}
        each = limits.workers_per_shard
        self._by_place = {
            (shard, lane): self.workers[shard * each + lane % each]
            for shard in range(limits.shards)
            for lane in range(limits.lanes)
        }

    def admit(self, key: str, place: Place | None, urgent: bool) -> Worker | Rejected:
        worker = self._by_key.get(key) if place is None else self._by_place.get(place)
        if worker is None and (worker := self._found(key, place)) is None:
            self._misplaced += 1
            return Rejected(Reason.BAD_PLACE)
        return self.why_not(worker, key, urgent) or worker

    def worker_of(self, place: Place) -> Worker | None:
        """None: there is no such place."""
        return self._by_place.get(place)

    def why_not(self, worker: Worker, key: str, urgent: bool) -> Rejected | None:
        """None: the worker takes it."""
        if self.closing:
            return self._rejected(worker, Reason.CLOSING)
        if self.halts.halted and key in self.halts.halted:
            return self._rejected(worker, Reason.KEY_HALTED)
        depth = len(worker.queue)
        if depth >= self._most_normal and (not urgent or depth >= self._most):
            return self._rejected(worker, Reason.QUEUE_FULL)
        if self._max_wait_s and not urgent and worker.oldest_wait_s(self._time()) > self._max_wait_s:
            return self._rejected(worker, Reason.TOO_SLOW)
        return None

    def place(self, key: str) -> Place:
        """Where a key belongs if nobody says so."""
        if self._place_of is not None:
            return self._place_of(key)
        return _by_hash(key, self._limits.shards, self._limits.lanes)

    def stats(self) -> ExecutorStats:
        now = self._time()
        return ExecutorStats(tuple(worker.stats(now) for worker in self.workers), self._misplaced)

    def _found(self, key: str, place: Place | None) -> Worker | None:
        if place is not None:
            return None
        worker = self._by_place.get(self.place(key))
        if worker is not None and self._place_of is None:  # the place of somebody's own rule may change
            if len(self._by_key) >= KEYS_REMEMBERED:
                self._by_key.clear()
            self._by_key[key] = worker
        return worker

    def _rejected(self, worker: Worker, reason: Reason) -> Rejected:
        worker.rejected[reason] += 1
        now = self._time()
        wait_ms = round(worker.oldest_wait_s(now) * 1000)
        retry_ms = self._retry_ms(worker, now) if reason in (Reason.QUEUE_FULL, Reason.TOO_SLOW) else 0
        return Rejected(reason, len(worker.queue), wait_ms, retry_ms)

    def _retry_ms(self, worker: Worker, now: float) -> int:
        """Until the worker, at the rate it got on lately, has worked off half of what waits."""
        rate = worker.rate(now)
        if not rate:
            return UNMEASURED_RETRY_MS
        least, most = RETRY_MS
        return max(least, min(most, round(len(worker.queue) / 2 / rate * 1000)))


def _by_hash(key: str, shards: int, lanes: int) -> Place:
    """Any number of shards and lanes, unlike a selector's; from other bits each."""
    value = fmix32(fnv1a32(key.encode("utf-8", "surrogatepass")))
    return value % shards, (value >> 16) % lanes
