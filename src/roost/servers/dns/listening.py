"""The sockets of `roost dns`: UDP, and TCP for what does not fit."""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
from typing import cast

from roost.core.errors import PortTaken, StartFailed
from roost.core.networks import network_of
from roost.servers.dns.answering import Answerer

TCP_CONNECTIONS = 128
"""For one more the connection that has been idle longest is cut; who asks over UDP is not concerned."""
TCP_PER_NETWORK = 16
"""Of those from one address, or one /64 of IPv6; one more cuts the idlest of the same."""
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
    """The connections of one listener. A new one is always let in, so that silent ones hold out nobody."""

    def __init__(self, answerer: Answerer) -> None:
        self._answerer = answerer
        self._open: dict[asyncio.StreamWriter, str] = {}
        """And the network of each; first the one whose last whole query is longest ago."""

    def __len__(self) -> int:
        return len(self._open)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peername")
        network = network_of(str(peer[0])) if peer else ""
        self._make_room(network)
        self._open[writer] = network
        try:
            while await self._answer_one(reader, writer):
                pass
        except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._open.pop(writer, None)
            writer.close()

    def _make_room(self, network: str) -> None:
        same = [writer for writer, its in self._open.items() if its == network]
        if len(same) >= TCP_PER_NETWORK:
            self._cut(same[0])
        elif len(self._open) >= TCP_CONNECTIONS:
            self._cut(next(iter(self._open)))

    def _cut(self, writer: asyncio.StreamWriter) -> None:
        del self._open[writer]
        writer.transport.abort()  # closing would wait for an answer to be read

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """False: what came is no query, so nothing more of it is read; or the connection has been cut."""
        async with asyncio.timeout(TCP_IDLE_S):
            (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
            query = await reader.readexactly(size)
            if writer not in self._open:
                return False
            answer = self._answerer.answer(query, over_tcp=True)
            if answer is None:
                return False
            self._open[writer] = self._open.pop(writer)  # the least idle now: the last
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
