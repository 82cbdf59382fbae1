"""The wire between processes: in order on each connection, late, cut; an offer may come twice."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from roost.core.errors import NotSent, OutcomeUnknown
from roost.wire.answer import Answer
from roost.wire.codes import Code
from roost.wire.frame import PUSH, Frame
from roost.wire.server import Call
from tests.faults.sim.loop import Node

Done = Callable[[Answer | Exception], None]


def judged(answer: Answer) -> Answer | Exception:
    """As `wire.calls` tells it."""
    if answer.code in (Code.OVERLOADED, Code.CLOSING):
        return NotSent(f"{answer.code.name}: {answer.message}")
    return OutcomeUnknown(answer.message) if answer.code is Code.DEADLINE else answer


class SimServer:
    """What is used of a `WireServer`."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.handlers: dict[tuple[int, int], Callable[[Call], Any]] = {}
        self.in_flight = 0
        self.tasks: set[asyncio.Future[Any]] = set()

    def register(self, service: int, method: int, handler: Any, *, in_task: bool = False) -> None:
        self.handlers[service, method] = handler


class SimConnection:
    """A server's end of a connection."""

    def __init__(self, peer: SimPeer, server: SimServer) -> None:
        self.peer_role = peer.role
        self.is_open = True
        self._peer = peer
        self._server = server
        self._waiting: dict[int, tuple[int, int]] = {}

    def arrived(self, call: Call) -> None:
        """At the server."""
        self._waiting[call.request] = call.service, call.method
        self._server.in_flight += 1
        handler = self._server.handlers[call.service, call.method]
        answer = handler(call)
        if isinstance(answer, Answer):
            self.reply_later(call.request, answer)
        elif inspect.isawaitable(answer):
            task = asyncio.ensure_future(answer)
            self._server.tasks.add(task)
            task.add_done_callback(lambda done: self._ended(call.request, done))

    def _ended(self, request: int, task: asyncio.Future[Answer]) -> None:
        self._server.tasks.discard(task)
        self.reply_later(request, task.result())

    def reply_later(self, request: int, answer: Answer) -> None:
        if request in self._waiting and self._server.node.alive:
            network, peer = self._peer.network, self._peer
            late_s = network.held_up(*self._waiting.pop(request))
            self._server.in_flight -= 1
            if late_s:
                later = asyncio.get_running_loop().call_later
                later(late_s, peer.answered, self, request, answer, context=peer.node.context)
            else:
                network.carry(self, peer.node, peer.answered, self, request, answer)

    def push(self, service: int, method: int, payload: bytes, *, epoch: int = 0) -> bool:
        if not self.is_open:
            return False
        self._peer.network.carry(self, self._peer.node, self._peer.pushed, service, method, payload, epoch)
        return True


class SimPeer:
    """What is used of a `Peer`."""

    def __init__(
        self,
        network: Network,
        node: Node,
        address: tuple[str, int],
        role: str,
        on_push: Callable[[Frame], None] | None = None,
        on_lost: Callable[[str], None] | None = None,
    ) -> None:
        self.network = network
        self.node = node
        self.role = role
        self.address = address
        self._on_push = on_push
        self._on_lost = on_lost
        self.link: SimConnection | None = None
        self._pending: dict[int, Done] = {}
        self._requests = 0
        network.peers.append(self)

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
    ) -> None:
        server = self.network.servers.get(self.address)
        loop = asyncio.get_running_loop()
        if server is None or not server.node.alive:
            loop.call_later(self.network.latency(), done, NotSent("nobody listens there"))
            return
        if self.link is None:
            self.link = SimConnection(self, server)
        self._requests += 1
        request = self._requests
        self._pending[request] = done
        loop.call_later(budget_ms / 1000, self._late, request)
        call = Call(service, method, epoch, sequence, oldest, budget_ms, payload, self.link, request)  # type: ignore[arg-type]
        late_s = self.network.held_up(service, method)
        if late_s:
            loop.call_later(late_s, self.link.arrived, call, context=server.node.context)
        else:
            self.network.carry(self, server.node, self.link.arrived, call)
        if self.network.is_doubled(service, method):
            self._requests += 1
            self.network.carry(self, server.node, self.link.arrived, replace(call, request=self._requests))

    async def call(self, service: int, method: int, payload: bytes, **more: Any) -> Answer:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def done(answer: Answer | Exception) -> None:
            if future.done():
                return
            if isinstance(answer, Answer):
                future.set_result(answer)
            else:
                future.set_exception(answer)

        self.send(service, method, payload, done=done, **more)
        return await future

    def answered(self, link: SimConnection, request: int, answer: Answer) -> None:
        if link is self.link and (done := self._pending.pop(request, None)) is not None:
            done(judged(answer))

    def pushed(self, service: int, method: int, payload: bytes, epoch: int) -> None:
        if self._on_push is not None:
            self._on_push(Frame(PUSH, service, method, 0, 0, 0, epoch, payload))

    def _late(self, request: int) -> None:
        if (done := self._pending.pop(request, None)) is not None:
            done(OutcomeUnknown("no answer in time"))

    def cut(self, why: str) -> None:
        """The connection ends; what is on it is lost."""
        if self.link is None:
            return
        self.link.is_open = False
        self.link, pending = None, self._pending
        self._pending = {}
        for done in pending.values():
            done(OutcomeUnknown(f"the connection was lost: {why}"))
        if self._on_lost is not None:
            self._on_lost(why)

    def goes_to(self, node: Node) -> bool:
        server = self.network.servers.get(self.address)
        return server is not None and server.node is node

    async def close(self) -> None:
        self.link = None


class Network:
    def __init__(
        self,
        latency: Callable[[], float],
        is_doubled: Callable[[int, int], bool],
        held_up: Callable[[int, int], float],
    ) -> None:
        self.servers: dict[tuple[str, int], SimServer] = {}
        self.peers: list[SimPeer] = []
        self.latency = latency
        self.is_doubled = is_doubled
        self.held_up = held_up
        """For how long a call is on its way besides."""
        self._last: dict[tuple[object, Node], float] = {}

    def carry(self, sender: object, to: Node, what: Callable[..., None], *args: Any) -> None:
        """Later, after what the same sender said before."""
        loop = asyncio.get_running_loop()
        at = max(self._last.get((sender, to), 0.0), loop.time() + self.latency())
        self._last[sender, to] = at
        loop.call_at(at, what, *args, context=to.context)

    def lose(self, node: Node) -> None:
        """A process died: those who were connected with it notice."""
        for peer in self.peers:
            if peer.node.alive and peer.goes_to(node):
                peer.node.context.run(asyncio.get_running_loop().call_soon, peer.cut, "it died")
