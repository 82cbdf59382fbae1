"""A worker: the queue of some lanes of one shard, and what became of what was in it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from roost.lanes.outcomes import Done, NotDone, Reason

Entry = tuple[str, Any, Done | None, float, float]
"""Key, item, whom to tell, deadline and arrival (monotonic seconds). A tuple: nothing is cheaper to make."""

PACE_S = 1.0
"""The rate of a worker is that of its last second or two."""


@dataclass(frozen=True, slots=True)
class WorkerStats:
    """One worker at one moment.

    accepted = executed + failed + expired + halted + late + dropped + depth + running
    """

    name: str
    shard: int
    depth: int
    """Items that wait; the one that runs is not among them."""
    running: bool
    stuck: bool
    """What runs was answered as late or dropped, and does not end."""
    oldest_wait_ms: int
    accepted: int
    executed: int
    failed: int
    expired: int
    halted: int
    late: int
    dropped: int
    rejected: dict[Reason, int]


class Worker:
    """One item at a time, in the order of arrival. What is done with it is in `execution` and `threads`."""

    __slots__ = (
        *("name", "shard", "queue", "active", "task", "running", "since", "stuck"),
        *("accepted", "taken", "executed", "failed", "not_done", "rejected", "passed"),
        *("pace_at", "pace_taken"),
    )

    def __init__(self, name: str, shard: int) -> None:
        self.name = name
        self.shard = shard
        self.queue: deque[Entry] = deque()
        self.active = False
        """Somebody works on its queue, or is about to."""
        self.running: Entry | None = None
        """What its handler waits in; None also while a handler runs that has not waited yet."""
        self.since = 0.0
        """When that began."""
        self.stuck = False
        """What runs was answered (late, dropped) and has not ended yet."""
        self.task: asyncio.Task[None] | None = None
        self.accepted = self.taken = self.executed = self.failed = 0
        self.passed = 0
        """Accepted and executed by whoever brought them, because nothing waited."""
        self.not_done = dict.fromkeys(NotDone, 0)
        self.rejected = dict.fromkeys(Reason, 0)
        self.pace_at = 0.0
        self.pace_taken = 0

    def begin(self, now: float) -> None:
        """Its rate is measured from here: it had nothing to do, or a while has passed."""
        self.pace_at, self.pace_taken = now, self.taken

    def rate(self, now: float) -> float:
        """Items a second that it took from its queue of late, while there were any; 0: none."""
        passed = now - self.pace_at
        return (self.taken - self.pace_taken) / passed if passed > 0 else 0.0

    def oldest_wait_s(self, now: float) -> float:
        return max(0.0, now - self.queue[0][4]) if self.queue else 0.0

    def take_out(self, of: Callable[[Entry], bool]) -> list[Entry]:
        """Entries that leave the queue from its middle; those that stay keep their order."""
        out = [entry for entry in self.queue if of(entry)]
        if out:
            stay = [entry for entry in self.queue if not of(entry)]
            self.queue.clear()
            self.queue.extend(stay)
        return out

    def stats(self, now: float) -> WorkerStats:
        without = self.not_done
        return WorkerStats(
            name=self.name,
            shard=self.shard,
            depth=len(self.queue),
            running=self.running is not None and not self.stuck,
            stuck=self.stuck,
            oldest_wait_ms=round(self.oldest_wait_s(now) * 1000),
            accepted=self.accepted + self.passed,
            executed=self.executed + self.passed,
            failed=self.failed,
            expired=without[NotDone.EXPIRED],
            halted=without[NotDone.HALTED],
            late=without[NotDone.LATE],
            dropped=without[NotDone.DROPPED],
            rejected={reason: count for reason, count in self.rejected.items() if count},
        )
