"""Whoever does not keep to the protocol loses its own connection, and nobody else notices."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest

from roost.core.errors import NotSent
from roost.testing.waiting import eventually
from roost.wire.answer import said_in
from roost.wire.codes import Code
from roost.wire.frame import AFTER_LENGTH, HEADER, Frame
from roost.wire.handshake import BYE
from roost.wire.limits import Limits
from roost.wire.server import Answer, Connection
from tests.wire.serving import BUDGET_MS, ECHO, Raw, Town, listening, talking, town


async def others_are_served(one: Town) -> None:
    peer = one.peer()
    assert (await peer.call(1, ECHO, b"fine", budget_ms=BUDGET_MS)).payload == b"fine"
    await peer.close()


async def farewell(raw: Raw) -> tuple[Code, str]:
    """What the server says before it closes; then it does close."""
    frame = await raw.read_frame()
    assert (frame.service, frame.method) == (0, BYE)
    assert await raw.read_to_end() == b""
    await raw.close()
    return Code(frame.code), said_in(frame.payload).message


@pytest.mark.parametrize("garbage", [b"GET / HTTP/1.1\r\n\r\n" + bytes(32), b"\x00" * 64, os.urandom(4096)])
async def test_garbage_ends_its_connection(garbage: bytes) -> None:
    async with town() as one:
        raw = await Raw.connect(one.port)
        raw.writer.write(garbage)
        code, _ = await farewell(raw)
        assert code in (Code.BAD_REQUEST, Code.TOO_LARGE, Code.UNAUTHENTICATED)
        await others_are_served(one)


async def test_garbage_after_the_handshake_ends_its_connection() -> None:
    async with town() as one:
        raw = await Raw.enter(one.port)
        raw.writer.write(bytes(100))
        code, message = await farewell(raw)
        assert (code, message) == (Code.BAD_REQUEST, "a frame of 0 bytes is shorter than its header")
        await others_are_served(one)


async def test_an_oversize_frame_is_refused_before_its_body_comes() -> None:
    async with town(Limits(max_frame_bytes=10_000)) as one:
        raw = await Raw.enter(one.port)
        raw.writer.write(HEADER.pack(10_001, 1, 0, 1, ECHO, 0, 0, 1, 0))
        assert await farewell(raw) == (Code.TOO_LARGE, "a frame of 10001 bytes; at most 10000 are allowed")
        await others_are_served(one)


async def test_another_version_of_the_protocol_is_told_which_one_is_spoken() -> None:
    async with town() as one:
        raw = await Raw.connect(one.port)
        raw.writer.write(HEADER.pack(AFTER_LENGTH, 2, 0, 0, 1, 0, 0, 0, 0))
        code, message = await farewell(raw)
        assert code is Code.BAD_REQUEST
        assert message == "the peer speaks version 2 of the protocol, this side version 1"


async def test_a_peer_learns_that_the_server_speaks_another_version() -> None:
    async def speak_two(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(HEADER.pack(AFTER_LENGTH, 2, 1, 0, 1, 0, 0, 0, 0))
        await reader.read()
        writer.close()

    server = await asyncio.start_server(speak_two, sock=listening())
    one = Town(Limits())
    one.port = server.sockets[0].getsockname()[1]
    peer = one.peer()
    with pytest.raises(NotSent, match="speaks version 2 of the protocol, this side version 1"):
        await peer.call(1, ECHO, b"", budget_ms=BUDGET_MS)
    await peer.close()
    server.close()


async def test_a_wrong_secret_fails_its_calls_at_once_and_opens_nothing() -> None:
    async with town() as one:
        peer = one.peer(secret=b"not the secret at all")
        with pytest.raises(NotSent, match="UNAUTHENTICATED: the client does not know the secret"):
            await peer.call(1, ECHO, b"", budget_ms=BUDGET_MS)
        assert not peer.is_open
        assert not one.server.connections
        await peer.close()
        await others_are_served(one)


async def test_a_role_that_is_not_expected_is_refused() -> None:
    async with town(accepts=frozenset({"orders"})) as one:
        peer = one.peer()
        with pytest.raises(NotSent, match="of this role is not expected here"):
            await peer.call(1, ECHO, b"", budget_ms=BUDGET_MS)
        await peer.close()


async def test_a_recorded_handshake_opens_no_second_connection() -> None:
    async with town() as one:
        sent: list[bytes] = []
        good = await Raw.enter(one.port, sent)
        assert len(one.server.connections) == 1

        replayed = await Raw.connect(one.port)
        replayed.writer.write(sent[0])
        await replayed.read_frame()
        replayed.writer.write(sent[1])
        assert await farewell(replayed) == (Code.UNAUTHENTICATED, "the client does not know the secret")
        assert len(one.server.connections) == 1
        await good.close()


async def test_a_call_before_the_handshake_is_not_executed() -> None:
    async with town() as one:
        raw = await Raw.connect(one.port)
        raw.send(Frame(0, 1, ECHO, 0, 0, 1, 0, b""))
        assert (await farewell(raw))[0] is Code.UNAUTHENTICATED


async def test_a_client_that_stops_in_the_middle_of_the_handshake_is_cut() -> None:
    async with town(Limits(handshake_s=0.05)) as one:
        silent, half = await Raw.connect(one.port), await Raw.connect(one.port)
        half.writer.write(HEADER.pack(100, 1, 0, 0, 1, 0, 0, 0, 0)[:20])
        assert await silent.read_to_end() == b""
        assert await half.read_to_end() == b""
        await silent.close()
        await half.close()


async def test_a_server_that_never_answers_the_handshake_is_given_up() -> None:
    sock = listening()
    sock.listen()
    one = Town(Limits(handshake_s=0.05, wait_s=0.5))
    one.port = sock.getsockname()[1]
    peer = one.peer()
    with pytest.raises(NotSent, match="did not answer within"):
        await peer.call(1, ECHO, b"", budget_ms=BUDGET_MS)
    with pytest.raises(NotSent, match="did not answer within"):
        await peer.connect(0.2)
    await peer.close()
    sock.close()


async def test_a_client_that_never_reads_is_cut_and_costs_no_more_than_its_bound() -> None:
    connections: list[Connection] = []
    lost: list[str] = []
    limits = Limits(max_unsent_bytes=300_000, slow_reader_s=30.0)
    async with town(limits, on_open=connections.append) as one:
        raw = await Raw.enter(one.port)
        raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
        connection = await first(connections)
        connection.gone.add_done_callback(lambda gone: lost.append(gone.result()))
        pushed = 0
        while connection.push(1, 1, bytes(50_000)):
            pushed += 50_000
            await asyncio.sleep(0)
            assert pushed < 100_000_000
        await eventually(lambda: bool(lost), "the cut")
        assert lost == ["it left 300000 bytes unread"]
        await others_are_served(one)
        await raw.close()


async def test_a_client_that_does_not_read_its_answers_is_not_read_and_in_the_end_cut() -> None:
    connections: list[Connection] = []
    limits = Limits(slow_reader_s=0.1)
    async with town(limits, on_open=connections.append) as one:
        one.server.register(1, 60, lambda _: Answer(bytes(100_000)))
        raw = await Raw.enter(one.port)
        raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
        raw.send(*(Frame(0, 1, 60, 0, 0, number, 0, b"") for number in range(1, 101)))
        connection = await first(connections)
        assert await connection.gone == "it reads too slowly"
        await others_are_served(one)
        await raw.close()


async def first(connections: list[Connection]) -> Connection:
    await eventually(lambda: bool(connections), "the connection")
    return connections[0]


async def test_a_client_that_says_nothing_is_taken_for_gone_and_one_that_pings_is_not() -> None:
    connections: list[Connection] = []
    async with town(Limits(silence_s=0.3, ping_s=0.05), on_open=connections.append) as one:
        peer = one.peer()
        await peer.connect()
        pinging = await first(connections)
        raw = await Raw.enter(one.port)
        await eventually(lambda: len(connections) == 2, "the second connection")
        assert await connections[1].gone == "it was silent for too long"
        assert pinging.is_open
        await raw.close()
        await peer.close()


async def test_a_server_that_hangs_is_noticed_by_its_silence() -> None:
    """The process stands still, its kernel goes on: no reset ever comes."""
    lost: list[str] = []
    async with Relayed() as (one, hang):
        peer = one.peer(limits=Limits(silence_s=0.2, ping_s=0.05), on_lost=lost.append)
        await peer.connect()
        hang.set()
        await eventually(lambda: bool(lost), "the loss")
        assert lost == ["it was silent for too long"]
        await peer.close()


class Relayed:
    """A server behind a relay that stops carrying when told so."""

    async def __aenter__(self) -> tuple[Town, asyncio.Event]:
        self.hang = asyncio.Event()
        self.one = Town(Limits())
        _, self.inner = await self.one.server.start(listening())
        self.relay = await asyncio.start_server(self._carry, sock=listening())
        self.one.port = self.relay.sockets[0].getsockname()[1]
        self.tasks: set[asyncio.Task[None]] = set()
        return self.one, self.hang

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.inner)
        for source, target in ((reader, far_writer), (far_reader, writer)):
            self.tasks.add(asyncio.ensure_future(self._copy(source, target)))

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            if not self.hang.is_set():
                target.write(data)
        target.close()

    async def __aexit__(self, *_: object) -> None:
        self.relay.close()
        await self.one.server.close(0.1)
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def test_too_many_connections_are_refused_with_the_reason() -> None:
    async with talking(Limits(max_connections=1)) as (one, peer):
        await peer.connect()
        raw = await Raw.connect(one.port)
        assert await farewell(raw) == (Code.OVERLOADED, "too many connections")
        assert one.server.counts["connection_refused"] == 1


async def test_an_abrupt_reset_is_survived() -> None:
    async with town() as one:
        for _ in range(20):
            sock = socket.create_connection(("127.0.0.1", one.port))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            sock.close()
        await others_are_served(one)
