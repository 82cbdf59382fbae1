"""Turns: everything of one user happens one at a time and in order, and no user waits for another.

    line = Line(workers, most=256)
    line.add(turn)                  # False: the line is full

A few workers take the lines that have something to do. A turn that never waits costs no task: the worker goes
on to the next line. One that waits keeps its worker, and another takes over; so a slow user costs a task and
delays nobody. Where one turn after the other waits, several take over at once, twice as many each time: what
their turns ask for goes out together. Turns run inside a task because what users call in them needs one
(`asyncio.timeout`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import Context, copy_context
from functools import partial
from typing import Any, Protocol, cast

log = logging.getLogger("roost.entity")

SHARE = 128
"""Turns in a row before a worker lets the event loop look at its sockets."""
GRACE_S = 1.0
"""How long a hook may take to end after it was cancelled."""
MOST_IDLE = 64
MOST_CALLED = 32
"""Workers that take over at once."""


class Turn(Protocol):
    async def run(self) -> None:
        """Do it all, and answer for whatever goes wrong."""

    def bounce(self) -> None:
        """It will not run here."""


class HookTimeout(Exception):
    """A hook of the entity class took longer than it may."""


class HookStuck(HookTimeout):
    """It also ignored its cancellation."""


class HookCancelled(Exception):
    """Something that a hook waited for was cancelled, and it let that through."""


class Line:
    """The turns of one user."""

    __slots__ = ("_most", "_turns", "_workers", "busy")

    def __init__(self, workers: Workers, most: int) -> None:
        self._workers = workers
        self._most = most
        self._turns: deque[Turn] = deque()
        self.busy = False
        """Whether a turn runs, or is about to."""

    def __len__(self) -> int:
        return len(self._turns)

    def add(self, turn: Turn) -> bool:
        """As the last one; False: too many wait already."""
        if len(self._turns) >= self._most:
            return False
        self._turns.append(turn)
        self._go()
        return True

    def add_first(self, turn: Turn) -> None:
        """Before all that wait: one of our own, which are few."""
        self._turns.appendleft(turn)
        self._go()

    def _go(self) -> None:
        if not self.busy:
            self.busy = True
            self._workers.take(self)

    def next(self) -> Turn | None:
        if not self._turns:
            self.busy = False
            return None
        return self._turns.popleft()

    def done(self) -> None:
        """The turn that `next` gave is over."""
        if self._turns:
            self._workers.take(self)
        else:
            self.busy = False

    def bounce_all(self) -> None:
        """Nothing that waits will run."""
        turns, self._turns = self._turns, deque()
        for turn in turns:
            turn.bounce()


class Workers:
    """The tasks that run turns."""

    def __init__(self) -> None:
        self._ready: deque[Line] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle: list[tuple[asyncio.Task[None], asyncio.Future[None]]] = []
        self._takers: set[asyncio.Task[None]] = set()
        """Who takes lines: the one that runs, and those that were called and run soon."""
        self._calls = 1
        """How many take over from a turn that waits: more if the turns before it did."""

    @property
    def count(self) -> int:
        return len(self._tasks)

    def take(self, line: Line) -> None:
        """Run the line's next turn soon, after those that are ready now."""
        self._ready.append(line)
        if not self._takers:
            self._call(1)

    def _call(self, wanted: int) -> None:
        """So many shall take lines."""
        while len(self._takers) < wanted:
            if self._idle:
                taker, sleep = self._idle.pop()
                sleep.set_result(None)
            else:
                taker = asyncio.get_running_loop().create_task(self._work())
                self._tasks.add(taker)
                taker.add_done_callback(self._ended)
            self._takers.add(taker)

    async def _work(self) -> None:
        me, turns = cast("asyncio.Task[None]", asyncio.current_task()), 0
        leave = partial(self._leave, me)
        while await self._has_work(me):
            line = self._ready.popleft()
            if (turn := line.next()) is not None:
                watched = _Watched(turn.run(), leave)
                try:
                    await watched
                except (Exception, asyncio.CancelledError) as error:
                    if me.cancelling():
                        raise
                    log.error("a turn failed", exc_info=error)
                finally:
                    if not watched.has_waited:
                        self._calls = 1
                    self._takers.add(me)  # else `done` would call another
                    line.done()
            turns += 1
            if turns % SHARE == 0:
                await asyncio.sleep(0)

    async def _has_work(self, me: asyncio.Task[None]) -> bool:
        """Wait to be called, where nothing is to be taken; False: there are enough of us."""
        is_needed = True
        while not (is_needed and self._ready):
            self._takers.discard(me)
            if len(self._idle) >= MOST_IDLE:
                return False
            sleep = asyncio.get_running_loop().create_future()
            self._idle.append((me, sleep))
            await sleep
            # called because turns waited; if they do so no more, one is enough
            is_needed = self._calls > 1 or len(self._takers) == 1
        return True

    def _leave(self, taker: asyncio.Task[None]) -> None:
        """The turn under way waits for something; who is ready must not wait with it."""
        self._takers.discard(taker)
        self._call(min(self._calls, len(self._ready)))
        self._calls = min(2 * self._calls, MOST_CALLED)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a worker of turns ended", exc_info=error)
        if task in self._takers:
            self._leave(task)

    async def close(self) -> None:
        """End whatever is under way; what is ready stays undone."""
        self._ready.clear()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Watched:
    """A coroutine in a context of its own; `on_wait` is called when it first waits for something."""

    __slots__ = ("_coroutine", "_on_wait", "has_waited")

    def __init__(self, coroutine: Coroutine[Any, Any, None], on_wait: Callable[[], None]) -> None:
        self._coroutine = coroutine
        self._on_wait = on_wait
        self.has_waited = False

    def __await__(self) -> Generator[Any, Any, None]:
        context = copy_context()
        try:
            waited = context.run(self._coroutine.send, None)
        except StopIteration:
            return
        self.has_waited = True
        self._on_wait()
        yield from _resumed(self._coroutine, waited, context)


def _resumed(coroutine: Coroutine[Any, Any, Any], waited: Any, context: Context) -> Generator[Any, Any, Any]:
    """The rest of a coroutine that waits for `waited`, as `yield from` would run it."""
    while True:
        try:
            sent = yield waited
            step, value = coroutine.send, sent
        except BaseException as error:
            step, value = coroutine.throw, error
        try:
            waited = context.run(step, value)
        except StopIteration as end:
            return end.value


async def limited(hook: object, seconds: float) -> Any:
    """What a hook returns. One that waits too long is cancelled (`HookTimeout`), or given up (`HookStuck`).

    A hook that was not declared `async` is done already.
    """
    if isinstance(hook, Coroutine):
        return await _Limited(hook, seconds)
    return await hook if isinstance(hook, Awaitable) else hook


class _Limited:
    __slots__ = ("_coroutine", "_rings", "_seconds")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], seconds: float) -> None:
        self._coroutine = coroutine
        self._seconds = seconds
        self._rings = 0
        """How often its time was over."""

    def __await__(self) -> Generator[Any, Any, Any]:
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        try:
            waited = self._coroutine.send(None)
        except StopIteration as end:
            return end.value
        except asyncio.CancelledError:
            raise HookCancelled("what it waited for was cancelled") from None
        loop = asyncio.get_running_loop()

        timer = loop.call_later(self._seconds, lambda: ring())

        def ring() -> None:
            nonlocal timer
            self._rings += 1
            task.cancel()
            timer = loop.call_later(GRACE_S, ring)

        try:
            return (yield from self._rest(waited))
        except asyncio.CancelledError:
            if self._rings:
                raise HookTimeout(f"it took longer than {self._seconds:g} s") from None
            if not task.cancelling():
                raise HookCancelled("what it waited for was cancelled") from None
            raise
        finally:
            timer.cancel()
            for _ in range(self._rings):
                task.uncancel()

    def _rest(self, waited: Any) -> Generator[Any, Any, Any]:
        while True:
            try:
                sent = yield waited
                step, value = self._coroutine.send, sent
            except BaseException as error:
                if self._rings > 1:
                    self._give_up()
                step, value = self._coroutine.throw, error
            try:
                waited = step(value)
            except StopIteration as end:
                return end.value

    def _give_up(self) -> None:
        with contextlib.suppress(RuntimeError):  # it ignores even this
            self._coroutine.close()
        raise HookStuck(f"it took longer than {self._seconds:g} s and ignored its cancellation") from None
