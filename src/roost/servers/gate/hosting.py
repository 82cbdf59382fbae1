"""From the settings to a running gate: its ports, its place in discovery, its feed, its door."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from prometheus_client.core import Metric

from roost.api.discovery import HealthCheck
from roost.api.system import Ready
from roost.app import Platform, key_ring, open_platform
from roost.binding.drain.certificate import gate_name
from roost.core.errors import RoostError, Unavailable
from roost.core.loops import Loops
from roost.core.networks import parse_networks
from roost.core.passes import LoginPass, Passes
from roost.core.tracing import Tracer
from roost.sdk.client import Client
from roost.sdk.connect import connect
from roost.sdk.heart import Directive, Registration
from roost.servers.gate import metrics
from roost.servers.gate.finder import follow_partition
from roost.servers.gate.gate import TICK_S, Gate, Proofs
from roost.servers.gate.peers import Dial, dialer, follow_servers
from roost.servers.gate.tcp import TcpClients
from roost.servers.gate.tickets import Tickets
from roost.servers.gate.websocket import WebSocketClients
from roost.servers.gate.witness import LOOK_S, Witness
from roost.settings import Settings
from roost.store.metrics import StoreMetrics
from roost.version import __version__
from roost.waitingroom.keyring import KeyRing
from roost.web.auth import OneToken
from roost.web.connections import ConnectionLimits, most_connections
from roost.web.listen import bind, serve, url_of
from roost.web.metrics import LoopMetrics, MetricsPage
from roost.web.ops import OPS_PORT_ABOVE, Ops, check_loops
from roost.web.route import Edge, RouteStats, build_app
from roost.wire.trust import client_tls, wire_secret

log = logging.getLogger("roost.gate")

OPS_LIMITS = ConnectionLimits(total=64)
SEND_BUFFER_BYTES = 128 * 1024
"""What the kernel may hold for one client who does not read."""
DEV_LOGIN = "dev:"
"""In profile dev without ROOST_QUEUE_KEYS `dev:ann` is a login token of ann."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who it is in discovery."""

    type: str = "gate"
    group: str = "main"
    server_id: str = ""
    ttl_seconds: float = 0.0


class DevProofs:
    """Where no login service has a key of ours, a name will do."""

    def __init__(self, passes: Passes) -> None:
        self.resume = passes.resume
        self.sign_resume = passes.sign_resume
        self._login = passes.login

    def login(self, token: str, now: float) -> LoginPass:
        if token.startswith(DEV_LOGIN):
            return LoginPass(token.removeprefix(DEV_LOGIN), now + 1)
        return self._login(token, now)


def ring_of(settings: Settings) -> KeyRing:
    """Without a world no ticket is looked at, so no key for tickets is asked for."""
    if settings.gate.world or settings.ticket_keys:
        return key_ring(settings)
    return key_ring(dataclasses.replace(settings, ticket_keys=settings.queue_keys))


def proofs_of(ring: KeyRing) -> Proofs:
    return DevProofs(ring.passes) if ring.takes_unsigned else ring.passes


class RunningGate:
    """A gate that is up, or about to be."""

    def __init__(self, settings: Settings, token: str) -> None:
        self.settings = settings
        guard = OneToken(token, settings.read_token)
        self.edge = Edge(guard, settings.is_dev(), not_found_hint="clients connect to /")
        self.ops = Ops(MetricsPage(settings.profile, (self,), "gate"), self.ready)
        self.platform: Platform | None = None
        self.gate: Gate | None = None
        self.me: Registration | None = None
        self.url = ""
        self.tcp_url = ""
        self.ops_url = ""

    async def ready(self) -> Ready:
        if self.gate is None or self.me is None or self.platform is None:
            raise Unavailable("starting")
        if self.gate.is_draining:
            raise Unavailable("stopping")
        if self.me.ended is not None:
            raise Unavailable(f"this instance was {self.me.ended}")
        check_loops(self.platform.store.loops)
        return Ready("ready")

    def collect(self) -> Iterator[Metric]:
        if self.gate is not None:
            yield from metrics.collect(self.gate)
        if self.platform is not None:
            yield from LoopMetrics(self.platform.store.loops).collect()
            yield from StoreMetrics(self.platform.store).collect()

    def clients_app(self, clients: WebSocketClients) -> web.Application:
        health = self.ops.liveness_route()
        return build_app({route: RouteStats() for route in (*clients.routes(), health)}, self.edge)


@contextlib.asynccontextmanager
async def gate_server(
    settings: Settings,
    token: str,
    identity: Identity,
    *,
    on_end: Callable[[], None],
    wait_s: float,
    tracer: Tracer | None = None,
) -> AsyncIterator[RunningGate]:
    """A gate that takes clients inside the block; on the way out they are sent away, with a resume token.

    `on_end` is called when discovery says that this instance must stop.
    `tracer`: in place of the settings' own.
    """
    own, running = settings.gate, RunningGate(settings, token)
    async with contextlib.AsyncExitStack() as stack:
        players, beside = (
            _bound(stack, own.host, own.port),
            _bound(stack, own.host, own.port + OPS_PORT_ABOVE),
        )
        tcp = _bound(stack, own.host, own.tcp_port) if own.tcp_port else None
        running.ops_url = url_of(beside)
        beside_runner = await serve(running.ops.app(running.edge), beside, OPS_LIMITS)
        stack.push_async_callback(beside_runner.cleanup)
        opening = open_platform(settings, attach=True, wait_s=wait_s, service="gate", tracer=tracer)
        platform = running.platform = await stack.enter_async_context(opening)
        client = await stack.enter_async_context(
            connect(platform, ttl_seconds=identity.ttl_seconds, cache_folder=settings.data / "cache")
        )
        gate, me = await _opened(stack, running, platform, client, identity, on_end)
        witness = gate.witness = _witness(gate, platform, me)
        stack.callback(_keep(platform.store.loops, witness).cancel)
        with contextlib.suppress(RoostError):  # it counts before the first client comes, if the store answers
            await witness.step()
        running.url = own.public_url or url_of(players, "ws")
        await _serve_clients(stack, running, gate, players, tcp)
        running.gate, running.me = gate, me
        stack.push_async_callback(witness.leave)
        stack.push_async_callback(gate.drain)
        yield running


async def _opened(
    stack: contextlib.AsyncExitStack,
    running: RunningGate,
    platform: Platform,
    client: Client,
    identity: Identity,
    on_end: Callable[[], None],
) -> tuple[Gate, Registration]:
    """The gate with its place in discovery, its door if it has one, and its loops."""
    settings, own = platform.settings, platform.settings.gate
    secret = wire_secret(settings.wire_secret, settings.data if settings.is_dev() else None)
    ring = ring_of(settings)
    fields = _fields(settings, identity)
    me = await stack.enter_async_context(
        client.registered(on_directive=lambda directive: _heed(directive, on_end), **fields)
    )
    entrance = None
    if own.world:
        url = own.public_url or f"ws://{own.host}:{own.port}"
        door = await stack.enter_async_context(
            client.door(me, world=own.world, capacity=own.capacity, url=url)
        )
        entrance = Tickets(door, own.world, ring.passes)
        stack.push_async_callback(entrance.close)
    tls = client_tls(settings.wire.tls_ca)
    # What may wait is bounded by the gate's own room; a second bound would only send messages round.
    most = max(settings.wire.max_waiting, own.total_messages)
    limits = dataclasses.replace(settings.wire.limits(), max_waiting=most)

    def dial(gate: Gate) -> Dial:
        return dialer(secret, __version__, gate.pushed, limits=limits, tls=tls)

    gate = Gate(
        own,
        proofs_of(ring),
        platform.bindings,
        dial,
        entrance=entrance,
        lease_s=settings.binding.lease_ms / 1000,
        tracer=platform.tracer,
    )
    stack.push_async_callback(gate.close)
    for loop in _loops(gate, platform, client, me):
        task = asyncio.create_task(loop)
        stack.callback(task.cancel)
    return gate, me


def _witness(gate: Gate, platform: Platform, me: Registration) -> Witness:
    def name() -> str:
        return gate_name(me.given.server_id or me.instance_id, me.life)

    return Witness(platform.drains, gate, gate.services.books, name)


def _keep(loops: Loops, witness: Witness) -> asyncio.Task[None]:
    return asyncio.create_task(loops.keep_running("gate witness", witness.step, pause_s=LOOK_S))


def _loops(gate: Gate, platform: Platform, client: Client, me: Registration) -> Iterator[Any]:
    loops, bindings = platform.store.loops, platform.bindings
    for partition in range(len(bindings.partitions)):
        yield follow_partition(bindings, partition, gate, loops)
    for type_ in gate.settings.allowed_types:
        yield follow_servers(client, type_, gate.services.peers, loops)

    async def look_after() -> None:
        await gate.look_after()
        me.load = len(gate.sessions)

    yield loops.keep_running("gate tick", gate.tick, pause_s=TICK_S)
    yield loops.keep_running("gate clients", look_after, pause_s=1.0)


async def _serve_clients(
    stack: contextlib.AsyncExitStack,
    running: RunningGate,
    gate: Gate,
    players: socket.socket,
    tcp: socket.socket | None,
) -> None:
    settings = running.settings
    limits = connection_limits(settings)
    clients = WebSocketClients(gate, limits)
    runner = await serve(running.clients_app(clients), players, limits)
    stack.push_async_callback(runner.cleanup)
    if tcp is not None:
        lines = TcpClients(gate, total=limits.total, per_address=limits.per_address)
        await lines.start(tcp)
        stack.push_async_callback(lines.close)
        running.tcp_url = url_of(tcp, "tcp")
    stack.push_async_callback(_stop_listening, runner)


def connection_limits(settings: Settings) -> ConnectionLimits:
    own = settings.gate
    per_address = 0 if settings.is_dev() else own.connections_per_address
    total = max(16, most_connections() - OPS_LIMITS.total)
    return ConnectionLimits(per_address, total, parse_networks(own.trusted_proxies))


def _bound(stack: contextlib.AsyncExitStack, host: str, port: int) -> socket.socket:
    listener = bind(host, port)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)  # accepted ones inherit it
    stack.callback(listener.close)
    return listener


def _fields(settings: Settings, identity: Identity) -> dict[str, Any]:
    own = settings.gate
    ports = {"ws": own.port, "metrics": own.port + OPS_PORT_ABOVE}
    fields: dict[str, Any] = {
        "type": identity.type,
        "group": identity.group,
        "server_id": identity.server_id,
        "capacity": own.capacity,
        "version": __version__,
        "ports": ports | ({"tcp": own.tcp_port} if own.tcp_port else {}),
        "health": HealthCheck("http", "ws", "/healthz"),
    }
    if own.host not in ("0.0.0.0", "::", "localhost"):
        fields["private_ip"] = own.host
    return fields


async def _stop_listening(runner: web.AppRunner) -> None:
    for site in list(runner.sites):
        await site.stop()


def _heed(directive: Directive, on_end: Callable[[], None]) -> None:
    if directive != "drain":
        on_end()
