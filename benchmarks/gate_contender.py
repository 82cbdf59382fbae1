"""Parts of bench_gate.py, each a process: the peer's echo server, and the clients that load either of them.

The clients speak WebSocket by hand, on a plain protocol: what they cost is the same for both contenders, and
less than a client library would.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import quantiles
from urllib.parse import urlsplit

import uvloop
from aiohttp import WSMsgType, web

CONNECT_AT_ONCE = 50
MESSAGE = json.dumps({"body": "count"}).encode().ljust(64)
"""What clients of either contender send."""
MASK = b"\x00\x00\x00\x00"
"""A mask of zeros is a valid one, and leaves the bytes as they are."""


# -- the peer


async def echo(request: web.Request) -> web.WebSocketResponse:
    ws = web.WebSocketResponse(compress=False, heartbeat=20.0)
    await ws.prepare(request)
    async for message in ws:
        if message.type is WSMsgType.TEXT:
            await ws.send_str(message.data)
    return ws


async def serve_echo(port: int) -> None:
    app = web.Application()
    app.router.add_get("/", echo)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=1024).start()
    print("ready", flush=True)
    await asyncio.Event().wait()


# -- the clients


def frame(text: bytes) -> bytes:
    """A masked text frame."""
    size = len(text)
    head = bytes((0x81, 0x80 | size)) if size < 126 else bytes((0x81, 0x80 | 126)) + size.to_bytes(2, "big")
    return head + MASK + text


class Client(asyncio.Protocol):
    """One connection: a handshake, perhaps a login, then a message at a time, or as told."""

    def __init__(self, login: str, text: bytes) -> None:
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.on_reply: Callable[[Client], None] | None = None
        self.sent_at: list[float] = []
        self._login = login
        self._message = frame(text)
        self._buffer = b""
        self._is_upgraded = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        key = base64.b64encode(os.urandom(16)).decode()
        self._write(
            f"GET / HTTP/1.1\r\nHost: bench\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )

    def _write(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)

    def send(self) -> None:
        self._write(self._message)

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer + data if self._buffer else data
        if not self._is_upgraded:
            head, end, buffer = buffer.partition(b"\r\n\r\n")
            if not end:
                self._buffer = head
                return
            self._is_upgraded = True
            self._upgraded()
        at, size = 0, len(buffer)
        while size - at >= 2:
            length, start = buffer[at + 1] & 127, at + 2
            if length == 126:
                length, start = int.from_bytes(buffer[at + 2 : at + 4], "big"), at + 4
            if start + length > size or (start > size):
                break
            opcode = buffer[at] & 15
            self._heard(opcode, buffer[start : start + length])
            at = start + length
        self._buffer = buffer[at:]

    def connection_lost(self, error: Exception | None) -> None:
        if not self.ready.done():
            self.ready.set_exception(ConnectionError("cut before it was ready"))

    def _upgraded(self) -> None:
        if self._login:
            self._write(frame(json.dumps({"login": self._login}).encode()))
        else:
            self.ready.set_result(None)

    def _heard(self, opcode: int, data: bytes) -> None:
        if opcode == 9:
            self._write(bytes((0x8A, 0x80 | len(data))) + MASK + data)
        elif opcode == 1:
            if not self.ready.done():
                if b'"welcome"' not in data:
                    sys.exit(f"no welcome: {data[:300]!r}")
                self.ready.set_result(None)
            elif b'"error"' in data:
                sys.exit(f"an error: {data[:300]!r}")
            elif self.on_reply is not None:
                self.on_reply(self)


async def connect(url: str, count: int, logins: bool) -> list[Client]:
    parts, loop, clients = urlsplit(url), asyncio.get_running_loop(), list[Client]()
    for start in range(0, count, CONNECT_AT_ONCE):
        batch = []
        for number in range(start, min(start + CONNECT_AT_ONCE, count)):
            login = f"dev:bench-{number}" if logins else ""
            made = partial(Client, login, MESSAGE)
            _, client = await loop.create_connection(made, parts.hostname or "", parts.port or 80)
            batch.append(client)
        await asyncio.gather(*(client.ready for client in batch))
        clients += batch
    return clients


async def closed_loop(clients: list[Client], seconds: float) -> float:
    """Every client sends as soon as it has its reply; replies per second."""
    replies, running = 0, True

    def on_reply(client: Client) -> None:
        nonlocal replies
        replies += 1
        if running:
            client.send()

    for client in clients:
        client.on_reply = on_reply
        client.send()
    started = time.perf_counter()
    await asyncio.sleep(seconds)
    count, took = replies, time.perf_counter() - started
    running = False
    await asyncio.sleep(0.5)
    return count / took


async def open_loop(clients: list[Client], per_second: float, seconds: float) -> tuple[float, float]:
    """Messages leave on a schedule, whatever comes back; p50 and p99 of the time to the reply, in ms."""
    took: list[float] = []

    def on_reply(client: Client) -> None:
        took.append(time.perf_counter() - client.sent_at.pop(0))

    for client in clients:
        client.on_reply, client.sent_at = on_reply, []
    started = time.perf_counter()
    total = int(per_second * seconds)
    sent = 0
    while sent < total:
        due = min(total, int((time.perf_counter() - started) * per_second) + 1)
        for number in range(sent, due):
            client = clients[number % len(clients)]
            client.sent_at.append(started + number / per_second)  # when it was due, not when it got its turn
            client.send()
        sent = due
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.5)
    cuts = quantiles(took, n=100)
    return cuts[49] * 1000, cuts[98] * 1000


async def drive(url: str, count: int, logins: bool) -> None:
    """Do what the lines on standard input say."""
    clients = await connect(url, count, logins)
    print("ready", flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        what, *numbers = line.split()
        if what == "closed":
            print(await closed_loop(clients, float(numbers[0])), flush=True)
        else:
            p50, p99 = await open_loop(clients, float(numbers[0]), float(numbers[1]))
            print(f"{p50} {p99}", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "echo":
        uvloop.run(serve_echo(int(sys.argv[2])))
    else:
        uvloop.run(drive(sys.argv[2], int(sys.argv[3]), sys.argv[4] == "gate"))
