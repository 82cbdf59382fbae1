"""From the settings to a running entity server: its ports, its place in discovery and in the map."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from prometheus_client.core import Metric

from roost.api.discovery import HealthCheck
from roost.api.system import Ready
from roost.app import Platform, open_platform
from roost.binding.drain.standing import READER_LABEL, SCHEMA_LABEL
from roost.binding.service import Bindings
from roost.core.errors import InvalidInput, RoostError, StartFailed, Unavailable
from roost.core.owner import Owner
from roost.core.tracing import Tracer
from roost.db.database import Database, open_database
from roost.sdk.connect import connect
from roost.sdk.entity import Entity, check_entity_class
from roost.sdk.heart import Directive, Registration
from roost.servers.entity.beating import Beating, BeatThread, RollCall, patience_s, ticking
from roost.servers.entity.carrying import Carrying, Settler
from roost.servers.entity.host import Host
from roost.servers.entity.lease import Lease
from roost.servers.entity.market import open_market
from roost.servers.entity.metrics import EntityMetrics
from roost.settings import Settings
from roost.store.metrics import StoreMetrics
from roost.store.store import Store
from roost.web.auth import OneToken
from roost.web.connections import ConnectionLimits
from roost.web.listen import bind, serve, url_of
from roost.web.metrics import LoopMetrics, MetricsPage
from roost.web.ops import OPS_PORT_ABOVE, Ops, check_loops
from roost.web.route import Edge
from roost.wire.client import Peer
from roost.wire.pool import Pool
from roost.wire.server import WireServer
from roost.wire.trust import client_tls, server_tls, wire_secret

log = logging.getLogger("roost.entity")

OPS_LIMITS = ConnectionLimits(total=64)
FIRST_BEAT_S = 10.0
"""How long the first beat may take before the start fails."""
CLOSE_S = 1.0
LOAD_S = 0.5
NAMES_S = 2.0
SETTLE_S = 0.1


@dataclass(frozen=True, slots=True)
class EntityIdentity:
    """Who it is in discovery and in the map."""

    server_id: str
    version: str = "1.0"
    type: str = "entity"
    group: str = "main"
    ttl_seconds: float = 0.0


def load_class(name: str) -> type[Entity]:
    """The class that `module:Name` names; modules of the working directory are found too."""
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise InvalidInput(f"{name!r} is not module:Class", hint="for example --class game.player:Player")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise InvalidInput(f"no module {error.name}", hint="run in the folder that holds it") from error
    except AttributeError:
        raise InvalidInput(f"module {module} has no {attribute}") from None
    return check_entity_class(found)


class Running:
    """An entity server that is up, or about to be."""

    def __init__(self, settings: Settings, entity: type[Entity]) -> None:
        guard = OneToken(settings.api_token, settings.read_token)
        self.edge = Edge(guard, settings.is_dev(), not_found_hint="gates speak wire")
        self.ops = Ops(MetricsPage(settings.profile, (self,), "entity"), self.ready)
        self.described = f"{entity.__name__}, {entity.durability.word}"
        self.platform: Platform | None = None
        self.database: Database | None = None
        self.host: Host | None = None
        self.me: Registration | None = None
        self.leases: list[Lease] = []
        self.shown: EntityMetrics | None = None
        self.url = ""
        self.ops_url = ""

    async def ready(self) -> Ready:
        """Raises why nobody can be served."""
        if self.me is None or self.platform is None or self.database is None or self.shown is None:
            raise Unavailable("starting: not registered yet")
        if self.me.ended is not None:
            raise Unavailable(f"this instance was {self.me.ended}")
        if not all(lease.is_valid for lease in self.leases):
            raise Unavailable("the lease is over: the store takes no beat of this server")
        if not self.database.healthy:
            raise Unavailable("the database does not answer")
        check_loops(self.platform.store.loops)
        return Ready("ready")

    def collect(self) -> Iterator[Metric]:
        if self.platform is not None:
            yield from LoopMetrics(self.platform.store.loops).collect()
            yield from StoreMetrics(self.platform.store).collect()
        if self.shown is not None:
            yield from self.shown.collect()


@asynccontextmanager
async def entity_server(
    settings: Settings,
    entity: type[Entity],
    identity: EntityIdentity,
    *,
    on_end: Callable[[], None],
    wait_s: float,
    tracer: Tracer | None = None,
) -> AsyncIterator[Running]:
    """A server that holds users inside the block; on the way out they are written and released.

    `on_end` is called when discovery says that this instance must stop.
    `tracer`: in place of the settings' own.
    """
    own = settings.entity
    async with contextlib.AsyncExitStack() as stack:
        gates, beside = bind(own.host, own.port), bind(own.host, own.port + OPS_PORT_ABOVE)
        stack.callback(gates.close)
        stack.callback(beside.close)
        secret = wire_secret(settings.wire_secret, settings.data if settings.is_dev() else None)
        running = Running(settings, entity)
        running.url, running.ops_url = url_of(gates, "wire"), url_of(beside)
        beside_runner = await serve(running.ops.app(running.edge), beside, OPS_LIMITS)
        stack.push_async_callback(beside_runner.cleanup)

        platform = await stack.enter_async_context(
            open_platform(settings, attach=True, wait_s=wait_s, service="entity", tracer=tracer)
        )
        database = await stack.enter_async_context(
            open_database(settings.database_url, options=settings.db.options())
        )
        me = await _registered(stack, platform, identity, entity, on_end)
        running.platform, running.database, running.me = platform, database, me
        leases = running.leases = [Lease() for _ in platform.bindings.partitions]
        owner = partial(_owner, identity.server_id, me)
        beating = Beating(identity.type, owner, leases, own.capacity, identity.version)
        carrying = _carrying(settings, identity.type, leases)
        await _beat(stack, platform, beating, leases, carrying)
        bindings = platform.bindings
        host = Host(entity, identity.type, identity.version, own, bindings, database, leases, owner)
        host.tracer = platform.tracer
        host.healer.connections = partial(connections_of, platform.store)
        host.healer.beat = partial(beating.beat, bindings)
        running.host, running.shown = host, EntityMetrics(host, beating, leases, carrying)
        server = WireServer(
            secret=secret, role="entity", version=identity.version, limits=settings.wire.limits()
        )
        host.serve(server)
        host.retiring.leave = on_end
        host.mover.peers = _peers(settings, secret, identity.version)
        stack.push_async_callback(host.mover.peers.close)
        market = host.dealing.market = open_market(platform, secret, identity.version, identity.group)
        stack.push_async_callback(market.close)
        stack.push_async_callback(_bury, platform.bindings, identity.type, owner)
        _run_loops(stack, running, beating, host, me, carrying)
        stack.push_async_callback(server.close, CLOSE_S)
        stack.push_async_callback(_leave, host, beating, me)
        await server.start(gates, server_tls(settings.wire.tls_cert, settings.wire.tls_key))
        yield running


def _peers(settings: Settings, secret: bytes, version: str) -> Pool:
    """How other entity servers are reached, to which users are moved."""
    tls, limits = client_tls(settings.wire.tls_ca), settings.wire.limits()

    def dial(host: str, port: int) -> Peer:
        return Peer(
            host,
            port,
            secret=secret,
            role="entity",
            version=version,
            ssl=tls,
            expects=frozenset({"entity"}),
            limits=limits,
        )

    return Pool(dial)


async def _registered(
    stack: contextlib.AsyncExitStack,
    platform: Platform,
    identity: EntityIdentity,
    entity: type[Entity],
    on_end: Callable[[], None],
) -> Registration:
    settings, own = platform.settings, platform.settings.entity
    client = await stack.enter_async_context(
        connect(platform, ttl_seconds=identity.ttl_seconds, cache_folder=settings.data / "cache")
    )
    where = {} if own.host in ("0.0.0.0", "::", "localhost") else {"private_ip": own.host}
    return await stack.enter_async_context(
        client.registered(
            type=identity.type,
            group=identity.group,
            server_id=identity.server_id,
            version=identity.version,
            capacity=own.capacity,
            ports={"wire": own.port, "metrics": own.port + OPS_PORT_ABOVE},
            health=HealthCheck("http", "metrics", "/healthz"),
            labels={SCHEMA_LABEL: str(entity.schema_version), READER_LABEL: str(entity.min_reader)},
            on_directive=partial(_heed, on_end=on_end),
            **where,
        )
    )


def _heed(directive: Directive, on_end: Callable[[], None]) -> None:
    if directive == "drain":
        log.info("draining: nobody new is placed here")
    else:
        on_end()


def _owner(server_id: str, me: Registration) -> Owner:
    """Our present life: discovery gives another one if it forgot us."""
    return Owner(server_id, me.life)


def _carrying(settings: Settings, type_: str, leases: list[Lease]) -> Carrying | None:
    limit_s, binding = settings.entity.database_lease_seconds, settings.binding
    if not limit_s:
        return None
    options = replace(settings.db.options(), pool_size=1)
    return Carrying(
        type_,
        leases,
        partial(open_database, settings.database_url, options=options),
        ttl_ms=binding.lease_ms,
        patience_s=patience_s(binding.lease_ms, binding.beat_ms),
        limit_s=limit_s,
    )


async def _beat(
    stack: contextlib.AsyncExitStack,
    platform: Platform,
    beating: Beating,
    leases: list[Lease],
    carrying: Carrying | None,
) -> None:
    """Begin to beat; returns when every partition has heard of us."""
    loops, binding = platform.store.loops, platform.settings.binding
    await stack.enter_async_context(ticking(beating, loops))
    thread = BeatThread(beating, partial(_open_bindings, platform), binding.beat_ms / 1000, loops, carrying)
    thread.start()
    stack.push_async_callback(thread.stop)
    deadline = time.monotonic() + FIRST_BEAT_S
    while not all(lease.is_valid for lease in leases):
        if time.monotonic() > deadline:
            raise StartFailed("the store takes no beat of this server", hint="the log says why")
        await asyncio.sleep(0.02)


@asynccontextmanager
async def _open_bindings(platform: Platform) -> AsyncIterator[Bindings]:
    """A link of its own, for the thread that beats."""
    async with platform.link_beside("roost-entity-beat") as store:
        yield Bindings(store, platform.settings.binding, platform.discovery)


def connections_of(store: Store) -> object:
    """What changes with every new connection to a primary; None while one is missing."""
    if store.answering_since() is None:
        return None
    return tuple((link.name, link.stats.connects) for link in store.links())


def _run_loops(
    stack: contextlib.AsyncExitStack,
    running: Running,
    beating: Beating,
    host: Host,
    me: Registration,
    carrying: Carrying | None,
) -> None:
    assert running.platform is not None
    loops = running.platform.store.loops
    roll = RollCall(beating, lambda: [(one.user, one.partition) for one in host.sessions.values()])

    async def load() -> None:
        me.load = len(host.sessions)

    settling: list[Coroutine[Any, Any, None]] = []
    if carrying is not None:
        settler = Settler(carrying, host.residence, host.sessions, host.entity.durability)
        settling = [loops.keep_running("entity-settle", settler.step, pause_s=SETTLE_S)]
    tasks = [
        asyncio.create_task(loop)
        for loop in (
            *host.loops(loops),
            loops.keep_running("entity-load", load, pause_s=LOAD_S),
            loops.keep_running("entity-names", roll.step, pause_s=NAMES_S),
            *settling,
        )
    ]

    async def end() -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    stack.push_async_callback(end)


async def _leave(host: Host, beating: Beating, me: Registration) -> None:
    """Take nobody new, write and release everybody."""
    host.is_stopping, beating.capacity = True, 1
    if me.ended is None:
        me.status = "draining"
    with contextlib.suppress(RoostError, TimeoutError):
        await beating.beat(host.bindings)
    await host.stop()


async def _bury(bindings: Bindings, type_: str, owner: Callable[[], Owner]) -> None:
    """Whoever was placed here meanwhile finds another server at once."""
    with contextlib.suppress(RoostError):
        await bindings.bury(type_, owner())
