"""Clients that connect and say nothing, or say it slowly: nobody else notices them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from aiohttp import web

from roost.gateway.settings import GatewaySettings
from roost.settings import Settings
from roost.testing import Gateway, RunningServer, free_port, open_gateway
from roost.waitingroom.settings import QueueSettings
from roost.web import body, connections
from roost.web.connections import ConnectionLimits
from roost.web.listen import bind, serve
from tests.acceptance.conftest import Home, cpu_s, http
from tests.acceptance.queue import settings_for

TOKEN = "a-token-for-the-tests"
Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[int], Awaitable[Line]]


@contextlib.contextmanager
def silent(port: int, count: int) -> Iterator[list[socket.socket]]:
    """So many connections that never say a word; those that are refused count as well."""
    lines: list[socket.socket] = []
    try:
        for _ in range(count):
            line = socket.socket()
            line.setblocking(False)
            line.connect_ex(("127.0.0.1", port))
            lines.append(line)
        yield lines
    finally:
        for line in lines:
            line.close()


def test_more_silent_sockets_than_files_stop_nothing(home: Home, server: RunningServer) -> None:
    port = free_port()
    gateway = home.start("gateway", "--port", str(port), "--store", server.url, files="300")
    with silent(port, 1100):
        before, began = cpu_s(gateway.process.pid), time.monotonic()
        for _ in range(20):
            asked = time.monotonic()
            assert http(f"{gateway.url}/readyz").status == 200
            assert time.monotonic() - asked < 2, "it answers while they hang on"
            time.sleep(0.05)  # most of this second it has nothing to do
        used, lasted = cpu_s(gateway.process.pid) - before, time.monotonic() - began
    assert used < 0.3 * lasted, "and does not spin"
    assert "Too many open files" not in gateway.text
    assert "few open files are allowed" in gateway.text


@contextlib.asynccontextmanager
async def hello(limits: ConnectionLimits) -> AsyncIterator[int]:
    """A server that says hello, held to these limits; its port."""

    async def greet(request: web.Request) -> web.Response:
        return web.Response(text="hello")

    app, listener = web.Application(), bind("127.0.0.1", 0)
    app.router.add_get("/", greet)
    runner = await serve(app, listener, limits)
    try:
        yield listener.getsockname()[1]
    finally:
        await runner.cleanup()


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Opens connections to a port of this machine, which are closed after the test."""
    opened: list[Line] = []

    async def to(port: int) -> Line:
        opened.append(await asyncio.open_connection("127.0.0.1", port))
        return opened[-1]

    yield to
    for _, writer in opened:
        writer.close()
    await asyncio.gather(*(writer.wait_closed() for _, writer in opened), return_exceptions=True)


async def ended(line: Line, within_s: float = 5.0) -> bytes:
    """What the other side said before it hung up."""
    async with asyncio.timeout(within_s):
        with contextlib.suppress(ConnectionError):
            return await line[0].read()
    return b""


async def drip(line: Line, text: bytes, every_s: float) -> None:
    with contextlib.suppress(ConnectionError):
        for byte in text:
            line[1].write(bytes([byte]))
            await asyncio.sleep(every_s)


async def says_hello(line: Line) -> bool:
    line[1].write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    async with asyncio.timeout(5):
        head = await line[0].readuntil(b"\r\n\r\n")
        await line[0].readexactly(5)
    return head.startswith(b"HTTP/1.1 200")


async def test_a_head_that_comes_drop_by_drop_has_one_deadline(connect: Connect) -> None:
    async with hello(ConnectionLimits(head_s=0.3)) as port:
        began, line = time.monotonic(), await connect(port)
        dripping = asyncio.create_task(drip(line, b"GET / HTTP/1.1\r\nX: " + b"x" * 500, 0.05))
        await ended(line)
        assert 0.2 < time.monotonic() - began < 3
        dripping.cancel()


async def test_who_has_asked_is_not_held_to_the_deadline_of_the_first_head(connect: Connect) -> None:
    async with hello(ConnectionLimits(head_s=0.2)) as port:
        line, silent_line = await connect(port), await connect(port)
        assert await says_hello(line)
        await ended(silent_line)
        assert await says_hello(line)


async def test_an_idle_line_ends_after_a_while(monkeypatch: pytest.MonkeyPatch, connect: Connect) -> None:
    monkeypatch.setattr(connections, "IDLE_S", 0.3)
    async with hello(ConnectionLimits()) as port:
        line = await connect(port)
        assert await says_hello(line)
        dripping = asyncio.create_task(drip(line, b"GET / HTTP/1.1\r\nX: " + b"x" * 500, 0.05))
        assert await ended(line) == b""
        dripping.cancel()


async def test_the_silent_make_room_for_who_asks(connect: Connect) -> None:
    async with hello(ConnectionLimits(total=5)) as port:
        asking = await connect(port)
        assert await says_hello(asking)
        lines = [await connect(port) for _ in range(12)]
        assert await says_hello(asking), "who has asked stays"
        assert await says_hello(lines[-1]), "the newest comes in"
        for line in lines[:8]:
            assert await ended(line) == b""


async def test_an_address_has_no_more_than_its_share_and_gets_it_back(connect: Connect) -> None:
    async with hello(ConnectionLimits(per_address=3)) as port:
        lines = [await connect(port) for _ in range(3)]
        assert all([await says_hello(line) for line in lines])
        refusal = await ended(await connect(port))
        assert refusal.startswith(b"HTTP/1.1 429")
        assert b"TOO_MANY_REQUESTS" in refusal
        assert all([await says_hello(line) for line in lines])
        lines[0][1].close()
        await lines[0][1].wait_closed()
        while not (line := await connect(port))[0].at_eof():
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                if await says_hello(line):
                    break


@contextlib.asynccontextmanager
async def gateway(server: RunningServer, folder: Path, **own: object) -> AsyncIterator[Gateway]:
    settings = Settings(
        profile="lan",
        data=folder,
        api_token=TOKEN,
        gateway=GatewaySettings(**own),  # type: ignore[arg-type]
    )
    async with open_gateway(server.url, settings) as opened:
        yield opened


async def test_a_gateway_caps_an_address_but_not_its_own_proxy(
    server: RunningServer, tmp_path: Path, connect: Connect
) -> None:
    async with gateway(server, tmp_path, connections_per_address=4) as capped:
        lines = [await connect(capped.address[1]) for _ in range(4)]
        assert (await ended(await connect(capped.address[1]))).startswith(b"HTTP/1.1 429")
        for line in lines:
            line[1].close()
    behind = {"connections_per_address": 4, "trusted_proxies": "127.0.0.0/8"}
    async with gateway(server, tmp_path, **behind) as proxied:
        lines = [await connect(proxied.address[1]) for _ in range(20)]
        for line in lines:
            line[1].write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert (await ended(line)).startswith(b"HTTP/1.1 200")


async def test_who_shows_a_good_token_is_not_counted(
    server: RunningServer, tmp_path: Path, connect: Connect
) -> None:
    async with gateway(server, tmp_path, connections_per_address=3) as opened:
        for token, expected in [(TOKEN, b"200")] * 10 + [("wrong", b"401")] * 3:
            line = await connect(opened.address[1])
            line[1].write(
                f"GET /sd/v1/instances HTTP/1.1\r\nHost: x\r\nX-API-Token: {token}\r\n\r\n".encode()
            )
            async with asyncio.timeout(5):
                assert expected in await line[0].readline()
        assert (await ended(await connect(opened.address[1]))).startswith(b"HTTP/1.1 429")


HEAD = "POST {path} HTTP/1.1\r\nHost: x\r\nX-API-Token: {token}\r\nContent-Length: 500\r\n\r\n"


async def test_a_body_that_comes_drop_by_drop_has_one_deadline(
    server: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect
) -> None:
    monkeypatch.setattr(body, "BODY_S", 0.4)
    async with gateway(server, tmp_path) as opened:
        began, line = time.monotonic(), await connect(opened.address[1])
        line[1].write(HEAD.format(path="/sd/v1/instances", token=TOKEN).encode())
        dripping = asyncio.create_task(drip(line, b" " * 500, 0.05))
        answer = await ended(line)
        assert answer.startswith(b"HTTP/1.1 408")
        assert b"REQUEST_TIMEOUT" in answer
        assert time.monotonic() - began < 4
        dripping.cancel()


async def test_an_address_is_limited_before_its_body_is_read(
    server: RunningServer, tmp_path: Path, connect: Connect
) -> None:
    settings = settings_for(tmp_path, queue=QueueSettings(ip_per_second=1))
    async with open_gateway(server.url, settings) as opened:
        for _ in range(2):
            await opened.ask("POST", "/api/queue/entry", {"userId": "ann"})
        line = await connect(opened.address[1])
        line[1].write(b"POST /api/queue/entry HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
        async with asyncio.timeout(2):
            assert (await line[0].readline()).startswith(b"HTTP/1.1 429")
        line[1].close()
