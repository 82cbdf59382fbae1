"""Keyed work in order, on one event loop: what has the same key runs one after the other, other keys get on.

    async with LaneExecutor(handler) as executor:
        match executor.submit("AAPL", order, done=reply):
            case Rejected(reason, retry_after_ms=ms): ...        # nothing was queued
        result = await executor.run("MSFT", order)

A key has a place (shard, lane), and lane % workers_per_shard is its worker in that shard. No key and no item
has a task or a future of its own: the workers that have something to do are drained in turns of the loop.
"""

from __future__ import annotations

import asyncio
import time as system_time
from collections.abc import Callable, Mapping
from math import inf
from types import TracebackType
from typing import Any, Self

from roost.core.clock import Clock
from roost.core.loops import Loops
from roost.lanes.admission import Admission, ExecutorStats, Limits, Place
from roost.lanes.ending import Endings, log
from roost.lanes.execution import CANCEL_S, Execution, Handler
from roost.lanes.outcomes import (
    ACCEPTED,
    Accepted,
    Done,
    Failed,
    NotAccepted,
    NotDone,
    NotExecuted,
    Rejected,
    Unfinished,
)
from roost.lanes.watchdog import Watchdog
from roost.lanes.worker import Worker

GRACE_S = 10.0


class LaneExecutor:
    """sent = accepted + rejected, and each accepted item ends exactly once in its `done` (see `outcomes`).

    `handler(key, item)` is a plain function or a coroutine function. The first step of a coroutine runs
    outside any task, where `asyncio.timeout` does not work; `in_task=True` is slower and has no such limit.
    `deadline_ms`: a handler that waits for longer is cancelled; 0: it has all the time it wants.
    `after_turn` is called once after each turn, in which many items may have been executed. `unfinished`
    hears of items without a `done` that have no result: a handler which answers by itself needs none.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        shards: int = 16,
        lanes: int = 64,
        workers_per_shard: int = 4,
        queue_limit: int = 65_536,
        max_wait_ms: float = 0,
        deadline_ms: float = 0,
        cancel_share: float = 0.1,
        failures_to_halt: int = 0,
        turn_ms: float = 5,
        in_task: bool = False,
        after_turn: Callable[[], None] | None = None,
        unfinished: Unfinished | None = None,
        place_of: Callable[[str], Place] | None = None,
        name: str = "order",
        clock: Clock | None = None,
        loops: Loops | None = None,
    ) -> None:
        limits = Limits(
            shards, lanes, workers_per_shard, queue_limit, max_wait_ms, cancel_share, failures_to_halt
        )
        self._time = system_time.monotonic if clock is None else clock.monotonic
        self._admission = Admission(name, limits, self._time, place_of)
        self._admit = self._admission.admit
        self._endings = Endings(
            self._admission.halts, self._admission.workers, self._time, unfinished=unfinished
        )
        self._execution = Execution(
            handler,
            self._admission.workers,
            self._endings,
            turn_s=turn_ms / 1000,
            in_task=in_task,
            after_turn=after_turn,
            time=self._time,
        )
        self._watchdog = Watchdog(
            name,
            deadline_ms / 1000,
            self._execution.waiting,
            self._execution.late,
            loops=loops or Loops(clock),
            time=self._time,
        )
        self._execution.on_wait = self._watchdog.start

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
        """Queue it behind what its worker has; never waits. To be called by its loop's thread alone.

        `place` is computed from the key if it is not given. `urgent` items find room where others are
        refused, and still run in the order of arrival. `deadline` (monotonic seconds): it is not executed
        later than that.
        """
        worker = self._admit(key, place, urgent)
        if not isinstance(worker, Worker):
            return worker
        now = self._time()
        if not worker.active:
            self._execution.wake(worker, now)  # first: where there is no loop, nothing is queued
        worker.accepted += 1
        worker.queue.append((key, item, done, deadline, now))
        return ACCEPTED

    def submit_to(
        self, worker: Worker, key: str, item: Any, now: float, urgent: bool, deadline: float
    ) -> Accepted | Rejected:
        """`submit` for whoever knows the worker (`worker_of`) and the time already, and needs no `done`."""
        queue, admission = worker.queue, self._admission
        if queue or admission.closing or admission.halts.halted:  # else nothing can be against it
            refused = admission.why_not(worker, key, urgent)
            if refused is not None:
                return refused
        if not worker.active:
            self._execution.wake(worker, now)
        worker.accepted += 1
        queue.append((key, item, None, deadline, now))
        return ACCEPTED

    @property
    def is_plain(self) -> bool:
        """Whether nothing speaks against an item but what waits for its worker.

        Then whoever submits may execute it instead, if its worker is not `active`: it counts as `passed`.
        """
        return not (self._admission.closing or self._admission.halts.halted)

    def worker_of(self, place: Place) -> Worker | None:
        """Who serves a place, for ever; None: there is no such place."""
        return self._admission.worker_of(place)

    async def run(
        self, key: str, item: Any, *, place: Place | None = None, urgent: bool = False, deadline: float = inf
    ) -> Any:
        """The handler's result, or its error; `NotAccepted` and `NotExecuted` say what else became of it.

        A caller that is cancelled waits no longer; the item is executed all the same.
        """
        ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def done(outcome: Any) -> None:
            if not ended.done():
                ended.set_result(outcome)

        answer = self.submit(key, item, place=place, done=done, urgent=urgent, deadline=deadline)
        if isinstance(answer, Rejected):
            raise NotAccepted(answer)
        return result_of(await ended)

    @property
    def halted(self) -> Mapping[str, str]:
        """Key → why it is halted."""
        return self._admission.halts.halted

    def halt(self, key: str, why: str) -> None:
        """Nothing of this key is executed until `resume`; what of it waits ends as `NotDone.HALTED`."""
        self._admission.halts.halt(key, why)
        self._endings.end_queued(NotDone.HALTED, lambda entry: entry[0] == key)

    def resume(self, key: str) -> bool:
        """False: it was not halted."""
        return self._admission.halts.resume(key)

    def place(self, key: str) -> Place:
        """Shard and lane of a key; they depend on the key, `shards` and `lanes` alone."""
        return self._admission.place(key)

    def depth(self, shard: int) -> int:
        """Items of a shard that wait; cheaper than `stats`."""
        return sum(len(worker.queue) for worker in self._admission.workers if worker.shard == shard)

    def oldest_wait_ms(self, shard: int) -> int:
        """How long the oldest item of a shard has waited; 0: none waits."""
        now, workers = self._time(), self._admission.workers
        waits = (worker.oldest_wait_s(now) for worker in workers if worker.shard == shard)
        return round(max(waits, default=0.0) * 1000)

    def loads(self, shard: int) -> list[tuple[int, int, int]]:
        """Of each worker of a shard: items that wait, ms that the oldest has, items not taken so far."""
        now, workers = self._time(), self._admission.workers
        return [
            (len(worker.queue), round(worker.oldest_wait_s(now) * 1000), sum(worker.rejected.values()))
            for worker in workers
            if worker.shard == shard
        ]

    def stats(self) -> ExecutorStats:
        return self._admission.stats()

    async def close(self, grace_s: float = GRACE_S) -> None:
        """Take nothing more and finish what was accepted; what has not ended after `grace_s` is dropped."""
        self._admission.closing = True
        try:
            await self._until_idle(grace_s)
        finally:
            tasks = self._execution.abandon()
            self._watchdog.stop()
        if tasks:
            _, stuck = await asyncio.wait(tasks, timeout=CANCEL_S)
            for task in stuck:
                log.error("handler does not end", extra={"worker": task.get_name()})

    async def _until_idle(self, grace_s: float) -> None:
        idle = asyncio.Event()
        self._execution.on_idle = idle.set
        if self._execution.idle():
            return
        try:
            async with asyncio.timeout(None if grace_s == inf else grace_s):
                await idle.wait()
        except TimeoutError:
            log.warning("executor closes with work left", extra={"depth": self.stats().depth})

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def result_of(outcome: Any) -> Any:
    """What a caller that waits gets: the result, or an error is raised."""
    if type(outcome) is Failed:
        raise outcome.error
    if type(outcome) is NotDone:
        raise NotExecuted(outcome)
    return outcome
