"""The turns of an executor: ready workers are drained in batches, all of them in one callback of the loop.

A handler that is a plain function runs right there. A coroutine is stepped once by hand; only if it waits
does a task carry its worker on, for the rest of that item and for those behind it. Other workers get on.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Coroutine
from math import inf
from types import CoroutineType
from typing import Any

from roost.lanes.ending import Endings, log
from roost.lanes.outcomes import NotDone
from roost.lanes.worker import PACE_S, Entry, Worker
from roost.wire.stepping import Blocked, step

Handler = Callable[[str, Any], Any]
"""`handler(key, item)`: the result, or a coroutine of it."""

BATCH = 32
"""Items of one worker before the next one has its turn."""

TURN_ITEMS = 4_096
"""A turn ends after so many items, or so much time, and the loop does other things before the next."""

CANCEL_S = 1.0
"""For handlers to end after they were cancelled, before a closing executor leaves them behind."""


class Execution:
    """Who is ready, who waits, and how each item ends."""

    def __init__(
        self,
        handler: Handler,
        workers: list[Worker],
        endings: Endings,
        *,
        turn_s: float,
        in_task: bool,
        after_turn: Callable[[], None] | None,
        time: Callable[[], float],
    ) -> None:
        self.waiting: set[Worker] = set()
        """Workers that a task carries."""
        self.on_wait: Callable[[], None] = lambda: None
        self.on_idle: Callable[[], None] | None = None
        """Called after each turn that leaves nothing to do."""
        self._handler = handler
        self._workers = workers
        self._endings = endings
        self._failing = endings.failing
        self._turn_s = turn_s
        self._in_task = in_task
        self._after_turn = after_turn
        self._time = time
        self._ready: deque[Worker] = deque()
        self._scheduled = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._context = contextvars.copy_context()
        """Handlers do not run in the context of whoever happened to submit first."""

    def wake(self, worker: Worker, now: float) -> None:
        """An idle worker is about to have something to do; without a loop it raises, and changes nothing."""
        if not self._scheduled:
            self._schedule()
        worker.active = True
        worker.pace_at, worker.pace_taken = now, worker.taken
        self._ready.append(worker)

    def idle(self) -> bool:
        return not any(worker.active for worker in self._workers)

    def late(self, worker: Worker) -> None:
        """Answer for a handler that takes too long, and cancel it; its worker waits until it has ended."""
        assert worker.running is not None
        assert worker.task is not None
        worker.stuck = True
        worker.task.cancel()
        self._endings.late(worker, worker.running)

    def abandon(self) -> list[asyncio.Task[None]]:
        """Nothing is executed any more: answer for everything, and cancel what runs."""
        self._endings.end_queued(NotDone.DROPPED, lambda _: True)
        tasks = []
        for worker in self.waiting:
            if worker.running is not None and not worker.stuck:
                worker.stuck = True
                self._endings.end(worker, worker.running, NotDone.DROPPED)
            if worker.task is not None:
                worker.task.cancel()
                tasks.append(worker.task)
        return tasks

    def _schedule(self) -> None:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        self._loop.call_soon(self._turn, context=self._context)
        self._scheduled = True

    def _turn(self) -> None:
        ready, time = self._ready, self._time
        until, left = time() + self._turn_s, TURN_ITEMS
        try:
            while ready:
                left -= self._drain(ready.popleft())
                if ready and (left <= 0 or time() >= until):
                    break
        finally:
            self._end_turn()

    def _end_turn(self) -> None:
        if self._after_turn is not None:
            try:
                self._after_turn()
            except Exception:
                log.exception("after_turn failed")
        self._scheduled = False
        if self._ready:
            self._schedule()
        elif self.on_idle is not None and self.idle():
            self.on_idle()

    def _drain(self, worker: Worker) -> int:
        """Run a batch; returns how many. Whatever a handler does, its worker ends ready, waiting or idle."""
        if self._in_task:
            self._carry_on(worker, None, None)
            return 1
        queue, handler, time = worker.queue, self._handler, self._time
        taken = succeeded = 0
        blocked = False
        try:
            while queue and taken < BATCH:
                entry = queue.popleft()
                key, item, done, deadline, _ = entry
                taken += 1
                if deadline != inf and time() >= deadline:
                    self._endings.end(worker, entry, NotDone.EXPIRED)
                    continue
                try:
                    result = handler(key, item)
                    if type(result) is CoroutineType:
                        result = step(result)
                        if type(result) is Blocked:
                            blocked = True
                            self._carry_on(worker, entry, result.rest)
                            break
                except BaseException as error:
                    self._endings.failed(worker, entry, error)
                    if not isinstance(error, (Exception, asyncio.CancelledError)):
                        raise
                    continue
                if done is not None or self._failing:
                    self._endings.succeeded(worker, entry, result)
                else:  # nobody is to be told: counted below
                    succeeded += 1
        finally:
            worker.taken += taken
            worker.executed += succeeded
            if queue and not blocked:
                self._release(worker)
            elif not blocked:
                worker.active = False
        return taken

    def _release(self, worker: Worker) -> None:
        """Nobody works on its queue: ready again, or idle."""
        if not worker.queue:
            worker.active = False
            return
        self._ready.append(worker)
        now = self._time()
        if now - worker.pace_at > PACE_S:
            worker.begin(now)

    def _carry_on(self, worker: Worker, entry: Entry | None, rest: Coroutine[Any, Any, Any] | None) -> None:
        assert self._loop is not None
        worker.running, worker.since = entry, self._time()
        self.waiting.add(worker)
        worker.task = self._loop.create_task(self._carry(worker, entry, rest), name=worker.name)
        worker.task.add_done_callback(lambda task: self._carried(worker, task, rest))
        self.on_wait()

    async def _carry(
        self, worker: Worker, entry: Entry | None, rest: Coroutine[Any, Any, Any] | None
    ) -> None:
        """The rest of an item, then those behind it: a worker whose handlers wait needs no task for each."""
        if entry is not None:
            await self._finish(worker, entry, rest)
        left = BATCH
        while worker.queue and left and not _is_cancelled(worker):
            entry, left = worker.queue.popleft(), left - 1
            worker.taken += 1
            if self._time() >= entry[3]:
                self._endings.end(worker, entry, NotDone.EXPIRED)
            else:
                await self._finish(worker, entry, None)

    def _carried(
        self, worker: Worker, task: asyncio.Task[None], rest: Coroutine[Any, Any, Any] | None
    ) -> None:
        """The task is over, or was cancelled before it began: no `finally` of its own would see that."""
        if rest is not None and task.cancelled():
            rest.close()
        if worker.running is not None and not worker.stuck:
            self._endings.end(worker, worker.running, NotDone.DROPPED)
        worker.running, worker.stuck, worker.task = None, False, None
        self.waiting.discard(worker)
        self._release(worker)
        if not self._scheduled:
            self._schedule()

    async def _finish(self, worker: Worker, entry: Entry, rest: Coroutine[Any, Any, Any] | None) -> None:
        worker.running, worker.since = entry, self._time()
        try:
            result = rest if rest is not None else self._handler(entry[0], entry[1])
            if isinstance(result, CoroutineType):
                result = await result
        except BaseException as error:
            if not self._was_answered(worker):
                if isinstance(error, asyncio.CancelledError) and _is_cancelled(worker):
                    raise  # not by us: the loop ends, and `_carried` answers
                worker.running = None
                self._endings.failed(worker, entry, error)
            if not isinstance(error, (Exception, asyncio.CancelledError)):
                raise
        else:
            if not self._was_answered(worker):
                worker.running = None
                self._endings.succeeded(worker, entry, result)
        if self._after_turn is not None and not self._scheduled:
            self._schedule()

    def _was_answered(self, worker: Worker) -> bool:
        """It was late or dropped, and has ended now: what it did or raised is told to nobody."""
        if not worker.stuck:
            return False
        worker.stuck, worker.running = False, None
        assert worker.task is not None
        worker.task.uncancel()
        return True


def _is_cancelled(worker: Worker) -> bool:
    """Whether somebody ends the task that carries it."""
    return worker.task is not None and worker.task.cancelling() > 0
