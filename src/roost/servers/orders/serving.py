"""From the settings to a running order server: its port, its place in discovery, its shards."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from prometheus_client.core import Metric

from roost.api.system import Ready
from roost.app import Platform, open_platform
from roost.core.errors import Unavailable
from roost.core.tracing import Tracer
from roost.db.database import Database, open_database
from roost.lanes.clock import IdClock, check_start
from roost.lanes.commands import Durability
from roost.lanes.dispatch import Dispatch
from roost.lanes.durability import check_durability
from roost.lanes.executor import LaneExecutor
from roost.lanes.index import OrderIndex
from roost.lanes.outbox import Outbox
from roost.lanes.owner import STEP_S, Ownership
from roost.lanes.placement import Table
from roost.lanes.placing import Placements
from roost.lanes.scripts import ShardScripts
from roost.lanes.work import unfinished
from roost.servers.orders.checking import Checking
from roost.servers.orders.forwarding import Forwarding
from roost.servers.orders.history import History
from roost.servers.orders.host import Host
from roost.servers.orders.keeping import Erase, Keeping
from roost.servers.orders.members import Members
from roost.servers.orders.metrics import OrderMetrics
from roost.servers.orders.order_rows import OrderRows
from roost.servers.orders.outlet import Outlet
from roost.servers.orders.reading import Reading
from roost.servers.orders.registering import (
    ANY_ADDRESS,
    FIXED_SHARDS,
    TYPE,
    OrdersIdentity,
    Registering,
    registering,
)
from roost.servers.orders.relocation import Forgetting, Relocation
from roost.servers.orders.sessions import Sessions
from roost.servers.orders.settings import parse_shards
from roost.settings import Settings
from roost.store.metrics import StoreMetrics
from roost.store.scopes import shard as shard_scope
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

log = logging.getLogger("roost.orders")

OPS_LIMITS = ConnectionLimits(total=64)
CLOSE_S = 1.0
RATES_S = 1.0
SILENT_S = 600.0
"""An account that sends nothing for longer is forgotten here; what its shards remember stays."""
SNAPSHOT_S = 0.5
RELOCATION_S = 0.2
FORGET_S = 10.0


class Running:
    """An order server that is up, or about to be."""

    def __init__(self, settings: Settings) -> None:
        guard = OneToken(settings.api_token, settings.read_token)
        self.edge = Edge(guard, settings.is_dev(), not_found_hint="traders speak wire")
        self.ops = Ops(MetricsPage(settings.profile, (self,), "orders"), self.ready)
        self.platform: Platform | None = None
        self.host: Host | None = None
        self.ownership: Ownership | None = None
        self.keeping: Keeping | None = None
        self.registering: Registering | None = None
        self.is_leaving = False
        self.shown: OrderMetrics | None = None
        self.url = ""
        self.ops_url = ""

    async def ready(self) -> Ready:
        """Raises why nobody should be sent here; shards that are owned already are served all the same."""
        if self.registering is None or self.platform is None or self.ownership is None:
            raise Unavailable("starting: not registered yet")
        me = self.registering.me
        if me is None:
            raise Unavailable(f"starting: {self.registering.why_not}")
        if me.ended is not None:
            raise Unavailable(f"this instance was {me.ended}")
        if failing := self.ownership.failing:
            numbers, reason = ", ".join(map(str, sorted(failing))), next(iter(failing.values())).reason
            raise Unavailable(f"shards {numbers} cannot be taken over: {reason}")
        check_loops(self.platform.store.loops)
        return Ready("ready")

    def collect(self) -> Iterator[Metric]:
        if self.platform is not None:
            yield from LoopMetrics(self.platform.store.loops).collect()
            yield from StoreMetrics(self.platform.store).collect()
        if self.shown is not None:
            yield from self.shown.collect()


async def _wanted(running: Running, members: Members, shards: str) -> Collection[int]:
    """The shards that this server should own now; those of its id, also before discovery has it."""
    ownership = running.ownership
    if ownership is None or running.registering is None or running.is_leaving:
        return ()
    me = running.registering.me
    if me is not None and (me.ended is not None or me.status == "draining"):
        return ()
    if shards != "auto":
        return parse_shards(shards)
    owners = {number: held.server for number, held in ownership.owners.items()}
    return await members.share(ownership.free_s(), owners)


async def _servers(platform: Platform, group: str) -> Mapping[str, Collection[int]]:
    found = await platform.discovery.discover(TYPE, group)
    return {
        one.server_id or one.instance_id: parse_shards(one.labels.get(FIXED_SHARDS, ""))
        for one in found.instances
        if one.willing
    }


@asynccontextmanager
async def order_server(
    settings: Settings,
    identity: OrdersIdentity,
    *,
    on_end: Callable[[], None],
    wait_s: float,
    erase: Erase | None = None,
    tracer: Tracer | None = None,
) -> AsyncIterator[Running]:
    """A server that owns shards inside the block; on the way out they are handed over.

    `erase` is called for a shard between its last command and the end of its lease: for orders that nobody
    is to find there. `tracer`: in place of the settings' own.
    """
    own = settings.orders
    async with contextlib.AsyncExitStack() as stack:
        traders, beside = bind(own.host, own.port), bind(own.host, own.port + OPS_PORT_ABOVE)
        stack.callback(traders.close)
        stack.callback(beside.close)
        secret = wire_secret(settings.wire_secret, settings.data if settings.is_dev() else None)
        running = Running(settings)
        running.url, running.ops_url = url_of(traders, "wire"), url_of(beside)
        beside_runner = await serve(running.ops.app(running.edge), beside, OPS_LIMITS)
        stack.push_async_callback(beside_runner.cleanup)

        platform = await stack.enter_async_context(
            open_platform(settings, attach=True, wait_s=wait_s, service="orders", tracer=tracer)
        )
        durability = Durability[settings.lanes.durability.upper()]
        await check_durability(platform.store, durability)
        ids = await _id_clock(platform.store, own.clock == "checked")
        # A link of its own for the logs: it may wait for the disk, and nobody waits behind it.
        logs = await stack.enter_async_context(platform.link_beside("roost-orders-log"))
        database = await stack.enter_async_context(
            open_database(settings.database_url, options=settings.db.options())
        )
        running.platform = platform
        running.registering = await stack.enter_async_context(registering(platform, identity, on_end))
        parts = await _assemble(running, platform, logs, database, ids, durability, identity, secret)
        parts.keeping.erase = erase
        server = WireServer(secret=secret, role=TYPE, version=identity.version, limits=settings.wire.limits())
        parts.host.serve(server, platform.tracer)
        parts.reading.serve(server)
        History(logs, parts.ownership).serve(server)
        stack.push_async_callback(parts.peers.close)
        _run_loops(stack, running, parts)
        stack.push_async_callback(server.close, CLOSE_S)
        stack.push_async_callback(_leave, parts, running, own.stop_ms / 1000)
        await server.start(traders, server_tls(settings.wire.tls_cert, settings.wire.tls_key))
        yield running


@dataclass(frozen=True, slots=True)
class Parts:
    """What an order server is made of."""

    host: Host
    reading: Reading
    ownership: Ownership
    keeping: Keeping
    index: OrderIndex
    outbox: Outbox
    peers: Pool
    loops: list[Callable[[], Coroutine[Any, Any, None]]]


async def _assemble(
    running: Running,
    platform: Platform,
    logs: Store,
    database: Database,
    ids: IdClock,
    durability: Durability,
    identity: OrdersIdentity,
    secret: bytes,
) -> Parts:
    settings = platform.settings
    lanes, own, store = settings.lanes, settings.orders, platform.store
    index = OrderIndex(store, ttl_s=lanes.index_seconds)
    outbox = Outbox(database, loops=store.loops)
    sessions = Sessions()
    peers = _peers(settings, secret, identity.version)
    owners: Callable[[int], str] = lambda number: ownership.address_of(number)  # noqa: E731
    dispatch = Dispatch(Table(selector=lanes.selector), index, database, _launched_ms(lanes.launched))
    host = Host(
        partial(_executor, settings),
        dispatch,
        sessions,
        Forwarding(peers, owners),
        lambda: ids.now_ms(time.monotonic()),
        lanes.failures_to_halt,
        own.traded(),
    )
    host.takes_new = outbox.has_room
    outlet = Outlet(sessions, index, outbox, database)
    keeping = Keeping(
        logs,
        host,
        outlet,
        ids,
        durability,
        server=identity.server_id,
        snapshot_commands=lanes.snapshot_commands,
    )
    members = Members(identity.server_id, partial(_servers, platform, identity.group))
    address = _address_of(running.url)
    ownership = Ownership(
        lambda number: ShardScripts(store.library, store.keys, shard_scope(number)),
        keeping,
        partial(_wanted, running, members, own.shards),
        ids,
        server=identity.server_id,
        address=address,
        ttl_ms=lanes.lease_ms,
    )
    running.host, running.ownership, running.keeping = host, ownership, keeping
    running.shown = OrderMetrics(host, ownership, keeping, index, outbox, ids)
    reading = Reading(host, ownership, address, OrderRows(outbox, database))
    placements = Placements(store, lanes.selector)
    placements.on_change.append(dispatch.use)
    await placements.read()
    relocation = Relocation(host, ownership, placements, peers, settings.wire.max_frame_bytes * 3 // 4)
    forgetting = Forgetting(host, database, lambda: ids.now_ms(time.monotonic()))
    loops = [placements.run, *_moves(store, relocation, forgetting)]
    return Parts(host, reading, ownership, keeping, index, outbox, peers, loops)


async def _id_clock(store: Store, is_checked: bool) -> IdClock:
    seconds, micros = await store.call("TIME", idempotent=True)
    store_ms, at = int(seconds) * 1000 + int(micros) // 1000, time.monotonic()
    if is_checked:
        check_start(store_ms, host_ms())
    return IdClock(store_ms, at)


def host_ms() -> int:
    """Milliseconds since 1970 by this host's wall clock."""
    return int(time.time() * 1000)


def _moves(
    store: Store, relocation: Relocation, forgetting: Forgetting
) -> list[Callable[[], Coroutine[Any, Any, None]]]:
    keep_running = store.loops.keep_running
    return [
        partial(keep_running, "orders-moves", relocation.step, pause_s=RELOCATION_S),
        partial(keep_running, "orders-departed", forgetting.step, pause_s=FORGET_S),
    ]


def _executor(settings: Settings, handle: Any, after_turn: Callable[[], None]) -> LaneExecutor:
    lanes = settings.lanes
    return LaneExecutor(
        handle,
        workers_per_shard=lanes.workers,
        queue_limit=lanes.queue_limit,
        max_wait_ms=lanes.max_wait_ms,
        after_turn=after_turn,
        unfinished=unfinished,
    )


def _address_of(url: str) -> str:
    """host:port as traders make it of our entry in discovery: IPv6 without brackets, our name for any."""
    host, _, port = url.removeprefix("wire://").replace("[", "").replace("]", "").rpartition(":")
    return f"{socket.gethostname() if host in ANY_ADDRESS else host}:{port}"


def _launched_ms(day: str) -> int:
    return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1000)


def _peers(settings: Settings, secret: bytes, version: str) -> Pool:
    """How other order servers are reached, to which commands are sent on."""
    tls, limits = client_tls(settings.wire.tls_ca), settings.wire.limits()

    def dial(host: str, port: int) -> Peer:
        return Peer(
            host,
            port,
            secret=secret,
            role=TYPE,
            version=version,
            ssl=tls,
            expects=frozenset({TYPE}),
            limits=limits,
        )

    return Pool(dial)


def _run_loops(stack: contextlib.AsyncExitStack, running: Running, parts: Parts) -> None:
    assert running.platform is not None
    loops = running.platform.store.loops
    checking = Checking(parts.keeping.kept, running.platform.settings.lanes.snapshot_commands)

    async def rates() -> None:
        parts.host.routes.measure(RATES_S)

    async def age() -> None:
        parts.host.sessions.age()

    tasks = [
        asyncio.create_task(loop)
        for loop in (
            loops.keep_running("orders-shards", parts.ownership.step, pause_s=STEP_S, essential=True),
            loops.keep_running("orders-snapshots", parts.keeping.step, pause_s=SNAPSHOT_S),
            loops.keep_running("orders-checks", checking.step, pause_s=SNAPSHOT_S),
            loops.keep_running("orders-rates", rates, pause_s=RATES_S),
            loops.keep_running("orders-sessions", age, pause_s=SILENT_S),
            parts.index.run(),
            parts.outbox.run(),
            *(loop() for loop in parts.loops),
        )
    ]

    async def end() -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await parts.host.executor.close(CLOSE_S)

    stack.push_async_callback(end)


async def _leave(parts: Parts, running: Running, stop_s: float) -> None:
    """Hand every shard over, then write what is left to index and database."""
    running.is_leaving = True
    me = running.registering.me if running.registering is not None else None
    if me is not None and me.ended is None:
        me.status = "draining"
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(stop_s):
            await parts.ownership.leave()
            await asyncio.gather(parts.index.flush(), parts.outbox.flush(), return_exceptions=True)
