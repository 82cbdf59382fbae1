"""The entity servers that a gate can reach: where each is, by discovery, and the connection to it."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Protocol

from roost.api.discovery import Change, Instance, Watcher
from roost.core.loops import Loops
from roost.servers.gate.routes import Route
from roost.wire.client import Done, Peer
from roost.wire.frame import Frame
from roost.wire.limits import DEFAULTS, Limits

log = logging.getLogger("roost.gate")

WIRE_PORT = "wire"
"""Under which name an entity server registers the port on which it speaks the wire protocol."""
LINGER_S = 10.0
"""How long the connection to a server that left discovery stays: it may still have something to say."""


class Line(Protocol):
    """What is used of a `Peer`."""

    def send(
        self,
        service: int,
        method: int,
        payload: bytes,
        *,
        done: Done,
        epoch: int = 0,
        sequence: int | None = None,
        oldest: int | None = None,
        budget_ms: int,
        traceparent: bytes | None = None,
    ) -> None: ...

    async def close(self) -> None: ...


class Member(Protocol):
    """Who is logged in at a server."""

    def lost(self) -> None:
        """The connection to the server has ended."""


class Server:
    """One life of an entity server, with those who are logged in there."""

    def __init__(self, type_: str, server_id: str, life: str, address: tuple[str, int]) -> None:
        self.type = type_
        self.server_id = server_id
        self.life = life
        self.address = address
        self.line: Line | None = None
        self.members: set[Member] = set()

    def lost(self, why: str) -> None:
        """Pushes do not come any more: everybody has to log in again, here or elsewhere."""
        log.info("entity connection lost", extra={"serverId": self.server_id, "reason": why})
        for member in list(self.members):
            member.lost()


Dial = Callable[[Server], Line]


class Peers:
    """Every entity server that discovery knows, by type and server id."""

    def __init__(self, dial: Dial, appeared: Callable[[], None] = lambda: None) -> None:
        """`appeared` is called when there are servers that were not there before."""
        self._dial = dial
        self._appeared = appeared
        self._servers: dict[tuple[str, str], Server] = {}
        self._instances: dict[str, tuple[str, str]] = {}
        """Which server each instance is; discovery tells of a removal by the instance."""
        self._closing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._servers)

    def find(self, type_: str, route: Route) -> Server | None:
        """The server of a route, if it is this very life of it, with a way to it."""
        server = self._servers.get((type_, route.server_id))
        if server is None or server.life != route.life:
            return None
        if server.line is None:
            server.line = self._dial(server)
        return server

    def knows(self, type_: str, route: Route) -> bool:
        server = self._servers.get((type_, route.server_id))
        return server is not None and server.life == route.life

    def apply(self, type_: str, change: Change) -> None:
        """Bring it up to date with what discovery tells of a type."""
        if change.event == "snapshot":
            listed = {instance.instance_id for instance in change.instances or ()}
            for gone in [
                id_ for id_, key in self._instances.items() if key[0] == type_ and id_ not in listed
            ]:
                self._remove(gone)
            for instance in change.instances or ():
                self._take(type_, instance)
        elif change.event == "removed":
            self._remove(change.instance_id)
        elif change.instance is not None:
            self._take(type_, change.instance)

    def _take(self, type_: str, instance: Instance) -> None:
        server_id = instance.server_id or instance.instance_id
        host, port = (
            instance.private_ip or instance.hostname or instance.public_ip,
            instance.ports.get(WIRE_PORT),
        )
        if not host or not port:
            return
        key, address = (type_, server_id), (host, port)
        known = self._servers.get(key)
        self._instances[instance.instance_id] = key
        if known is not None and (known.life, known.address) == (instance.life, address):
            return
        self._servers[key] = Server(type_, server_id, instance.life, address)
        if known is not None:
            self._part(known)
        self._appeared()

    def _remove(self, instance_id: str) -> None:
        key = self._instances.pop(instance_id, None)
        if key is not None and key not in self._instances.values():
            self._part(self._servers.pop(key))

    def _part(self, server: Server) -> None:
        if server.line is not None:
            task = asyncio.create_task(_hang_up(server.line), name="roost gate hangs up")
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        for task in self._closing:
            task.cancel()
        lines = [server.line for server in self._servers.values() if server.line is not None]
        await asyncio.gather(*(line.close() for line in lines), *self._closing, return_exceptions=True)


async def _hang_up(line: Line) -> None:
    try:
        await asyncio.sleep(LINGER_S)
    finally:
        await line.close()


async def follow_servers(client: Watcher, type_: str, peers: Peers, loops: Loops) -> None:
    """Keep the peers of a type up to date, for ever."""
    loop = loops.loop(f"gate servers {type_}", essential=True)

    async def follow() -> None:
        async for change in client.watch(type_, "*"):
            peers.apply(type_, change)
            loop.good()

    await loop.keep_running(follow, pause_s=0.5)


def dialer(
    secret: bytes,
    version: str,
    on_push: Callable[[Frame], None],
    *,
    limits: Limits = DEFAULTS,
    tls: ssl.SSLContext | None = None,
) -> Dial:
    """How a gate connects to an entity server."""

    def dial(server: Server) -> Line:
        host, port = server.address
        return Peer(
            host,
            port,
            secret=secret,
            role="gate",
            version=version,
            ssl=tls,
            limits=limits,
            expects=frozenset({"entity"}),
            on_push=on_push,
            on_lost=server.lost,
        )

    return dial
