"""How items end: counted, told to whoever waits, and a failure also logged. Each goes through here once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from math import inf
from traceback import extract_tb
from typing import Any

from roost.lanes.halting import Halts
from roost.lanes.outcomes import Done, Failed, NotDone, Unfinished
from roost.lanes.worker import Entry, Worker

log = logging.getLogger("roost.lanes")

LOG_EVERY_S = 1.0
"""Failures come by the thousand; one line in so much time says how many there were."""


class Endings:
    """`deliver`: how `done` is called, if not at once by `tell`. `unfinished` hears of those without one."""

    def __init__(
        self,
        halts: Halts,
        workers: list[Worker],
        time: Callable[[], float],
        deliver: Callable[[Done, Any], None] | None = None,
        unfinished: Unfinished | None = None,
    ) -> None:
        self._halts = halts
        self.failing = halts.in_a_row
        """Keys whose last item failed."""
        self._workers = workers
        self._time = time
        self._deliver = deliver or self.tell
        self._unfinished = unfinished
        self._logged_at = -inf
        self._unlogged = 0

    def succeeded(self, worker: Worker, entry: Entry, result: Any) -> None:
        worker.executed += 1
        if self.failing:
            self._halts.succeeded(entry[0])
        if entry[2] is not None:
            self._deliver(entry[2], result)

    def failed(self, worker: Worker, entry: Entry, error: BaseException) -> None:
        worker.failed += 1
        self._log("handler failed", worker, error)
        self._tell(entry, Failed(error))
        self._count_failure(entry[0], type(error).__name__)

    def late(self, worker: Worker, entry: Entry) -> None:
        log.warning("handler is late", extra={"worker": worker.name})
        self.end(worker, entry, NotDone.LATE)
        self._count_failure(entry[0], "late")

    def end(self, worker: Worker, entry: Entry, outcome: NotDone) -> None:
        """It has no result, and never will."""
        worker.not_done[outcome] += 1
        self._tell(entry, outcome)

    def end_queued(self, outcome: NotDone, of: Callable[[Entry], bool]) -> None:
        """These leave their queues unexecuted."""
        for worker in self._workers:
            for entry in worker.take_out(of):
                self.end(worker, entry, outcome)

    def _count_failure(self, key: str, how: str) -> None:
        if self._halts.failed(key, how):
            log.error("key is halted", extra={"key": key, "reason": self._halts.halted[key]})
            self.end_queued(NotDone.HALTED, lambda entry: entry[0] == key)

    def _tell(self, entry: Entry, outcome: Failed | NotDone) -> None:
        if entry[2] is not None:
            self._deliver(entry[2], outcome)
        elif self._unfinished is not None:
            self._deliver(partial(self._unfinished, entry[0], entry[1]), outcome)

    def tell(self, done: Done, outcome: Any) -> None:
        try:
            done(outcome)
        except Exception as error:  # whoever waits for the next one must not suffer from it
            self._log("done failed", None, error)

    def _log(self, what: str, worker: Worker | None, error: BaseException) -> None:
        """Where and what kind, but no message of the error: it may quote the item."""
        self._unlogged += 1
        now = self._time()
        if now - self._logged_at < LOG_EVERY_S:
            return
        frames = extract_tb(error.__traceback__)
        at = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        name = worker.name if worker is not None else ""
        facts = {"worker": name, "error": type(error).__name__, "at": at, "failures": self._unlogged}
        log.error(what, extra=facts)
        self._logged_at, self._unlogged = now, 0
