"""One socket to one node: commands leave in batches, replies arrive in order.

Whatever is sent in one turn of the event loop leaves in one write. A reply belongs to the oldest
call without one, so a call keeps its place in `slots` until its reply has come, also when its caller
timed out or went away: replies never shift to another caller.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import hiredis
from hiredis import ReplyError

from roost.core.errors import StoreAccessDenied, StoreError, StoreRefused, StoreUnavailable
from roost.store.call import Call, pack, refusal
from roost.store.url import Address, Credentials

log = logging.getLogger("roost.store.connection")

LARGE_REPLY_BYTES = 256 * 1024
"""Replies above this delay everybody behind them; they belong on the bulk connection."""

_INCOMPLETE: Any = object()
_ASKING = pack(("ASKING",))


@dataclass(slots=True)
class Access:
    """What it takes to get in. Links share one, so a new password is known to every reconnect."""

    credentials: Credentials = field(default_factory=Credentials)
    tls: ssl.SSLContext | None = None
    db: int = 0
    client_name: str = ""

    def handshake(self) -> list[tuple[Any, ...]]:
        commands: list[tuple[Any, ...]] = []
        if self.credentials.auth_args:
            commands.append(("AUTH", *self.credentials.auth_args))
        if self.client_name:
            commands.append(("CLIENT", "SETNAME", self.client_name))
        if self.db:
            commands.append(("SELECT", self.db))
        return commands or [("PING",)]


class Connection(asyncio.Protocol):
    """The protocol. `on_error` gets each call whose reply is an error; `on_read` runs after each batch."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._reader = hiredis.Reader(notEnoughData=_INCOMPLETE)
        self._transport: asyncio.Transport | None = None
        self._out: list[bytes] = []
        self._flush_due = False
        self._unparsed = 0
        self.slots: deque[Call] = deque()
        """Calls whose reply is still to come, oldest first."""
        self.paused = False
        """Whether the socket's send buffer is full."""
        self.busy_since = 0.0
        """Loop time of the last sign of life, or of the first call after an idle time."""
        self.address: Address | None = None
        """The node at the other end."""
        self.lost: asyncio.Future[str] = loop.create_future()
        """Ends with the reason when the connection does."""
        self.on_error: Callable[[Call, str], None] = Call.refuse
        self.on_read: Callable[[], None] = _nothing
        self.on_large: Callable[[], None] = _nothing
        self.on_lost: Callable[[Connection, str], None] = _ignore_loss

    def send(self, call: Call) -> None:
        """Take a call; its bytes leave at the end of this turn of the loop."""
        if not self.slots:
            self.busy_since = self._loop.time()
        if call.asking:
            call.asking = False
            self._out.append(_ASKING)
            self.slots.append(_ignored(self._loop))
        self.slots.append(call)
        self._out.append(call.packed)
        if not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self._flush)

    def take_back(self) -> tuple[list[Call], list[Call]]:
        """After the loss: the calls that were sent, and those that certainly were not."""
        calls = list(self.slots)
        border = len(calls) - len(self._out)
        self.slots.clear()
        self._out.clear()
        return calls[:border], calls[border:]

    def has_room(self, most: int) -> bool:
        return len(self.slots) < most and not self.paused

    def expire(self, now: float, why: str) -> int:
        """End the calls whose time is over, without their slots; returns how many."""
        late = [call for call in self.slots if call.deadline <= now and not call.future.done()]
        for call in late:
            call.lose(why)
        return len(late)

    def silent_s(self, now: float) -> float:
        """How long it has owed a reply without a sign of life; 0 if it owes none."""
        return now - self.busy_since if self.slots else 0.0

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def hand_over(self) -> asyncio.Transport:
        """Give the open transport to another protocol; nothing may be in flight."""
        assert self._transport is not None
        assert not self.slots
        transport, self._transport = self._transport, None
        return transport

    def _flush(self) -> None:
        self._flush_due = False
        out = self._out
        if out and self._transport is not None and not self._transport.is_closing():
            self._transport.write(out[0] if len(out) == 1 else b"".join(out))
            out.clear()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def data_received(self, data: bytes) -> None:
        self.busy_since = self._loop.time()
        self._unparsed += len(data)
        reader, slots = self._reader, self.slots
        try:
            reader.feed(data)
            while (reply := reader.gets()) is not _INCOMPLETE:
                if self._unparsed > LARGE_REPLY_BYTES:
                    self.on_large()
                self._unparsed = 0
                call = slots.popleft()
                if reply.__class__ is ReplyError:
                    self._hand_on(call, str(reply))
                elif not call.future.done():
                    call.future.set_result(reply)
        except (hiredis.ProtocolError, IndexError):
            # Bytes that are no reply, or a reply to nothing: no later reply could be trusted either.
            self.abort()
        self.on_read()

    def _hand_on(self, call: Call, message: str) -> None:
        """The call has left its slot: if nobody can make sense of the error, it must end here."""
        try:
            self.on_error(call, message)
        except Exception:
            log.exception("an error reply could not be read", extra={"reason": message[:200]})
            call.refuse(message)

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        self.on_read()

    def connection_lost(self, error: Exception | None) -> None:
        reason = f"connection lost ({error})" if error else "connection closed by the store"
        self._transport = None
        if not self.lost.done():  # first: whoever keeps the link must hear of it, whatever the others do
            self.lost.set_result(reason)
        self.on_lost(self, reason)


async def dial(address: Address, access: Access, timeout_s: float) -> Connection:
    """Open a connection and introduce ourselves, or raise a `StoreError` that says what failed."""
    try:
        async with asyncio.timeout(timeout_s):
            connection = await _open(address, access)
            try:
                await _introduce(connection, access, timeout_s)
            except BaseException:
                connection.abort()
                raise
            connection.address = address
            return connection
    except TimeoutError:
        raise StoreUnavailable(f"{address} did not answer within {timeout_s:g} s") from None
    except (OSError, ssl.SSLError) as error:
        raise StoreUnavailable(f"cannot connect to {address}: {reason_of(error)}") from error


async def _open(address: Address, access: Access) -> Connection:
    loop = asyncio.get_running_loop()
    if not address.port:
        _, connection = await loop.create_unix_connection(lambda: Connection(loop), address.host)
    else:
        hostname = address.host if access.tls else None
        _, connection = await loop.create_connection(
            lambda: Connection(loop), address.host, address.port, ssl=access.tls, server_hostname=hostname
        )
    return connection


async def _introduce(connection: Connection, access: Access, timeout_s: float) -> None:
    for command in access.handshake():
        try:
            await ask(connection, *command, timeout_s=timeout_s)
        except StoreRefused as error:
            if command[0] == "CLIENT":
                continue  # an ACL user without CLIENT works as well, only without a name in CLIENT LIST
            if command[0] == "AUTH":
                raise StoreAccessDenied(f"the store refuses access: {error.message}") from None
            raise refusal(f"{error.message} (at {command[0]})") from None


def ask(connection: Connection, *args: Any, timeout_s: float) -> asyncio.Future[Any]:
    """A command outside any link: handshakes and questions to sentinels."""
    loop = asyncio.get_running_loop()
    call = Call(loop.create_future(), pack(args), loop.time() + timeout_s, None, True, False)
    connection.on_lost = _lose_all
    connection.send(call)
    return call.future


def _lose_all(connection: Connection, reason: str) -> None:
    for call in connection.slots:
        call.fail(StoreUnavailable(reason))


def reason_of(error: BaseException) -> str:
    """The short reason inside an OSError, whose own text repeats the address."""
    if isinstance(error, StoreError):
        return error.message
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(text)


def _ignored(loop: asyncio.AbstractEventLoop) -> Call:
    """A slot whose reply nobody wants."""
    call = Call(loop.create_future(), b"", 0.0, None, True, False)
    call.future.cancel()
    return call


def _nothing() -> None:
    pass


def _ignore_loss(connection: Connection, reason: str) -> None:
    pass
