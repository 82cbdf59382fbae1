"""Clients over TCP: each frame of the wire protocol carries one message, in msgpack; see docs/protocol.md.

There is no handshake: players are no roles, they log in by the first message like everybody else.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Sequence

from roost.core.errors import RoostError, TokenRefused
from roost.core.networks import network_of
from roost.servers.gate.gate import Gate
from roost.servers.gate.messages import MSGPACK
from roost.servers.gate.session import Session
from roost.servers.gate.websocket import refusal_of
from roost.servers.newcomers import BadTickets
from roost.wire.codes import Code
from roost.wire.endpoint import Endpoint
from roost.wire.frame import AFTER_LENGTH, HEADER, PUSH, VERSION, Frame
from roost.wire.limits import Limits
from roost.wire.machine import Machine

log = logging.getLogger("roost.gate")

PLAYERS = 2
"""The service of players."""
MESSAGE = 1
LOGIN_S = 5.0
SILENT_S = 30.0
"""A client that sends nothing for so long, not even a ping of the protocol, is gone."""
SLOW_S = 10.0
MAX_AHEAD = 64
"""Frames that may come behind the login before it is answered."""


class TcpClients:
    """The TCP side of a gate."""

    def __init__(self, gate: Gate, *, total: int, per_address: int = 0) -> None:
        self.gate = gate
        self.bad_tokens = BadTickets()
        self.lines: set[PlayerLine] = set()
        self._from: Counter[str] = Counter()
        self._total = total
        self._per_address = per_address
        own = gate.settings
        self._limits = Limits(
            max_frame_bytes=own.message_bytes + AFTER_LENGTH,
            max_unsent_bytes=own.unread_bytes,
            slow_reader_s=SLOW_S,
        )
        self._server: asyncio.Server | None = None

    async def start(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: PlayerLine(self, self._limits, loop), sock=listener)

    def take(self, line: PlayerLine) -> bool:
        """Count a connection in; False: there are too many."""
        is_crowd = bool(self._per_address) and self._from[line.address] >= self._per_address
        if is_crowd or len(self.lines) >= self._total:
            return False
        self.lines.add(line)
        self._from[line.address] += 1
        return True

    def give_back(self, line: PlayerLine) -> None:
        if line in self.lines:
            self.lines.discard(line)
            self._from[line.address] -= 1
            if not self._from[line.address]:
                del self._from[line.address]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for line in list(self.lines):
            line.say_bye(Code.CLOSING, "the gate stops")
        gone = [line.gone for line in self.lines]
        if gone:
            await asyncio.wait(gone, timeout=1.0)
        for line in list(self.lines):
            line.cut("the gate stops")


class PlayerLine(Endpoint):
    """One connection; a `Port` as the session sees it."""

    def __init__(self, clients: TcpClients, limits: Limits, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(Machine(None, serves=True, max_frame_bytes=limits.max_frame_bytes), limits, loop)
        self.address = ""
        self._clients = clients
        self._session: Session | None = None
        self._login: asyncio.Task[None] | None = None
        self._ahead: list[bytes] = []
        self._silence: asyncio.TimerHandle | None = None

    # -- a port

    def send(self, data: bytes) -> None:
        if self.is_open:
            size = AFTER_LENGTH + len(data)
            self.transmit(HEADER.pack(size, VERSION, PUSH, PLAYERS, MESSAGE, 0, 0, 0, 0), data)

    def close(self, last: bytes, code: str) -> None:
        self.send(last)
        self.say_bye(Code.CLOSING if code == "DRAINING" else Code.REFUSED, code)

    # -- the connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        peer = transport.get_extra_info("peername")
        self.address = network_of(str(peer[0])) if isinstance(peer, tuple) else ""
        if not self._clients.take(self):
            transport.close()
            return
        super().connection_made(transport)
        self._silence = self._loop.call_later(LOGIN_S, self._look_for_life)

    def _look_for_life(self) -> None:
        """Cut who has not logged in in time, and who has been silent for too long."""
        silent_s = self._loop.time() - self.heard_at
        if self._session is None and self._login is None:
            self.cut("no login came")
        elif silent_s >= SILENT_S:
            self.cut("it was silent for too long")
        else:
            self._silence = self._loop.call_later(SILENT_S - silent_s, self._look_for_life)

    def on_frames(self, frames: Sequence[Frame]) -> None:
        for frame in frames:
            if (frame.service, frame.method) != (PLAYERS, MESSAGE):
                self.say_bye(Code.UNKNOWN_METHOD, f"players use service {PLAYERS}, method {MESSAGE}")
                return
            if self._session is not None:
                self._session.received(frame.payload)
            elif self._login is None:
                self._login = self._loop.create_task(self._log_in(frame.payload), name="roost gate login")
            elif len(self._ahead) < MAX_AHEAD:
                self._ahead.append(frame.payload)
            else:
                self.say_bye(Code.OVERLOADED, "wait for the welcome")
                return

    async def _log_in(self, data: bytes) -> None:
        clients = self._clients
        try:
            clients.bad_tokens.check(self.address)
            first = MSGPACK.read(data)
            session = await clients.gate.login(self, MSGPACK, first)
        except RoostError as error:
            if isinstance(error, TokenRefused):
                clients.bad_tokens.note(self.address)
            log.info("login refused", extra={"code": error.code, "reason": error.message})
            told = refusal_of(error)
            self.close(MSGPACK.bye(told), told.code)
            return
        if not self.is_open:
            session.gone("dropped")
            return
        self._session = session
        ahead, self._ahead = self._ahead, []
        for waiting in ahead:
            session.received(waiting)

    def on_lost(self, why: str) -> None:
        self._clients.give_back(self)
        if self._silence is not None:
            self._silence.cancel()
        if self._login is not None and self._session is None:
            self._login.cancel()
        if self._session is not None:
            self._session.gone("slow" if "unread" in why or "slowly" in why else "dropped")
