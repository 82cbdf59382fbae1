"""The balancers of one process by what they balance, each following discovery from its first use on."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from roost.api.discovery import Watcher
from roost.balancing.balancer import STRATEGIES, LoadBalancer
from roost.balancing.following import following
from roost.core.errors import InvalidInput
from roost.core.ids import check_service
from roost.core.loops import Loops

MAX_BALANCERS = 64


class Balancers:
    def __init__(self, discovery: Watcher, loops: Loops) -> None:
        self._discovery = discovery
        self._loops = loops
        self._running: dict[tuple[str, str, str], LoadBalancer] = {}
        self._stack = AsyncExitStack()
        self._starting = asyncio.Lock()

    async def of(self, type_: str, group: str, strategy: str) -> LoadBalancer:
        """The balancer of a service; `InvalidInput` for a strategy that is not there, or one too many."""
        check_service(type_, group)
        if strategy not in STRATEGIES:
            raise InvalidInput(f"no strategy {strategy[:40]!r}", hint=f"strategies: {', '.join(STRATEGIES)}")
        wanted = (type_, group, strategy)
        async with self._starting:
            if wanted not in self._running:
                if len(self._running) >= MAX_BALANCERS:
                    raise InvalidInput(
                        f"{MAX_BALANCERS} balancers run here already", hint="ask for fewer services"
                    )
                balancer = LoadBalancer(STRATEGIES[strategy]())
                opening = following(self._discovery, type_, group, balancer, self._loops)
                self._running[wanted] = await self._stack.enter_async_context(opening)
            return self._running[wanted]

    async def close(self) -> None:
        await self._stack.aclose()
