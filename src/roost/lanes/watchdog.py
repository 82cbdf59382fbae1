"""One look at all handlers that wait, every now and then: no command has a timer of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from roost.core.loops import Loops
from roost.lanes.worker import Worker

LOOKS = 4
"""In the time that a handler has; so it may take a quarter longer before it is noticed."""

LEAST_PAUSE_S = 0.005


class Watchdog:
    """`late(worker)` is called once for each handler that runs for longer than it may."""

    def __init__(
        self,
        name: str,
        deadline_s: float,
        waiting: Iterable[Worker],
        late: Callable[[Worker], None],
        *,
        loops: Loops,
        time: Callable[[], float],
    ) -> None:
        self._name = f"{name}-watchdog"
        self._deadline_s = deadline_s
        self._waiting = waiting
        self._late = late
        self._loops = loops
        self._time = time
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins with the first handler that waits: most never do. Starting again changes nothing."""
        if self._deadline_s and self._task is None:
            pause_s = max(LEAST_PAUSE_S, self._deadline_s / LOOKS)
            self._task = asyncio.get_running_loop().create_task(
                self._loops.keep_running(self._name, self._look, pause_s=pause_s), name=self._name
            )

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _look(self) -> None:
        before = self._time() - self._deadline_s
        for worker in [
            each for each in self._waiting if each.running and not each.stuck and each.since <= before
        ]:
            self._late(worker)
