"""The sockets of `roost dns`: UDP, and TCP for what does not fit."""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
from typing import cast

from roost.core.errors import PortTaken, StartFailed
from roost.servers.dns.answering import Answerer

TCP_CONNECTIONS = 128
"""More are closed at once: who asks over UDP is not concerned."""
TCP_IDLE_S = 5.0
"""From one whole query to the next."""

_LENGTH = struct.Struct(">H")


class UdpQueries(asyncio.DatagramProtocol):
    def __init__(self, answerer: Answerer) -> None:
        self._answerer = answerer
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)  # which uvloop's is not by inheritance

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        answer = self._answerer.answer(data)
        if answer is not None and self._transport is not None:
            self._transport.sendto(answer, addr)

    def error_received(self, exc: Exception) -> None:
        """An answer that could not be delivered is asked for again by who wants it."""


class TcpQueries:
    def __init__(self, answerer: Answerer) -> None:
        self._answerer = answerer
        self._open: set[asyncio.StreamWriter] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= TCP_CONNECTIONS:
            writer.close()
            return
        self._open.add(writer)
        try:
            while await self._answer_one(reader, writer):
                pass
        except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """False: what came is no query, so nothing more of it is read."""
        async with asyncio.timeout(TCP_IDLE_S):
            (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
            answer = self._answerer.answer(await reader.readexactly(size), over_tcp=True)
            if answer is None:
                return False
            writer.write(_LENGTH.pack(len(answer)) + answer)
            await writer.drain()
        return True

    def close(self) -> None:
        for writer in list(self._open):
            writer.close()


def bind_udp(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    udp = socket.socket(family, socket.SOCK_DGRAM)
    udp.setblocking(False)
    try:
        udp.bind((host, port))
    except OSError as error:
        udp.close()
        if error.errno == errno.EADDRINUSE:
            raise PortTaken(f"UDP port {port} is taken", hint="choose another with --port") from None
        raise StartFailed(
            f"cannot listen on {host}:{port}: {error.strerror}", hint="correct --host"
        ) from None
    return udp
