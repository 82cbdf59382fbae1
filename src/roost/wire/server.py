"""The server: handlers by (service, method), a bound on the work at once, a clean end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl as tls
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from math import inf
from typing import Any, cast

from roost.core.errors import InvalidInput, PortTaken
from roost.wire.answer import Answer, refusal
from roost.wire.codes import Code
from roost.wire.connection import Call, Connection, Handler, Running, Taker
from roost.wire.handshake import OWN_SERVICE, Identity, ServerHandshake
from roost.wire.limits import DEFAULTS, Limits
from roost.wire.machine import Machine
from roost.wire.sweeping import Sweeper

__all__ = ["Answer", "Call", "Connection", "Handler", "Taker", "WireServer", "refusal"]

log = logging.getLogger("roost.wire.server")


class WireServer:
    """Serves what is registered. `secret` None asks for no handshake: for players, who log in by other means.

    `accepts`: roles that may connect; empty: any that knows the secret. Of a handler that raises the caller
    hears FAILED, and its connection lives on. A handler goes on when its connection is lost; it is cancelled
    when the caller's budget is over.
    """

    def __init__(
        self,
        *,
        secret: bytes | None,
        role: str = "",
        version: str = "",
        accepts: frozenset[str] = frozenset(),
        limits: Limits = DEFAULTS,
        on_open: Callable[[Connection], None] | None = None,
    ) -> None:
        self._secret = secret
        self._role = role
        self._version = version
        self._accepts = accepts
        self._limits = limits
        self._on_open = on_open
        self._server: asyncio.Server | None = None
        self._sockets: set[Connection] = set()
        self._most = limits.max_in_flight_total
        self.running: set[Running] = set()
        self._sweeper: Sweeper | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self.in_flight = 0
        """Calls whose handler is at work."""
        self.handlers: dict[tuple[int, int], Handler] = {}
        self.takers: dict[tuple[int, int], Taker] = {}
        self.unknown: dict[int, Answer] = {}
        """By service the answer to methods that it does not have, where it is not UNKNOWN_METHOD."""
        self.connections: set[Connection] = set()
        """Those whose handshake is over."""
        self.is_draining = False
        self.takes_calls = True
        """Neither draining nor at the bound of all its connections together."""
        self.counts: Counter[str] = Counter()
        """What was refused, failed, late or cut, by its word."""

    def register(self, service: int, method: int, handler: Handler, *, in_task: bool = False) -> None:
        """`in_task`: run it in a task from the start (see `stepping`)."""
        self._check_free(service, method)
        self.handlers[service, method] = _in_task(handler) if in_task else handler

    def register_taker(self, service: int, methods: Iterable[int], taker: Taker) -> None:
        """`taker` gets all calls of these methods that one read brings: for those that come in masses.

        They count as at work until each is answered; the budget of a call ends it, as a promised one.
        """
        for method in methods:
            self._check_free(service, method)
            self.takers[service, method] = taker

    def _check_free(self, service: int, method: int) -> None:
        if service == OWN_SERVICE or not (0 < service < 65536 and 0 <= method < 65536):
            raise InvalidInput(f"no service may be {service} with method {method}: 1 to 65535 and 0 to 65535")
        if (service, method) in self.handlers or (service, method) in self.takers:
            raise InvalidInput(f"service {service} has a handler for method {method} already")

    async def start(
        self, at: socket.socket | tuple[str, int], ssl: tls.SSLContext | None = None
    ) -> tuple[str, int]:
        """Listen; returns the address, which matters where port 0 was asked for."""
        loop = asyncio.get_running_loop()
        self._sweeper = Sweeper(loop, self._sweep)
        try:
            if isinstance(at, socket.socket):
                self._server = await loop.create_server(lambda: self._accept(loop), sock=at, ssl=ssl)
            else:
                host, port = at
                self._server = await loop.create_server(lambda: self._accept(loop), host, port, ssl=ssl)
        except OSError as error:
            raise PortTaken(f"cannot listen on {at}: {error.strerror or error}") from error
        name = self._server.sockets[0].getsockname()
        return (name[0], name[1]) if isinstance(name, tuple) else (str(name), 0)

    async def drain(self) -> None:
        """Take no new calls (they get CLOSING) and wait for those at work. Connections stay."""
        self.is_draining = True
        self._decide()
        await self._idle.wait()

    async def close(self, grace_s: float = 5.0) -> None:
        """Drain for at most `grace_s`, then end every connection; what still runs is cancelled."""
        if self._server is not None:
            self._server.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await self.drain()
        tasks = [running.task for running in self.running]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=1.0)
        for connection in list(self._sockets):
            connection.close(Code.CLOSING, "the server ends")
        if self._sweeper is not None:
            self._sweeper.stop()
        await self._all_gone()

    async def _all_gone(self) -> None:
        gone = [connection.gone for connection in self._sockets]
        if gone and (await asyncio.wait(gone, timeout=1.0))[1]:
            for connection in list(self._sockets):
                connection.cut("the server ends")

    # -- for connections

    def began(self, deadline: float, calls: int = 1) -> None:
        """So many at once, of which the first is due at `deadline`."""
        self.in_flight = at_work = self.in_flight + calls
        if at_work == calls:
            self._idle.clear()
        if at_work >= self._most:
            self._decide()
        if deadline < inf and self._sweeper is not None and deadline < self._sweeper.earliest:
            self._sweeper.watch(deadline)

    def ended(self, calls: int = 1) -> None:
        self.in_flight = at_work = self.in_flight - calls
        if not self.takes_calls:
            self._decide()
        if not at_work:
            self._idle.set()

    def room(self) -> int:
        """Calls that may still begin."""
        return 0 if self.is_draining else self._most - self.in_flight

    def opened(self, connection: Connection) -> None:
        self.connections.add(connection)
        if self._on_open is not None:
            self._on_open(connection)

    def closed(self, connection: Connection, why: str) -> None:
        self._sockets.discard(connection)
        self.connections.discard(connection)
        log.debug("wire: connection ended", extra={"peer": connection.name, "reason": why})

    def _decide(self) -> None:
        self.takes_calls = self.in_flight < self._most and not self.is_draining

    def count(self, what: str) -> None:
        self.counts[what] += 1

    def _accept(self, loop: asyncio.AbstractEventLoop) -> Connection:
        handshake = ServerHandshake(self._identity(self._secret)) if self._secret is not None else None
        machine = Machine(handshake, serves=True, max_frame_bytes=self._limits.max_frame_bytes)
        connection = Connection(self, machine, self._limits, loop)
        if len(self._sockets) >= self._limits.max_connections:
            self.count("connection_refused")
            machine.end(Code.OVERLOADED, "too many connections")
        self._sockets.add(connection)
        return connection

    def _identity(self, secret: bytes) -> Identity:
        limits = self._limits
        return Identity(
            secret,
            self._role,
            self._version,
            limits.max_frame_bytes,
            limits.max_in_flight,
            self._accepts,
        )

    def _sweep(self, now: float) -> float:
        waiting = [one for one in self.running if not one.is_answered]
        for running in waiting:
            if running.deadline <= now:
                running.connection.late(running)
        in_tasks = min((one.deadline for one in waiting if not one.is_answered), default=inf)
        promised = min((connection.end_late(now) for connection in list(self._sockets)), default=inf)
        return min(in_tasks, promised)


def _in_task(handler: Handler) -> Handler:
    def begun(call: Call) -> Any:
        coroutine = cast(Coroutine[Any, Any, Answer], handler(call))
        return asyncio.get_running_loop().create_task(coroutine)

    return begun
