"""What a client sees: lists, one instance, changes, who is healthy. `Client` adds what a server says."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from roost.api.discovery import Change, Instance, InstanceDetail
from roost.core.errors import StoreError
from roost.core.loops import Loops
from roost.sdk.finding import find
from roost.sdk.memory import ListMemory
from roost.sdk.ports import Registry
from roost.sdk.watching import Watch, tell

if TYPE_CHECKING:
    from roost.balancing import LoadBalancer
    from roost.discovery.health import HealthChecker


class Looking:
    """Questions, and what follows from the answers."""

    def __init__(self, registry: Callable[[], Awaitable[Registry]], loops: Loops, lists: ListMemory) -> None:
        """`registry` gives who is asked, and opens the way to it if need be."""
        self._registry = registry
        self.loops = loops
        """Everything that this client repeats in the background, and how it is doing."""
        self._lists = lists
        self._listeners: set[asyncio.Task[None]] = set()

    async def _stop_listening(self) -> None:
        for task in self._listeners:
            task.cancel()
        await asyncio.gather(*self._listeners, return_exceptions=True)

    async def discover(
        self,
        type: str = "*",  # noqa: A002
        group: str = "*",
        *,
        verify: bool = False,
        labels: Sequence[str] = (),
    ) -> list[Instance]:
        """Live instances. While nobody answers: the last list that was believed, from memory or disk."""
        try:
            fresh = await (await self._registry()).discover(type, group, labels, verify)
        except StoreError as error:
            kept = None if labels else self._lists.recall(type, group, error.message)
            if kept is None:
                raise
            return kept
        return fresh.instances if labels else self._lists.believe(type, group, fresh)

    async def get(self, any_id: str, type: str = "*") -> InstanceDetail:  # noqa: A002
        """One instance with its history: living or gone by its instance id, living by its server id."""
        return await find(await self._registry(), any_id, type)

    def watch(
        self,
        type: str = "*",  # noqa: A002
        group: str = "*",
        *,
        labels: Sequence[str] = (),
    ) -> AsyncGenerator[Change, None]:
        """Every change, a snapshot first. Outlives outages; a snapshot that cannot be true is held back."""
        return Watch(self._registry, (type, group, labels), self.loops.loop("sdk-watch")).changes()

    def on_server_added(
        self,
        callback: Callable[[Instance], None],
        type: str = "*",  # noqa: A002
        group: str = "*",
    ) -> Callable[[], None]:
        """Call back for every instance that is there or appears; returns the way to stop."""
        return self._listen(type, group, added=callback)

    def on_server_removed(
        self,
        callback: Callable[[str], None],
        type: str = "*",  # noqa: A002
        group: str = "*",
    ) -> Callable[[], None]:
        """Call back with the server id of everybody who leaves (the instance id of one without); returns the
        way to stop."""
        return self._listen(type, group, removed=callback)

    def health_checker(
        self,
        type: str = "*",  # noqa: A002
        group: str = "*",
        *,
        balancer: LoadBalancer | None = None,
        interval_s: float = 5.0,
    ) -> HealthChecker:
        """A checker of its own for the servers there: `start()` it, and it tells who became unhealthy and who
        recovered, by server id, and tells the balancer whom to leave out: those that discovery doubts (in a
        panic it doubts nobody) and those that it finds unhealthy itself, up to half of them."""
        from roost.discovery.health import HealthChecker
        from roost.discovery.probes import Prober

        prober = Prober(allow_local=True)
        return HealthChecker(
            self, prober, type, group, balancer=balancer, interval_s=interval_s, loops=self.loops
        )

    def _listen(
        self,
        type_: str,
        group: str,
        added: Callable[[Instance], None] = lambda instance: None,
        removed: Callable[[str], None] = lambda instance_id: None,
    ) -> Callable[[], None]:
        known: dict[str, tuple[str, str]] = {}
        loop = self.loops.loop("sdk-listen")

        async def listen() -> None:
            async with contextlib.aclosing(self.watch(type_, group)) as changes:
                async for change in changes:
                    tell(change, known, added, removed)
                    loop.good()

        task = asyncio.create_task(loop.keep_running(listen), name=f"roost listen {type_} {group}")
        self._listeners.add(task)
        task.add_done_callback(self._listeners.discard)
        return lambda: (task.cancel(), None)[1]
