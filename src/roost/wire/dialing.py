"""Getting a client its connection, and getting it again."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl as tls
from typing import Protocol

from roost.core.backoff import Backoff
from roost.core.errors import NotSent
from roost.wire.codes import Code
from roost.wire.endpoint import Endpoint
from roost.wire.frame import Frame
from roost.wire.handshake import ClientHandshake, Hello, Identity
from roost.wire.limits import Limits
from roost.wire.machine import PING_BYTES, Machine, Opened

log = logging.getLogger("roost.wire.client")

_FOR_GOOD = frozenset({Code.BAD_REQUEST, Code.UNAUTHENTICATED, Code.TOO_LARGE})
"""Refused with one of these, a peer need not wait for the next attempt: somebody must change something."""


class Owner(Protocol):
    """Whose connection it is."""

    def wants_connection(self) -> bool: ...
    def opened(self, link: Link) -> None: ...
    def frames(self, frames: list[Frame]) -> None: ...
    def lost(self, link: Link, why: str) -> None: ...
    def refused(self, why: str) -> None: ...
    def pump(self) -> None: ...


class Link(Endpoint):
    """The client's end of one connection."""

    def __init__(
        self, owner: Owner, machine: Machine, limits: Limits, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__(machine, limits, loop)
        self._owner = owner
        self._ping: asyncio.TimerHandle | None = None
        self.open: asyncio.Future[str] = loop.create_future()
        """Ends when the handshake is over."""
        self.terms = Hello("", b"")
        self.last_request = 0
        self.written_request = 0
        """The last request that was handed to the socket."""

    def flush(self) -> bool:
        last = self.last_request
        if not super().flush():
            return False
        self.written_request = last
        return True

    def on_opened(self, opened: Opened) -> None:
        self.terms = opened.peer
        self._look_for_life()
        self._owner.opened(self)
        if not self.open.done():
            self.open.set_result(opened.peer.role)

    def on_frames(self, frames: list[Frame]) -> None:
        self._owner.frames(frames)

    def on_room(self) -> None:
        self._owner.pump()

    def on_lost(self, why: str) -> None:
        if self._ping is not None:
            self._ping.cancel()
        self._owner.lost(self, why)

    def _look_for_life(self) -> None:
        silent_s = self._loop.time() - self.heard_at
        if silent_s >= self._limits.silence_s:
            self.cut("it was silent for too long")
            return
        if silent_s >= self._limits.ping_s:
            self.transmit(PING_BYTES, b"")
        self._ping = self._loop.call_later(self._limits.ping_s, self._look_for_life)


class Dialer:
    """Connects while the owner wants a connection, with backoff; at most one attempt at a time."""

    def __init__(
        self,
        owner: Owner,
        host: str,
        port: int,
        secret: bytes | None,
        role: str,
        version: str,
        ssl: tls.SSLContext | None,
        expects: frozenset[str],
        limits: Limits,
    ) -> None:
        self._owner = owner
        self._host, self._port = host, port
        self._secret, self._role, self._version, self._expects = secret, role, version, expects
        self._ssl = ssl
        self._limits = limits
        self._link: Link | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False
        self._callers = 0
        """Those who wait in `opened`."""
        self._opened = asyncio.Event()
        self.last_fault = ""
        """Why the last attempt failed; empty after a good one."""

    def want(self) -> None:
        """Somebody waits for a connection."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._keep_dialing())

    async def opened(self, timeout_s: float) -> None:
        if self._is_closed:
            raise NotSent("the peer was closed")
        self._callers += 1
        try:
            async with asyncio.timeout(timeout_s):
                while not self._is_open():
                    self._opened.clear()
                    self.want()
                    await self._opened.wait()
        except TimeoutError:
            raise NotSent(f"no connection to {self._host}:{self._port}: {self.last_fault}") from None
        finally:
            self._callers -= 1

    async def close(self) -> None:
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._link is not None and not self._link.gone.done():
            self._link.say_bye(Code.CLOSING, "the client ends")
            await asyncio.wait([self._link.gone], timeout=1.0)
            self._link.cut("the client ends")
            await asyncio.wait([self._link.gone])

    def _is_open(self) -> bool:
        return self._link is not None and self._link.is_open

    async def _keep_dialing(self) -> None:
        """Try until it works or nobody wants it any more."""
        backoff = Backoff(self._limits.backoff_s, self._limits.backoff_cap_s)
        while not self._is_open() and (self._callers or self._owner.wants_connection()):
            try:
                await self._dial()
            except NotSent as error:
                self._note(error.message)
                await asyncio.sleep(backoff.next())
            except Exception as error:  # a name that cannot be one, a certificate that cannot be read
                self._note(f"{type(error).__name__}: {error}")
                await asyncio.sleep(backoff.next())
            else:
                self.last_fault = ""
                self._opened.set()

    def _note(self, fault: str) -> None:
        """A server that is away for an hour is one line, not a thousand."""
        if fault != self.last_fault:
            log.info("wire: cannot connect", extra={"peer": self._name, "reason": fault})
        self.last_fault = fault

    @property
    def _name(self) -> str:
        return f"{self._host}:{self._port}"

    async def _dial(self) -> None:
        """One connection with its handshake done, or `NotSent` with the reason."""
        loop = asyncio.get_running_loop()
        link = Link(self._owner, self._machine(), self._limits, loop)
        try:
            async with asyncio.timeout(self._limits.handshake_s):
                await loop.create_connection(lambda: link, self._host, self._port, ssl=self._ssl)
                self._link = link
                await asyncio.wait((link.open, link.gone), return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            link.cut("the handshake took too long")
            raise NotSent(f"it did not answer within {self._limits.handshake_s:g} s") from None
        except (OSError, tls.SSLError) as error:
            raise NotSent(_reason(error)) from error
        except BaseException:
            link.cut("no longer wanted")
            raise
        if not link.open.done():
            why = link.gone.result()
            if link.refused_by in _FOR_GOOD:
                self._owner.refused(why)
            raise NotSent(why)

    def _machine(self) -> Machine:
        handshake = ClientHandshake(self._identity(self._secret)) if self._secret is not None else None
        return Machine(handshake, serves=False, max_frame_bytes=self._limits.max_frame_bytes)

    def _identity(self, secret: bytes) -> Identity:
        limits = self._limits
        return Identity(secret, self._role, self._version, limits.max_frame_bytes, 0, self._expects)


def _reason(error: OSError) -> str:
    """The short reason: asyncio's own text repeats the address."""
    if error.errno and error.errno > 0 and not isinstance(error, (socket.gaierror, tls.SSLError)):
        return os.strerror(error.errno)
    return error.strerror or str(error) or type(error).__name__
