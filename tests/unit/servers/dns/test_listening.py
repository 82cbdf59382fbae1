"""DNS over TCP: nobody holds all of its connections."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import dns.message
import pytest

from roost.servers.dns import listening
from roost.servers.dns.answering import Answerer
from roost.servers.dns.listening import TcpQueries
from roost.servers.dns.zone import Zone
from roost.testing import eventually
from tests.unit.servers.dns.test_zone import instance, snapshot

Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]
QUERY = dns.message.make_query("game.roost.", "A").to_wire()


class Place:
    """A server, and lines to it from addresses of this host."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.lines: list[Line] = []

    async def line(self, address: str = "127.0.0.1") -> Line:
        """An open line that has been counted: it asked once."""
        line = await asyncio.open_connection("127.0.0.1", self._port, local_addr=(address, 0))
        self.lines.append(line)
        assert await is_answered(line)
        return line


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with serving() as place:
        yield place


@asynccontextmanager
async def serving() -> AsyncIterator[Place]:
    zone = Zone()
    zone.apply(snapshot(instance("501")))
    queries = TcpQueries(Answerer(zone, "roost", ttl_s=2))
    server = await asyncio.start_server(queries.serve, "127.0.0.1", 0)
    place = Place(server.sockets[0].getsockname()[1])
    try:
        yield place
    finally:
        for _, writer in place.lines:
            writer.close()
        server.close()
        await eventually(lambda: not len(queries), "the end of every connection")


async def is_answered(line: Line) -> bool:
    """Whether a query on the line is answered; False: it was cut."""
    reader, writer = line
    try:
        writer.write(struct.pack(">H", len(QUERY)) + QUERY)
        async with asyncio.timeout(5):
            (size,) = struct.unpack(">H", await reader.readexactly(2))
            await reader.readexactly(size)
    except (asyncio.IncompleteReadError, ConnectionError):
        return False
    return True


async def test_one_address_has_so_many_connections_and_locks_out_itself_only(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "TCP_PER_NETWORK", 3)
    other = await place.line("127.0.0.2")
    first, *others = [await place.line() for _ in range(3)]

    newest = await place.line()

    assert not await is_answered(first), "the one that was idle longest made room"
    assert all([await is_answered(line) for line in (*others, newest, other)])


async def test_when_all_are_taken_the_one_that_was_idle_longest_makes_room(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "TCP_CONNECTIONS", 3)
    lines = [await place.line(f"127.0.0.{number}") for number in (1, 2, 3)]
    assert await is_answered(lines[0]), "now the second was idle longest"

    newest = await place.line("127.0.0.4")

    assert not await is_answered(lines[1])
    assert all([await is_answered(line) for line in (lines[0], lines[2], newest)])
