"""The balancers of one process by what they balance, each following discovery from its first use on.

There are only so many: one more ends the one that was not asked for the longest time.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import NamedTuple

from roost.api.discovery import Watcher
from roost.api.limits import MAX_SLOW_START_S, MAX_TEXT
from roost.balancing.balancer import STRATEGIES, LoadBalancer
from roost.balancing.following import following
from roost.core.errors import InvalidInput
from roost.core.ids import check_service
from roost.core.loops import Loops

MAX_BALANCERS = 64


class Wanted(NamedTuple):
    """Which balancer is meant."""

    type: str
    group: str
    strategy: str
    zone: str = ""
    slow_start_s: int = 0

    def check(self) -> None:
        check_service(self.type, self.group)
        if self.strategy not in STRATEGIES:
            raise InvalidInput(
                f"no strategy {self.strategy[:40]!r}", hint=f"strategies: {', '.join(STRATEGIES)}"
            )
        if len(self.zone) > MAX_TEXT:
            raise InvalidInput(f"zone has at most {MAX_TEXT} characters")
        if not 0 <= self.slow_start_s <= MAX_SLOW_START_S:
            raise InvalidInput(f"slowStartSeconds is {self.slow_start_s}, must be 0 to {MAX_SLOW_START_S}")


@dataclass(slots=True, eq=False)
class _Running:
    starting: asyncio.Task[LoadBalancer]
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)


class Balancers:
    def __init__(self, discovery: Watcher, loops: Loops) -> None:
        self._discovery = discovery
        self._loops = loops
        self._running: OrderedDict[Wanted, _Running] = OrderedDict()
        """The one that was asked for last is last."""
        self._ending: set[asyncio.Task[None]] = set()

    async def of(
        self, type_: str, group: str, strategy: str, *, zone: str = "", slow_start_s: int = 0
    ) -> LoadBalancer:
        """The balancer of a service; `InvalidInput` for what cannot be one."""
        wanted = Wanted(type_, group, strategy, zone, slow_start_s)
        running = self._running.get(wanted)
        if running is None:
            wanted.check()
            running = self._begin(wanted)
        self._running.move_to_end(wanted)
        try:
            return await asyncio.shield(running.starting)
        except BaseException:
            if running.starting.done() and self._running.get(wanted) is running:
                del self._running[wanted]  # it did not come to be: the next who asks begins again
            raise

    def _begin(self, wanted: Wanted) -> _Running:
        """Started without a wait: who asks for the same meanwhile waits for it, nobody else does."""
        while len(self._running) >= MAX_BALANCERS:
            self._end(*self._running.popitem(last=False))
        stack = AsyncExitStack()
        balancer = LoadBalancer(
            STRATEGIES[wanted.strategy](), zone=wanted.zone, slow_start_s=wanted.slow_start_s
        )
        opening = following(self._discovery, wanted.type, wanted.group, balancer, self._loops)
        starting = asyncio.create_task(stack.enter_async_context(opening))
        running = self._running[wanted] = _Running(starting, stack)
        return running

    def _end(self, wanted: Wanted, running: _Running) -> None:
        """Who still holds the balancer may use it once more; it only hears of nothing new."""
        task = asyncio.create_task(self._ended(wanted, running))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _ended(self, wanted: Wanted, running: _Running) -> None:
        running.starting.cancel()
        await asyncio.gather(running.starting, return_exceptions=True)
        await running.stack.aclose()
        if not any(one[:3] == wanted[:3] for one in self._running):
            self._loops.forget(f"balancer {wanted.type}:{wanted.group} {wanted.strategy}")

    async def close(self) -> None:
        while self._running:
            self._end(*self._running.popitem())
        await asyncio.gather(*self._ending)
