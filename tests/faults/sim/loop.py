"""An event loop in virtual time. Which process runs next is drawn; within a process order is kept, as ever.

A process is a `Node`, found by a context variable: its callbacks and tasks inherit it. A dead one runs no
more, a paused one later. When nobody is ready time jumps to the next timer; so an hour costs nothing, and the
same seed does the same.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any

NOBODY = "world"


class Node:
    """One process, in one life."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.paused_until = 0.0
        self.steps = 0
        self.ready: deque[SimHandle] = deque()
        self.at_step: tuple[int, Callable[[], None]] | None = None
        """What happens to it when it has made so many steps."""
        self.context: Context = copy_context()
        self.context.run(NODE.set, self)

    def __repr__(self) -> str:
        return self.name


NODE: ContextVar[Node | None] = ContextVar("node", default=None)


class SimHandle(asyncio.TimerHandle):
    """A callback, due at `when`."""

    def __init__(self, when: float, callback: Any, args: Any, loop: SimLoop, context: Context | None) -> None:
        context = context if context is not None else copy_context()
        super().__init__(when, callback, args, loop, context)
        self.node = context.get(NODE)

    def go(self) -> None:
        self._run()


class Stuck(Exception):
    """Nobody is ready and nothing is due."""


class SimLoop(asyncio.BaseEventLoop):
    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = random.Random(seed)
        self.now = 1000.0
        self.steps = 0
        self.raised: list[str] = []
        """What callbacks and tasks raised that nobody took."""
        self.world = Node(NOBODY)
        self._timers: list[tuple[float, int, SimHandle]] = []
        self._numbers = itertools.count()
        self._nodes: dict[Node, None] = {self.world: None}

    def time(self) -> float:
        return self.now

    def add(self, node: Node) -> None:
        self._nodes[node] = None

    def crash(self, node: Node) -> None:
        """Nothing of it runs any more. What it held is kept until the end: nothing of it is tidied up."""
        node.alive = False

    def _run_once(self) -> None:
        self._sort_out()
        runnable = [node for node in self._nodes if node.ready and node.paused_until <= self.now]
        if not runnable:
            self._jump()
            return
        node = runnable[self.random.randrange(len(runnable))] if len(runnable) > 1 else runnable[0]
        handle = node.ready.popleft()
        if handle.cancelled():
            return
        node.steps += 1
        self.steps += 1
        if node.at_step is not None and node.steps >= node.at_step[0]:
            what, node.at_step = node.at_step[1], None
            what()
            if not node.alive:
                return
        handle.go()

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> SimHandle:  # type: ignore[override]
        handle = SimHandle(self.now, callback, args, self, context)
        self._put(handle)
        return handle

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> SimHandle:  # type: ignore[override]
        handle = SimHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._numbers), handle))
        return handle

    def _put(self, handle: SimHandle) -> None:
        """What is ready goes to its process."""
        node = handle.node or self.world
        if node.alive:
            node.ready.append(handle)

    def _sort_out(self) -> None:
        while self._timers and self._timers[0][0] <= self.now:
            handle = heapq.heappop(self._timers)[2]
            if not handle.cancelled():
                self._put(handle)

    def _jump(self) -> None:
        times = [node.paused_until for node in self._nodes if node.ready and node.paused_until > self.now]
        if self._timers:
            times.append(self._timers[0][0])
        if not times:
            raise Stuck("nobody is ready and nothing is due")
        self.now = max(self.now, min(times))

    def close(self) -> None:
        for node in self._nodes:
            node.ready.clear()
        self._nodes.clear()
        self._timers.clear()
        super().close()

    # -- what a loop with sockets would have

    def _process_events(self, event_list: Any) -> None:
        raise NotImplementedError

    def _write_to_self(self) -> None:
        pass

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Tasks of dead processes are destroyed while they wait, as they should be."""
        if "handle" in context:
            self.raised.append(f"{type(context['exception']).__name__} in a callback: {context['exception']}")

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task that must not fail."""
        task = self.create_task(work)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.raised.append(f"{type(error).__name__} in a task: {error}")
