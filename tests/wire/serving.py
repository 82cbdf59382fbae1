"""A server and its peers in the test's own loop, over real sockets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from roost.wire.client import Peer
from roost.wire.connection import Call
from roost.wire.frame import HEADER, Frame, decode, encode
from roost.wire.handshake import ClientHandshake, Identity
from roost.wire.limits import Limits
from roost.wire.machine import Machine
from roost.wire.server import Answer, WireServer

SECRET = b"a secret of both"
ECHO, WAIT, FAIL, COUNT = 1, 2, 3, 4
BUDGET_MS = 10_000


class Town:
    """A server with a few methods; `release` lets those who wait go on."""

    def __init__(self, limits: Limits, **options: Any) -> None:
        self.limits = limits
        self.release = asyncio.Event()
        self.waiting = 0
        self.executed = 0
        self.cancelled = 0
        options.setdefault("secret", SECRET)
        self.server = WireServer(role="entity", version="1.0", limits=limits, **options)
        self.server.register(1, ECHO, lambda call: Answer(call.payload, epoch=call.epoch))
        self.server.register(1, WAIT, self.wait)
        self.server.register(1, FAIL, self.fail)
        self.port = 0

    async def wait(self, call: Call) -> Answer:
        self.waiting += 1
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        self.executed += 1
        return Answer(call.payload)

    async def fail(self, call: Call) -> Answer:
        raise ValueError("a reason that is nobody else's business")

    def peer(self, **options: Any) -> Peer:
        options.setdefault("secret", SECRET)
        options.setdefault("limits", self.limits)
        return Peer("127.0.0.1", self.port, role="gate", **options)


@asynccontextmanager
async def town(limits: Limits | None = None, **options: Any) -> AsyncIterator[Town]:
    one = Town(limits or Limits(), **options)
    _, one.port = await one.server.start(listening())
    try:
        yield one
    finally:
        one.release.set()
        await one.server.close(grace_s=1.0)


@asynccontextmanager
async def talking(limits: Limits | None = None, **options: Any) -> AsyncIterator[tuple[Town, Peer]]:
    """A town and a peer of it."""
    async with town(limits) as one:
        peer = one.peer(**options)
        try:
            yield one, peer
        finally:
            await peer.close()


def listening(port: int = 0) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", port))
    return sock


class Raw:
    """A client made by hand, which may do what a good one does not."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def connect(cls, port: int) -> Raw:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    @classmethod
    async def enter(cls, port: int, sent: list[bytes] | None = None) -> Raw:
        """Connect and carry out the handshake; `sent` gets what was said."""
        raw = await cls.connect(port)
        machine = Machine(ClientHandshake(Identity(SECRET, "gate")), serves=False, max_frame_bytes=1024)
        machine.begin()
        while not machine.is_open:
            said = machine.output()
            raw.writer.write(said)
            if sent is not None:
                sent.append(said)
            machine.receive(await raw.reader.read(4096))
        return raw

    def send(self, *frames: Frame) -> None:
        self.writer.write(b"".join(map(encode, frames)))

    async def read_frame(self) -> Frame:
        header = HEADER.unpack(await self.reader.readexactly(HEADER.size))
        rest = await self.reader.readexactly(header[0] + 4 - HEADER.size)
        return decode(header, rest, 0, len(rest))

    async def read_to_end(self) -> bytes:
        """What is left until the server closes; it fails with the test's timeout if it does not."""
        try:
            return await self.reader.read()
        except ConnectionError:
            return b""

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except OSError:
            pass
