"""The socket under a machine, the same on both sides: writes leave together, a slow reader is cut."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import cast

from roost.wire.codes import Code, ProtocolError
from roost.wire.frame import Frame
from roost.wire.limits import Limits
from roost.wire.machine import Bye, Event, Machine, Opened

log = logging.getLogger("roost.wire")


class Endpoint(asyncio.Protocol):
    """One connection. Whatever is sent in one turn of the event loop leaves in one write."""

    def __init__(self, machine: Machine, limits: Limits, loop: asyncio.AbstractEventLoop) -> None:
        self._machine = machine
        self._limits = limits
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._out: list[bytes] = []
        self._flush_due = False
        self._late: asyncio.TimerHandle | None = None
        self._stuck: asyncio.TimerHandle | None = None
        self._why = ""
        self._is_parting = False
        self.refused_by: Code | None = None
        """The code with which one side refused the other; None while neither did."""
        self.is_open = False
        """Whether frames may go: the handshake is over and the socket is there."""
        self.is_full = False
        """Whether the socket takes nothing more for now."""
        self.heard_at = loop.time()
        """Loop time of the last sign of life."""
        self.name = "?"
        """The other side, for logs."""
        self.gone: asyncio.Future[str] = loop.create_future()
        """Ends with the reason when the connection does."""

    # -- for the two sides

    def on_opened(self, opened: Opened) -> None:
        """The handshake is over."""

    def on_frames(self, frames: list[Frame]) -> None:
        """Frames of the application, in order."""

    def on_lost(self, why: str) -> None:
        """The connection is gone; said once."""

    def on_room(self) -> None:
        """The socket takes bytes again."""

    # -- sending

    def transmit(self, head: bytes, payload: bytes) -> None:
        """Take a frame's bytes; they leave at the end of this turn of the loop."""
        out = self._out
        out.append(head)
        if payload:
            out.append(payload)
        if not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self.flush)

    def flush(self) -> bool:
        """Write what was taken; False: nothing of it was."""
        self._flush_due = False
        transport, out = self._transport, self._out
        if transport is None or not out or transport.is_closing():
            out.clear()
            return False
        transport.write(out[0] if len(out) == 1 else b"".join(out))
        out.clear()
        if self.is_full and transport.get_write_buffer_size() > self._limits.max_unsent_bytes:
            self.cut(f"it left {self._limits.max_unsent_bytes} bytes unread")
        return True

    def cut(self, why: str) -> None:
        """End the connection now; what was not sent is lost."""
        self._why = self._why or why
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def say_bye(self, code: Code, why: str) -> None:
        """End the connection after what was sent, and say why."""
        self._why = self._why or why
        self._machine.end(code, why)
        self._part()

    def _part(self) -> None:
        self.is_open = False
        if self._transport is not None and not self._is_parting:
            self._is_parting = True
            self._send_own()
            self.flush()
            self._transport.close()
            self._bound_by(self._limits.handshake_s, "it did not read the farewell")

    def _send_own(self) -> None:
        if self._machine.has_output():
            self.transmit(self._machine.output(), b"")

    # -- asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.name = f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else str(peer or "?")
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._bound_by(self._limits.handshake_s, "the handshake took too long")
        self._handle(self._machine.begin())

    def data_received(self, data: bytes) -> None:
        self.heard_at = self._loop.time()
        try:
            events = self._machine.receive(data)
        except ProtocolError as error:
            log.warning("wire: protocol error", extra={"peer": self.name, "reason": error.message})
            self._why, self.refused_by = self._why or error.message, error.says
            self._part()
        else:
            self._handle(events)

    def pause_writing(self) -> None:
        self.is_full = True
        if self._stuck is None:
            self._stuck = self._loop.call_later(self._limits.slow_reader_s, self.cut, "it reads too slowly")

    def resume_writing(self) -> None:
        self.is_full = False
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None
        self.on_room()

    def eof_received(self) -> None:
        return None

    def connection_lost(self, error: Exception | None) -> None:
        self._transport, self.is_open = None, False
        for timer in (self._late, self._stuck):
            if timer is not None:
                timer.cancel()
        why = self._why or (str(error) if error else "the peer closed the connection")
        if not self.gone.done():
            self.gone.set_result(why)
        self.on_lost(why)

    def _handle(self, events: list[Event]) -> None:
        if not self.is_open or (events and events[-1].__class__ is not Frame):
            events = self._handle_own(events)
        if events:
            self.on_frames(cast(list[Frame], events))
        if self._machine.has_output():
            self._send_own()
        if self._machine.is_over:
            self._part()

    def _handle_own(self, events: list[Event]) -> list[Event]:
        """Take out what is no frame."""
        for event in events:
            if isinstance(event, Opened):
                self._send_own()  # the welcome goes before anything else
                self.is_open = True
                if self._late is not None:
                    self._late.cancel()
                self.on_opened(event)
            elif isinstance(event, Bye):
                self._why, self.refused_by = self._why or f"{event.code.name}: {event.message}", event.code
        return [event for event in events if isinstance(event, Frame)]

    def _bound_by(self, seconds: float, why: str) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late = self._loop.call_later(seconds, self.cut, why)
