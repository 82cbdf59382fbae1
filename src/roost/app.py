"""The composition root: who is built from what, and which loops run.

A `Platform` is one running Roost inside a process. Nothing is global: two of them run side by side.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Protocol

from roost.alerts.claims import StoreClaims
from roost.alerts.metrics import AlertMetrics
from roost.alerts.notifier import Notifier
from roost.alerts.options import SendOptions
from roost.alerts.triggers import Triggers
from roost.audit.service import AuditLog
from roost.balancing.pool import Balancers
from roost.balancing.server import Server
from roost.binding.drain.jobs import Drains
from roost.binding.drain.movers import WireMovers
from roost.binding.service import Bindings
from roost.core.owner import Owner
from roost.core.tracing import Tracer
from roost.discovery.cache import ListCache
from roost.discovery.health import HealthChecker
from roost.discovery.metrics import DiscoveryMetrics
from roost.discovery.probes import ASKED_PARALLEL, Prober
from roost.discovery.reaper import Reaper
from roost.discovery.service import Discovery
from roost.lanes.asking import WireOwners
from roost.lanes.service import Lanes
from roost.settings import Settings
from roost.store.keys import Keys
from roost.store.metrics import StoreMetrics
from roost.store.store import Store
from roost.store.url import StoreUrl
from roost.tracing.opening import open_tracer
from roost.waitingroom.keyring import KeyRing
from roost.waitingroom.worlds import Worlds
from roost.web.metrics import Source
from roost.wire.trust import client_tls, wire_secret


class Capability(Protocol):
    """One that builds on discovery: shown on the metrics page, run by its loops."""

    @property
    def metrics(self) -> Source: ...

    def loops(self, roles: Collection[str]) -> list[Coroutine[Any, Any, None]]:
        """What a process with these roles runs for it."""


class StrategyChooser:
    """Which server takes a user without a home, where binding is told to ask a strategy of balancing."""

    def __init__(self, balancers: Balancers, strategy: str) -> None:
        self._balancers = balancers
        self._strategy = strategy

    async def choose(self, type: str, user: str, /) -> Owner | None:  # noqa: A002
        chosen = (await self._balancers.of(type, "*", self._strategy)).select_server(user)
        return Owner(chosen.server_id, chosen.life) if isinstance(chosen, Server) else None


class Platform:
    """What the edges (gateway, servers, CLI) are built from."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        roles: tuple[str, ...] = (),
        *,
        tracer: Tracer | None = None,
    ) -> None:
        self.settings = settings
        self.store = store
        self.tracer = tracer
        """None: nothing is traced. Whoever brought it closes it."""
        self.roles = roles
        """Which roles run in this process, for `roost status`."""
        self.started_at = time.time()
        self.store_url = settings.store_url
        """With the password that was read last."""
        self._beside: list[tuple[Store, asyncio.AbstractEventLoop]] = []
        loops = store.loops

        self.discovery = Discovery(store, settings.ttl_seconds)
        self.prober = Prober(allow_local=settings.is_dev())
        self.verifier = Prober(allow_local=settings.is_dev(), places=ASKED_PARALLEL)
        """For requests, which take no place of those who judge."""
        self.reaper = Reaper(self.discovery, self.prober, loops)
        self.lists = ListCache(self.discovery, loops)
        self.checker = HealthChecker(self.discovery, self.prober, ballot=self.discovery, loops=loops)
        self.balancers = Balancers(self.discovery, loops)
        self.worlds = Worlds(
            store, settings.queue, key_ring(settings), self.discovery, loops=loops, tracer=tracer
        )
        chooser = StrategyChooser(self.balancers, settings.binding.strategy)
        self.bindings = Bindings(store, settings.binding, self.discovery, loops=loops, chooser=chooser)
        self.movers = movers(settings)
        self.drains = Drains(store, self.bindings, self.discovery, self.movers, loops=loops)
        self.lanes = Lanes(store, settings.lanes, owners(settings))
        self.audit = AuditLog(store, settings.audit, loops=loops)
        self.capabilities: tuple[Capability, ...] = (
            *(self.worlds, self.bindings, self.drains, self.lanes),
            self.audit,
        )

        alerts = settings.alerts
        options = SendOptions(settings.namespace or "roost", alerts.secret, alerts.per_minute, alerts.burst)
        self.notifier = Notifier(alerts.targets(), options, loops, StoreClaims(store))
        self.triggers = Triggers(self.notifier, store.links, loops)
        self.checker.turns.told.append(self.triggers.server_turned)
        store.on_leader_lost(self.triggers.leader_lost)

        self.metrics: tuple[Source, ...] = (
            StoreMetrics(store),
            DiscoveryMetrics(self.discovery, self.reaper, self.checker),
            AlertMetrics(self.notifier),
            *(capability.metrics for capability in self.capabilities),
        )
        """What each part shows on the metrics page."""

    async def take_up(self, fresh: StoreUrl) -> None:
        """Use the passwords of a URL that was read again, on every link; raises as `Store.take_up`."""
        former = self.store_url
        await self.store.take_up(fresh, former)
        self.store_url = fresh
        for store, loop in tuple(self._beside):
            taking = asyncio.run_coroutine_threadsafe(store.take_up(fresh, former), loop)
            await asyncio.wrap_future(taking)

    @asynccontextmanager
    async def link_beside(self, client_name: str) -> AsyncIterator[Store]:
        """Another link to the same store, on the loop that runs now, which may be that of another thread."""
        settings, loop, url = self.settings, asyncio.get_running_loop(), self.store_url
        store = await Store.open(
            url,
            options=settings.link.options(),
            keys=self.store.keys,
            client_name=client_name,
            folder=settings.store_folder,
            attach=True,
            binary=settings.embedded.binary,
        )
        self._beside.append((store, loop))
        try:
            if self.store_url is not url:  # taken up while this one was opened
                await store.take_up(self.store_url, url)
            yield store
        finally:
            self._beside.remove((store, loop))
            await store.close()

    def loops(self) -> list[Coroutine[Any, Any, None]]:
        """What a gateway or manager runs in the background.

        Only a gateway sweeps: servers behind gateways that are all away cannot beat, and keep their leases.
        """
        return [
            *([self.reaper.run()] if "gateway" in self.roles else []),
            self.lists.run(),
            self.checker.run(),
            self.notifier.run(),
            self.triggers.run(),
            *(loop for capability in self.capabilities for loop in capability.loops(self.roles)),
        ]


def key_ring(settings: Settings) -> KeyRing:
    dev_folder = settings.data if settings.is_dev() else None
    return KeyRing(settings.queue_keys, settings.ticket_keys, dev_folder=dev_folder)


def movers(settings: Settings) -> WireMovers:
    """The calls to entity servers; the secret is read at the first: not everybody who could drain does."""
    return WireMovers(
        lambda: wire_secret(settings.wire_secret, settings.data if settings.is_dev() else None),
        tls=lambda: client_tls(settings.wire.tls_ca),
        limits=settings.wire.limits(),
    )


def owners(settings: Settings) -> WireOwners:
    """The calls to order servers; the secret is read at the first."""
    return WireOwners(
        lambda: wire_secret(settings.wire_secret, settings.data if settings.is_dev() else None),
        tls=lambda: client_tls(settings.wire.tls_ca),
        limits=settings.wire.limits(),
    )


@asynccontextmanager
async def open_platform(
    settings: Settings,
    *,
    roles: tuple[str, ...] = (),
    attach: bool = False,
    wait_s: float | None = None,
    service: str = "",
    tracer: Tracer | None = None,
) -> AsyncIterator[Platform]:
    """A platform on the store that the settings name; everything is closed, the store last, on the way out.

    `attach` and `wait_s` are those of `Store.open`. The loops run if the process has a role.
    `service` names who tells the spans, by default the roles do; without a name nothing is traced. `tracer`:
    in place of the settings' own.
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
    own_tracer: Tracer | None = None
    try:
        if tracer is None and (name := service or "-".join(roles)):
            tracer = own_tracer = open_tracer(settings.tracing, name)
        platform = Platform(settings, store, roles, tracer=tracer)
        tasks = [asyncio.create_task(loop) for loop in (platform.loops() if roles else ())]
        try:
            yield platform
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await platform.balancers.close()
            await platform.movers.close()
            await platform.lanes.close()
            await platform.audit.writer.close()
    finally:
        if own_tracer is not None:
            await own_tracer.close()
        await store.close()
