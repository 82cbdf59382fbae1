"""A gate with scripted entities around it: real sockets, the map in the test's hand."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import msgspec
from aiohttp import web

from roost.api.discovery import Change, Instance
from roost.binding.model import BindingChange, Record
from roost.binding.scripts import Bound, Moving, NoServer, Placed
from roost.core.errors import TicketRefused, TicketUsed
from roost.core.events import Mark
from roost.core.owner import Owner
from roost.core.passes import Passes, sign_login
from roost.core.signing import MasterKey
from roost.servers.gate.gate import Entrance, Gate
from roost.servers.gate.peers import dialer
from roost.servers.gate.session import Who
from roost.servers.gate.silence import LEASE_S
from roost.servers.gate.tcp import TcpClients
from roost.servers.gate.websocket import WebSocketClients
from roost.servers.settings import GateSettings
from roost.web.auth import OneToken
from roost.web.connections import ConnectionLimits
from roost.web.listen import bind, serve, url_of
from roost.web.route import Edge, RouteStats, build_app
from roost.wire.answer import Answer, refusal
from roost.wire.codes import Code
from roost.wire.connection import Call, Connection
from roost.wire.server import WireServer

SECRET = b"a secret of the tests"
KEYS = (MasterKey("k", b"k" * 32),)
PASSES = Passes(KEYS, KEYS)
TYPE = "entity"

_pack = msgspec.msgpack.encode
_unpack = msgspec.msgpack.decode


def token(user: str = "ann", **more: Any) -> str:
    return sign_login(KEYS, user=user, **more)


@dataclass
class Row:
    """A user's durable row and its record in the map, in one."""

    owner: str = ""
    epoch: int = 0
    state: str = "A"
    last: int = 0
    log: list[Any] = field(default_factory=list)
    """Bodies in the order in which they were executed."""
    replies: dict[int, Any] = field(default_factory=dict)


class Map:
    """The homes of all users; what the test changes is told like the feed tells it."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], Row] = defaultdict(Row)
        self.servers: dict[str, list[str]] = defaultdict(list)
        """By type, the ids of those that take users."""
        self.gates: list[Gate] = []
        self.reads = 0
        self.resolves: list[int] = []
        """The `seen` of each."""
        self.on_read: Callable[[], None] | None = None
        self._epoch = 100

    def row(self, user: str = "ann", type_: str = TYPE) -> Row:
        return self.rows[type_, user]

    async def read(self, type_: str, user: str) -> Record | None:
        self.reads += 1
        row = self.rows[type_, user]
        owner = Owner(row.owner, "1") if row.owner else None
        found = Record(owner, row.epoch, 0, row.state, 0, "") if row.epoch else None  # type: ignore[arg-type]
        if self.on_read is not None:
            self.on_read()
        return found

    async def resolve(self, type_: str, user: str, *, seen: int = 0) -> Bound | Placed | Moving | NoServer:
        self.resolves.append(seen)
        row = self.rows[type_, user]
        if row.state == "M":
            return Moving(row.owner, "1", row.epoch, 60_000)
        if row.owner in self.servers[type_] and row.epoch >= seen:
            return Bound(row.owner, "1", row.epoch, 0)
        if not self.servers[type_]:
            return NoServer("none registered")
        owner = row.owner if row.owner in self.servers[type_] else self.servers[type_][0]
        self.place(user, owner, type_=type_, above=seen)
        return Placed(row.owner, "1", row.epoch, 0, "placed")

    def place(self, user: str, server: str, *, type_: str = TYPE, above: int = 0, tell: bool = True) -> None:
        """Give the user to a server, under a new epoch; the row goes along."""
        row = self.rows[type_, user]
        self._epoch = max(self._epoch, above, row.epoch) + 1
        row.owner, row.epoch, row.state = server, self._epoch, "A"
        if tell:
            self.tell(user, type_)

    def tell(self, user: str, type_: str = TYPE) -> None:
        row = self.rows[type_, user]
        owner = Owner(row.owner, "1") if row.owner else None
        change = BindingChange(type_, user, owner, row.epoch, "test", None, Mark(1, 1))
        for gate in self.gates:
            gate.changed(change)


class Entity:
    """A scripted entity server: executes by rule R9 what the map says is its own."""

    def __init__(self, map_: Map, server_id: str, type_: str = TYPE) -> None:
        self.server_id = server_id
        self.type = type_
        self.port = 0
        self.received: list[tuple[str, int, Any]] = []
        """(user, sequence, body) of every message that arrived, executed or not."""
        self.logins: list[tuple[str, str, dict[str, Any]]] = []
        self.logouts: list[tuple[str, str, str]] = []
        self.behave: Callable[[Call, str, Any], Any] | None = None
        """May answer a message before the rules do; None: go on."""
        self.on_login: Callable[[], None] | None = None
        """Called before each login is judged."""
        self.refuse_logins: Answer | None = None
        self.refused_logins = 0
        self.connections: dict[str, tuple[Connection, str]] = {}
        """Where each user is, and in which session."""
        self.server: WireServer | None = None
        self._map = map_

    async def start(self, port: int = 0) -> None:
        self.server = WireServer(secret=SECRET, role="entity")
        self.server.register(1, 1, self._message)
        self.server.register(1, 2, self._login)
        self.server.register(1, 3, self._logout)
        self.port = (await self.server.start(("127.0.0.1", port)))[1]

    async def stop(self) -> None:
        server, self.server = self.server, None
        if server is not None:
            await server.close(grace_s=0)

    def instance(self) -> Instance:
        return Instance(
            type=self.type,
            group="main",
            instance_id=self.server_id,
            server_id=self.server_id,
            life="1",
            status="ready",
            accepting=True,
            last_heartbeat="",
            private_ip="127.0.0.1",
            ports={"wire": self.port},
        )

    def _owns(self, user: str, type_: str) -> bool:
        row = self._map.row(user, type_)
        return row.owner == self.server_id and row.state == "A"

    def _login(self, call: Call) -> Answer:
        type_, user, session, context = _unpack(call.payload)
        if self.on_login is not None:
            self.on_login()
        if not self._owns(user, type_):
            return refusal(Code.MOVED, "not here")
        if self.refuse_logins is not None:
            self.refused_logins += 1
            return self.refuse_logins
        self.logins.append((user, session, context))
        older = self.connections.get(user)
        if older is not None and older[1] != session:
            older[0].push(1, 2, _pack([type_, user, "logged in elsewhere", older[1]]))
        self.connections[user] = (call.peer, session)
        row = self._map.row(user, type_)
        return Answer(_pack([row.last, "return", "write-back:1000"]), epoch=row.epoch)

    def _logout(self, call: Call) -> Answer:
        _, user, session, reason = _unpack(call.payload)
        self.logouts.append((user, session, reason))
        return Answer()

    def _message(self, call: Call) -> Any:
        type_, user, _, body = _unpack(call.payload)
        self.received.append((user, call.sequence or 0, body))
        if self.behave is not None and (answer := self.behave(call, user, body)) is not None:
            return answer
        return self.execute(call, type_, user, body)

    def execute(self, call: Call, type_: str, user: str, body: Any) -> Answer:
        row = self._map.row(user, type_)
        if not self._owns(user, type_):
            return refusal(Code.MIGRATING if row.state == "M" else Code.MOVED, "not here")
        assert call.sequence is not None
        due = max(row.last, (call.oldest or 1) - 1) + 1
        if call.sequence > due:
            return refusal(Code.OUT_OF_ORDER, f"{due} is missing")
        if call.sequence == due:
            row.last = due
            row.log.append(body)
            row.replies[due] = {"done": body, "by": self.server_id}
        elif call.sequence not in row.replies:
            return refusal(Code.REFUSED, "executed, its reply is no longer kept", epoch=row.epoch)
        return Answer(_pack([row.replies[call.sequence], "write-back:1000"]), epoch=row.epoch)

    def push(self, user: str, n: int, body: Any, epoch: int) -> bool:
        return self.connections[user][0].push(1, 1, _pack([self.type, user, n, body]), epoch=epoch)


class Turnstile:
    """An entrance by tickets, which are `ticket:<user>:<number>` here and good once."""

    def __init__(self) -> None:
        self.inside: list[str] = []
        self.left: list[tuple[str, str]] = []
        self.waiting = 0
        """Who has come to it and is not through yet."""
        self.is_open = asyncio.Event()
        self.is_open.set()
        self._used: set[str] = set()

    def owner_of(self, ticket: str) -> str:
        if not ticket.startswith("ticket:"):
            raise TicketRefused
        return ticket.split(":")[1]

    async def enter(self, ticket: str, types: tuple[str, ...]) -> Who:
        user = self.owner_of(ticket)
        self.waiting += 1
        await self.is_open.wait()
        self.waiting -= 1
        assert user not in self.inside, "nobody is inside twice"
        if ticket in self._used:
            raise TicketUsed
        self._used.add(ticket)
        self.inside.append(user)
        return Who(user, user.upper(), types)

    def leave(self, user: str, reason: str) -> None:
        if user in self.inside:
            self.inside.remove(user)
            self.left.append((user, reason))


class GateTown:
    """Gates and entities that share a map."""

    def __init__(self) -> None:
        self.map = Map()
        self.entities: dict[str, Entity] = {}
        self.gates: list[Gate] = []
        self.urls: list[str] = []
        self.tcp_urls: list[str] = []
        self.runners: list[web.AppRunner] = []
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> GateTown:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
        for entity in self.entities.values():
            await entity.stop()

    async def entity(self, server_id: str = "501", type_: str = TYPE) -> Entity:
        entity = self.entities[server_id] = Entity(self.map, server_id, type_)
        await entity.start()
        self.map.servers[type_].append(server_id)
        for gate in self.gates:
            self._show(gate, entity)
        return entity

    async def gate(
        self, entrance: Entrance | None = None, *, lease_s: float = LEASE_S, **settings: Any
    ) -> Gate:
        own = GateSettings(**settings)
        dial = lambda gate: dialer(SECRET, "test", gate.pushed)  # noqa: E731
        gate = Gate(own, PASSES, self.map, dial, entrance=entrance, lease_s=lease_s)
        self.map.gates.append(gate)
        self.gates.append(gate)
        for entity in self.entities.values():
            self._show(gate, entity)
        await self._listen(gate)
        ticking = asyncio.create_task(_tick(gate))
        self._stack.callback(ticking.cancel)
        return gate

    def _show(self, gate: Gate, entity: Entity) -> None:
        instance = entity.instance()
        change = Change("added", 1, "1", instance.instance_id, "1", instance.server_id, "ready", instance)
        gate.services.peers.apply(entity.type, change)

    async def _listen(self, gate: Gate) -> None:
        clients = WebSocketClients(gate, ConnectionLimits())
        edge = Edge(OneToken("t"), is_dev=True)
        listener, tcp = bind("127.0.0.1", 0), bind("127.0.0.1", 0)
        app = build_app({route: RouteStats() for route in clients.routes()}, edge)
        runner = await serve(app, listener)
        lines = TcpClients(gate, total=1000)
        await lines.start(tcp)
        self.runners.append(runner)
        self.urls.append(url_of(listener, "ws"))
        self.tcp_urls.append(url_of(tcp, "tcp"))
        self._stack.push_async_callback(runner.cleanup)
        self._stack.push_async_callback(lines.close)
        self._stack.push_async_callback(gate.close)


async def _tick(gate: Gate) -> None:
    while not gate.is_draining:
        await gate.tick()
        await asyncio.sleep(0.02)


class Raw:
    """A client by hand: JSON over a WebSocket."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        self.ws = ws

    async def say(self, **words: Any) -> None:
        await self.ws.send_str(msgspec.json.encode(words).decode())

    async def hear(self) -> dict[str, Any]:
        """The next message; `{}`: the gate hung up."""
        message = await asyncio.wait_for(self.ws.receive(), 10)
        if message.type is not aiohttp.WSMsgType.TEXT:
            return {}
        return msgspec.json.decode(message.data, type=dict[str, Any])

    async def login(self, user: str = "ann", **more: Any) -> dict[str, Any]:
        await self.say(login=token(user), **more)
        return await self.hear()


@contextlib.asynccontextmanager
async def raw_client(url: str, **options: Any) -> AsyncIterator[Raw]:
    async with aiohttp.ClientSession() as session, session.ws_connect(url, **options) as ws:
        yield Raw(ws)
