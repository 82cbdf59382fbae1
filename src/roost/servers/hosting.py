"""From the settings to a running game server: its two ports, its place in discovery, its door."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientSession, web
from prometheus_client.core import Metric

from roost.api.discovery import HealthCheck
from roost.api.system import Ready
from roost.app import Platform, open_platform
from roost.core.errors import StoreUnavailable, Unavailable
from roost.core.loops import Loops
from roost.core.networks import parse_networks
from roost.sdk.client import Client
from roost.sdk.connect import connect
from roost.sdk.door import Door
from roost.sdk.heart import Directive, Registration
from roost.servers.agones import STEP_S, Agones, address_of
from roost.servers.gameserver import CLOSE_S, PATH, GameServer
from roost.settings import Settings
from roost.store.metrics import StoreMetrics
from roost.version import __version__
from roost.web.auth import OneToken
from roost.web.connections import ConnectionLimits, most_connections
from roost.web.listen import bind, serve, url_of
from roost.web.metrics import LoopMetrics, MetricsPage
from roost.web.ops import OPS_PORT_ABOVE, Ops, check_loops
from roost.web.route import Edge, RouteStats, build_app

log = logging.getLogger("roost.gameserver")

OPS_LIMITS = ConnectionLimits(total=64)
SILENT_S = 16.0
"""Without a report that was taken for so long this server is not ready."""
RETRY_S = 1.0
OVERRIDE_S = 0.5
SEND_BUFFER_BYTES = 128 * 1024
"""What the kernel may hold for one player who does not read; by itself it would take megabytes."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who it is in discovery."""

    type: str = "game"
    group: str = "main"
    server_id: str = ""
    ttl_seconds: float = 0.0


class Running:
    """A game server that is up, or about to be."""

    def __init__(self, settings: Settings, token: str) -> None:
        self.settings = settings
        guard = OneToken(token, settings.read_token)
        self.edge = Edge(guard, settings.is_dev(), not_found_hint=f"players connect to {PATH}")
        self.ops = Ops(MetricsPage(settings.profile, (self,), "gameserver"), self.ready)
        self.loops = Loops()
        """The client's, once there is one."""
        self.game: GameServer | None = None
        self.me: Registration | None = None
        self.platform: Platform | None = None
        """Set if it talks straight to the store."""
        self.session: ClientSession | None = None
        """To the sidecar, under Agones."""
        self.public_url = ""
        self.ops_url = ""

    async def ready(self) -> Ready:
        """Raises why nobody can be let in."""
        if self.game is None or self.me is None:
            raise Unavailable("starting: not registered yet")
        if self.me.ended is not None:
            raise Unavailable(f"this instance was {self.me.ended}")
        reported = self.game.door.reported_at
        if reported is None or time.monotonic() - reported > SILENT_S:
            raise Unavailable("the waiting room takes no report of this server")
        check_loops(self.loops)
        return Ready("ready")

    def collect(self) -> Iterator[Metric]:
        yield from LoopMetrics(self.loops).collect()
        if self.game is not None:
            yield from self.game.collect()
        if self.platform is not None:
            yield from StoreMetrics(self.platform.store).collect()

    def players_app(self, game: GameServer) -> web.Application:
        health = self.ops.liveness_route()
        return build_app({route: RouteStats() for route in (*game.routes(), health)}, self.edge)


@contextlib.asynccontextmanager
async def game_server(
    settings: Settings,
    where: str,
    token: str,
    identity: Identity,
    *,
    on_end: Callable[[], None],
    wait_s: float,
) -> AsyncIterator[Running]:
    """A server that takes players inside the block; on the way out they are sent away, their places held.

    `where` is a gateway or a store. `on_end` is called when discovery says that this instance must stop.
    """
    own = settings.gameserver
    async with contextlib.AsyncExitStack() as stack:
        players, beside = bind(own.host, own.port), bind(own.host, own.port + OPS_PORT_ABOVE)
        players.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)  # accepted ones inherit it
        stack.callback(players.close)
        stack.callback(beside.close)
        running = Running(settings, token)
        running.ops_url = url_of(beside)
        beside_runner = await serve(running.ops.app(running.edge), beside, OPS_LIMITS)
        stack.push_async_callback(beside_runner.cleanup)

        client = await _connected(stack, running, where, token, identity, wait_s)
        running.loops = client.loops
        fields = _fields(settings, identity)
        me = await _registered(stack, client, fields, lambda directive: _heed(directive, on_end), wait_s)
        running.public_url = await _players_url(stack, running, me, wait_s)
        door = await stack.enter_async_context(
            client.door(me, world=own.world, capacity=own.capacity, url=running.public_url)
        )
        limits = connection_limits(settings)
        game = GameServer(own, door, limits)
        runner = await serve(running.players_app(game), players, limits)
        stack.push_async_callback(runner.cleanup)
        stack.push_async_callback(game.room.close, CLOSE_S)
        stack.push_async_callback(_stop_listening, runner)
        keep = running.loops.keep_running
        for loop in (
            *([keep("agones", _agones(running, game).step, pause_s=STEP_S)] if own.agones_url else []),
            keep("room", lambda: _tick(game, me), pause_s=min(1.0, own.idle_seconds / 8)),
            keep("override", lambda: _follow_override(door, me), pause_s=OVERRIDE_S),
        ):
            stack.callback(asyncio.create_task(loop).cancel)
        running.game, running.me = game, me
        yield running


def connection_limits(settings: Settings) -> ConnectionLimits:
    """What the players' listener is held to; the ops pages beside it keep theirs."""
    own = settings.gameserver
    per_address = 0 if settings.is_dev() else own.connections_per_address
    total = max(16, most_connections() - OPS_LIMITS.total)
    return ConnectionLimits(per_address, total, parse_networks(own.trusted_proxies))


async def _connected(
    stack: contextlib.AsyncExitStack,
    running: Running,
    where: str,
    token: str,
    identity: Identity,
    wait_s: float,
) -> Client:
    settings, target = running.settings, where
    options: dict[str, Any] = {
        "ttl_seconds": identity.ttl_seconds,
        "cache_folder": settings.data / "cache",
        "token": token,
    }
    if where.startswith(("http://", "https://")):
        return await stack.enter_async_context(connect(target, **options))
    opening = open_platform(
        dataclasses.replace(settings, store=where), attach=True, wait_s=wait_s, service="gameserver"
    )
    running.platform = await stack.enter_async_context(opening)
    return await stack.enter_async_context(connect(running.platform, **options))


async def _registered(
    stack: contextlib.AsyncExitStack,
    client: Client,
    fields: dict[str, Any],
    on_directive: Callable[[Directive], None],
    wait_s: float,
) -> Registration:
    """Register; a gateway that is not there yet is waited for."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            return await stack.enter_async_context(client.registered(on_directive=on_directive, **fields))
        except StoreUnavailable as away:
            if time.monotonic() > deadline:
                raise
            log.warning("waiting for the gateway", extra={"reason": away.message})
            await asyncio.sleep(RETRY_S)


def _fields(settings: Settings, identity: Identity) -> dict[str, Any]:
    own = settings.gameserver
    fields: dict[str, Any] = {
        "type": identity.type,
        "group": identity.group,
        "server_id": identity.server_id,
        "capacity": own.capacity,
        "version": __version__,
        "ports": {"ws": own.port, "metrics": own.port + OPS_PORT_ABOVE},
        "health": HealthCheck("http", "ws", "/healthz"),
        "labels": {"world": own.world},
    }
    if own.host not in ("0.0.0.0", "::", "localhost"):
        fields["private_ip"] = own.host
    return fields


def _public_url(me: Registration, host: str, port: int) -> str:
    if host in ("0.0.0.0", "::"):
        host = me.given.private_ip or me.given.hostname
    return f"ws://[{host}]:{port}{PATH}" if ":" in host else f"ws://{host}:{port}{PATH}"


async def _players_url(
    stack: contextlib.AsyncExitStack, running: Running, me: Registration, wait_s: float
) -> str:
    own = running.settings.gameserver
    if own.agones_url:
        running.session = await stack.enter_async_context(ClientSession())
    if own.public_url or running.session is None:
        return own.public_url or _public_url(me, own.host, own.port)
    deadline = time.monotonic() + wait_s
    while True:
        try:
            host, port = await address_of(own.agones_url, running.session)
            return f"ws://[{host}]:{port}{PATH}" if ":" in host else f"ws://{host}:{port}{PATH}"
        except StoreUnavailable as away:
            if time.monotonic() > deadline:
                raise
            log.warning("waiting for Agones", extra={"reason": away.message})
            await asyncio.sleep(RETRY_S)


def _agones(running: Running, game: GameServer) -> Agones:
    assert running.session is not None
    return Agones(running.settings.gameserver.agones_url, running.session, lambda: len(game.door.guests))


async def _stop_listening(runner: web.AppRunner) -> None:
    for site in list(runner.sites):
        await site.stop()


def _heed(directive: Directive, on_end: Callable[[], None]) -> None:
    if directive == "drain":
        log.info("draining: nobody new is let in")
    else:
        on_end()


async def _tick(game: GameServer, me: Registration) -> None:
    game.room.look()
    me.load = len(game.door.guests)


async def _follow_override(door: Door, me: Registration) -> None:
    """An operator's override to drain, and its lifting, reach the waiting room at once."""
    if door.drain != me.draining:
        door.drain = me.draining
        await door.report()  # if it fails, the next report says it too
