"""The composition root: who is built from what, and which loops run.

A `Platform` is one running Roost inside a process. Nothing is global: two of them run side by side.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from roost.alerts import Alert, AlertKind
from roost.alerts.notifier import Manner, Notifier
from roost.balancing import STRATEGIES, LoadBalancer
from roost.balancing.following import following
from roost.core.errors import InvalidInput, StoreError
from roost.core.events import Gap
from roost.core.lease import Tenure
from roost.discovery.failover import Failover, Holder, HoldsNothing
from roost.discovery.health import HealthChecker
from roost.discovery.probes import Prober
from roost.discovery.reaper import Reaper
from roost.discovery.service import Discovery
from roost.settings import Settings
from roost.store.keys import Keys
from roost.store.scopes import discovery
from roost.store.store import Store
from roost.worlds import World, Worlds

MAX_BALANCERS = 64
STORE_AWAY_S = 5.0
"""How long a node of the store may be away before an alert says so."""


class Balancers:
    """Balancers of this process by what they balance, each following discovery from its first use on."""

    def __init__(self, discovery: Discovery) -> None:
        self._discovery = discovery
        self._running: dict[tuple[str, str, str], LoadBalancer] = {}
        self._stack = AsyncExitStack()
        self._starting = asyncio.Lock()

    async def of(self, type_: str, group: str, strategy: str) -> LoadBalancer:
        wanted = (type_, group, strategy)
        async with self._starting:
            if wanted not in self._running:
                if len(self._running) >= MAX_BALANCERS:
                    raise InvalidInput(
                        f"{MAX_BALANCERS} balancers run here already", hint="ask for fewer places"
                    )
                opening = following(self._discovery, type_, group, LoadBalancer(STRATEGIES[strategy]()))
                self._running[wanted] = await self._stack.enter_async_context(opening)
            return self._running[wanted]

    async def close(self) -> None:
        await self._stack.aclose()


@dataclass(slots=True)
class Platform:
    """What the edges (gateway, servers, CLI) are built from."""

    settings: Settings
    store: Store
    roles: tuple[str, ...] = ()
    """Which roles run in this process, for `roost status`."""
    started_at: float = field(default_factory=time.time)
    discovery: Discovery = field(init=False)
    prober: Prober = field(init=False)
    reaper: Reaper = field(init=False)
    checker: HealthChecker = field(init=False)
    balancers: Balancers = field(init=False)
    worlds: Worlds = field(init=False)
    failover: Failover = field(init=False)
    notifier: Notifier = field(init=False)
    closing: bool = False

    def __post_init__(self) -> None:
        self.discovery = Discovery(self.store, self.settings.ttl_seconds)
        self.prober = Prober(allow_local=self.settings.is_dev())
        self.reaper = Reaper(self.discovery, self.prober)
        self.balancers = Balancers(self.discovery)
        self.checker = HealthChecker(self.discovery, self.prober, ballot=self.discovery)
        alerts = self.settings.alerts
        manner = Manner(self.settings.namespace or "roost", alerts.secret, alerts.per_minute, alerts.burst)
        self.notifier = Notifier(alerts.targets(), manner)
        self.checker.on_server_unhealthy(lambda server: self.alert("unhealthy", server, "is unhealthy"))
        self.checker.on_server_recovered(lambda server: self.alert("recovered", server, "has recovered"))
        binding: Holder = HoldsNothing()
        self.worlds = Worlds(self.store, self.settings)
        self.failover = Failover(self.discovery, (binding, self.worlds))

    def loops(self) -> list[Coroutine[Any, Any, None]]:
        """What a gateway or manager runs in the background."""
        leader = self.store.leader(discovery(), "failover", job="failover")
        return [
            self.reaper.run(),
            self._follow_discovery(),
            self.checker.run(),
            leader.lead(self.led("failover", self.failover.run)),
            self.notifier.run(),
            self._watch_store(),
            *((self.worlds.export_status(),) if "manager" in self.roles else ()),
            *(world.presence.run() for world in self.worlds.all()),
            *(self._manage(world) for world in self.worlds.all() if "manager" in self.roles),
        ]

    async def _manage(self, world: World) -> None:
        """Let people in, whenever this process leads the world."""
        leader = self.store.leader(world.room.scope, "manager")
        await leader.lead(self.led(world.name, world.admitter.run))

    def alert(self, kind: AlertKind, subject: str, what: str) -> None:
        self.notifier.tell(Alert(kind, subject, f"{subject} {what}", time.time()))

    def led(
        self, scope: str, work: Callable[[Tenure], Awaitable[None]]
    ) -> Callable[[Tenure], Awaitable[None]]:
        """A leader's work that tells it when the leadership is lost, not when it is laid down."""

        async def watched(tenure: Tenure) -> None:
            try:
                await work(tenure)
            finally:
                if not self.closing:
                    self.alert("leader-lost", scope, "has lost its leader in this process")

        return watched

    async def _watch_store(self) -> None:
        """Alert once when a node of the store has been away for a while, and once when it is back."""
        away_since: dict[str, float] = {}
        told: set[str] = set()
        while True:
            now = time.monotonic()
            for link in self.store.links():
                if link.connected:
                    away_since.pop(link.name, None)
                    if link.name in told:
                        told.discard(link.name)
                        self.alert("store-back", link.name, "is back")
                elif now - away_since.setdefault(link.name, now) >= STORE_AWAY_S and link.name not in told:
                    told.add(link.name)
                    self.alert("store-away", link.name, f"is away: {link.why_down or 'no answer'}")
            await asyncio.sleep(1.0)

    async def _follow_discovery(self) -> None:
        """Keep one follower of the feed, so that lists may be served from memory."""
        while True:
            try:
                async for entry in self.discovery.feed.follow(await self.discovery.feed.head()):
                    if isinstance(entry, Gap):
                        break
            except StoreError:
                await asyncio.sleep(1.0)


@asynccontextmanager
async def open_platform(
    settings: Settings, *, roles: tuple[str, ...] = (), attach: bool = False, wait_s: float | None = None
) -> AsyncIterator[Platform]:
    """A platform on the store that the settings name; everything is closed, the store last, on the way out.

    `attach` and `wait_s` are those of `Store.open`. The loops run if the process has a role.
    """
    store = await Store.open(
        settings.store_url,
        options=settings.link.options(),
        keys=Keys(settings.namespace, settings.discovery.key_prefix),
        client_name=f"roost-{'-'.join(roles) or 'tool'}",
        folder=settings.store_folder,
        attach=attach,
        binary=settings.embedded.binary,
        wait_s=wait_s,
    )
    tasks: list[asyncio.Task[None]] = []
    platform = Platform(settings, store, roles)
    try:
        tasks = [asyncio.create_task(loop) for loop in (platform.loops() if roles else ())]
        yield platform
    finally:
        platform.closing = True
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await platform.balancers.close()
        await store.close()
