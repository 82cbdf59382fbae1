"""The face of `LaneExecutor` for handlers that block: a thread for each worker, begun when first needed.

    with ThreadLaneExecutor(write_to_disk) as executor:
        executor.submit("user-7", page, done=print)

`done` is called in the worker's thread or, if a `loop` is given, as a callback of that loop.
"""

from __future__ import annotations

import asyncio
import threading
import time as system_time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from types import TracebackType
from typing import Any, Self

from roost.lanes.admission import Admission, ExecutorStats, Limits, Place
from roost.lanes.ending import Endings, log
from roost.lanes.execution import CANCEL_S
from roost.lanes.executor import GRACE_S, result_of
from roost.lanes.outcomes import ACCEPTED, Accepted, Done, NotAccepted, NotDone, Rejected
from roost.lanes.worker import PACE_S, Entry, Worker


class ThreadLaneExecutor:
    """Order, bounds, halts and answers are those of `LaneExecutor`; any thread may call any method.

    NB: a thread cannot be cancelled. A handler that runs for longer than `stuck_ms` is shown as stuck, and
    nobody else of its worker gets on; one that outlives `close` is answered as dropped and left behind.
    """

    def __init__(
        self,
        handler: Callable[[str, Any], Any],
        *,
        shards: int = 16,
        lanes: int = 64,
        workers_per_shard: int = 4,
        queue_limit: int = 65_536,
        max_wait_ms: float = 0,
        stuck_ms: float = 0,
        cancel_share: float = 0.1,
        failures_to_halt: int = 0,
        place_of: Callable[[str], Place] | None = None,
        name: str = "order",
        loop: asyncio.AbstractEventLoop | None = None,
        time: Callable[[], float] = system_time.monotonic,
    ) -> None:
        limits = Limits(
            shards, lanes, workers_per_shard, queue_limit, max_wait_ms, cancel_share, failures_to_halt
        )
        self._handler = handler
        self._stuck_s = stuck_ms / 1000
        self._loop = loop
        self._time = time
        self._admission = Admission(name, limits, time, place_of)
        self._endings = Endings(
            self._admission.halts,
            self._admission.workers,
            time,
            lambda done, how: self._told.append((done, how)),
        )
        self._lock = threading.Lock()
        """Held for every look at a worker, never while a handler or a `done` runs."""
        self._told: list[tuple[Done, Any]] = []
        """What whoever holds the lock has to tell once it is free."""
        self._arrived = {worker: threading.Condition(self._lock) for worker in self._admission.workers}
        self._ended = threading.Condition(self._lock)
        self._threads: dict[Worker, threading.Thread] = {}

    def submit(
        self,
        key: str,
        item: Any,
        *,
        place: Place | None = None,
        done: Done | None = None,
        urgent: bool = False,
        deadline: float = inf,
    ) -> Accepted | Rejected:
        """Queue it behind what its worker has; never waits for any of it."""
        with self._lock:
            worker = self._admission.admit(key, place, urgent)
            if not isinstance(worker, Worker):
                return worker
            if worker not in self._threads:
                self._begin(worker)  # first: where no thread can begin, nothing is queued
            now = self._time()
            if not worker.active and not worker.queue:
                worker.begin(now)
            worker.accepted += 1
            worker.queue.append((key, item, done, deadline, now))
            self._arrived[worker].notify()
        return ACCEPTED

    def call(self, key: str, item: Any, *, place: Place | None = None, urgent: bool = False) -> Any:
        """Wait for the result where there is no loop; raises as `LaneExecutor.run` does."""
        return result_of(self._future(key, item, place, urgent).result())

    async def run(self, key: str, item: Any, *, place: Place | None = None, urgent: bool = False) -> Any:
        """`call` for a coroutine: other tasks of its loop get on."""
        return result_of(await asyncio.wrap_future(self._future(key, item, place, urgent)))

    @property
    def halted(self) -> Mapping[str, str]:
        return self._admission.halts.halted

    def halt(self, key: str, why: str) -> None:
        with self._locked():
            self._admission.halts.halt(key, why)
            self._endings.end_queued(NotDone.HALTED, lambda entry: entry[0] == key)

    def resume(self, key: str) -> bool:
        with self._lock:
            return self._admission.halts.resume(key)

    def place(self, key: str) -> Place:
        return self._admission.place(key)

    def stats(self) -> ExecutorStats:
        with self._lock:
            stats = self._admission.stats()
            stuck = {worker.name for worker in self._admission.workers if self._is_stuck(worker)}
        return replace(
            stats, workers=tuple(replace(each, stuck=each.name in stuck) for each in stats.workers)
        )

    def close(self, grace_s: float = GRACE_S) -> None:
        """Finish what was accepted, then end the threads. Not from a handler: it would wait for itself."""
        with self._lock:
            self._admission.closing = True
            for arrived in self._arrived.values():
                arrived.notify()
            self._ended.wait_for(self._is_idle, timeout=None if grace_s == inf else grace_s)
        with self._locked():
            self._endings.end_queued(NotDone.DROPPED, lambda _: True)
            for worker in self._admission.workers:
                if worker.running is not None and not worker.stuck:
                    worker.stuck = True
                    self._endings.end(worker, worker.running, NotDone.DROPPED)
        for thread in self._threads.values():
            thread.join(CANCEL_S)
            if thread.is_alive():
                log.error("handler does not end", extra={"worker": thread.name})

    async def aclose(self, grace_s: float = GRACE_S) -> None:
        """`close` without holding up the loop."""
        await asyncio.to_thread(self.close, grace_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _future(self, key: str, item: Any, place: Place | None, urgent: bool) -> Future[Any]:
        ended: Future[Any] = Future()

        def done(outcome: Any) -> None:
            if ended.set_running_or_notify_cancel():
                ended.set_result(outcome)

        answer = self.submit(key, item, place=place, done=done, urgent=urgent)
        if isinstance(answer, Rejected):
            raise NotAccepted(answer)
        return ended

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """What ends inside is told afterwards, by the same thread: the answers of a key keep their order."""
        with self._lock:
            yield
            told, self._told = self._told, []
        if not told:
            return
        if self._loop is None:
            self._tell(told)
        else:
            try:
                self._loop.call_soon_threadsafe(self._tell, told)
            except RuntimeError:
                log.error("the loop ended before the executor", extra={"untold": len(told)})

    def _tell(self, told: list[tuple[Done, Any]]) -> None:
        for done, outcome in told:
            self._endings.tell(done, outcome)

    def _begin(self, worker: Worker) -> None:
        thread = threading.Thread(target=self._work, args=(worker,), name=worker.name, daemon=True)
        thread.start()
        self._threads[worker] = thread

    def _work(self, worker: Worker) -> None:
        """A thread's life: item after item, until the executor closes and nothing is left."""
        while (entry := self._next(worker)) is not None:
            try:
                result = self._handler(entry[0], entry[1])
            except BaseException as error:  # SystemExit too: nobody else would answer for this worker's queue
                self._end(worker, entry, error, None)
            else:
                self._end(worker, entry, None, result)

    def _next(self, worker: Worker) -> Entry | None:
        while True:
            with self._locked():
                self._arrived[worker].wait_for(lambda: worker.queue or self._admission.closing)
                if not worker.queue:
                    return None
                entry = worker.queue.popleft()
                worker.taken += 1
                now = self._time()
                if now < entry[3]:
                    worker.active, worker.running, worker.since = True, entry, now
                    return entry
                self._endings.end(worker, entry, NotDone.EXPIRED)
                self._ended.notify_all()

    def _end(self, worker: Worker, entry: Entry, error: BaseException | None, result: Any) -> None:
        with self._locked():
            if not worker.stuck:
                if error is not None:
                    self._endings.failed(worker, entry, error)
                else:
                    self._endings.succeeded(worker, entry, result)
            worker.active, worker.running, worker.stuck = False, None, False
            now = self._time()
            if now - worker.pace_at > PACE_S:
                worker.begin(now)
            self._ended.notify_all()

    def _is_idle(self) -> bool:
        return not any(worker.active or worker.queue for worker in self._admission.workers)

    def _is_stuck(self, worker: Worker) -> bool:
        since_s = self._time() - worker.since
        return worker.stuck or (worker.running is not None and 0 < self._stuck_s < since_s)
