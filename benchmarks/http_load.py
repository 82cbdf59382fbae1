"""One load generator for every HTTP server: plain HTTP/1.1 over kept connections, and what the server paid.

A full client library would be the bottleneck; this one writes prepared bytes and looks only for the end of
the reply. A piece of work is a generator that yields requests and is sent the body of each reply.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

Work = Callable[[], Generator[bytes, bytes, None]]
"""Starts one piece of work: one or more requests that follow each other."""

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cost:
    """What one round gave and took."""

    per_second: float
    per_cpu_second: float


def request(method: str, path: str, body: bytes = b"", token: str = "") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    if token:
        head += f"X-API-Token: {token}\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def cpu_seconds(pids: Sequence[int]) -> float:
    """Processor time of all threads of the processes, and of children they have waited for."""
    ticks = 0
    for pid in pids:
        after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        ticks += sum(int(field) for field in after_name[11:15])
    return ticks / _TICKS


class Load:
    """`connections` that each have one piece of work under way, against one server."""

    def __init__(self, port: int, pids: Sequence[int], connections: int) -> None:
        self._port = port
        self._pids = pids
        self._count = connections
        self._lines: list[Line] = []

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(self._count):
            _, line = await loop.create_connection(Line, "127.0.0.1", self._port)
            self._lines.append(line)

    def close(self) -> None:
        for line in self._lines:
            line.close()

    async def count(self, work: Work, pieces: int) -> None:
        """Do so many pieces of the work, shared among the connections."""
        left = iter(range(pieces))

        async def repeat(line: Line) -> None:
            for _ in left:
                await line.repeat(work, 0.0)

        await asyncio.gather(*map(repeat, self._lines))

    async def measure(self, work: Work, seconds: float) -> Cost:
        """Repeat the work on every connection for so long; the last pieces are finished and counted."""
        loop = asyncio.get_running_loop()
        started, used = loop.time(), cpu_seconds(self._pids)
        done = await asyncio.gather(*(line.repeat(work, started + seconds) for line in self._lines))
        took, used = loop.time() - started, cpu_seconds(self._pids) - used
        return Cost(sum(done) / took, sum(done) / used)


async def ask(port: int, work: Work) -> None:
    """Do one piece of work on a connection of its own."""
    _, line = await asyncio.get_running_loop().create_connection(Line, "127.0.0.1", port)
    await line.repeat(work, 0.0)
    line.close()


class Line(asyncio.Protocol):
    """One connection; one request is under way at a time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._received = b""
        self._until = 0.0
        self._done = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def close(self) -> None:
        self._transport.close()

    def repeat(self, work: Work, until: float) -> asyncio.Future[int]:
        """How often the work was done when the time was over; at least once."""
        self._work, self._until, self._done = work, until, 0
        self._finished: asyncio.Future[int] = self._loop.create_future()
        self._begin()
        return self._finished

    def _begin(self) -> None:
        self._running = self._work()
        self._transport.write(next(self._running))

    def data_received(self, data: bytes) -> None:
        self._received += data
        body = body_of(self._received)
        if body is None:
            return
        if not self._received.startswith(b"HTTP/1.1 2"):
            self._finished.set_exception(RuntimeError(f"the server refused: {self._received[:500]!r}"))
            return
        self._received = b""
        try:
            self._transport.write(self._running.send(body))
        except StopIteration:
            self._done += 1
            if self._loop.time() < self._until:
                self._begin()
            else:
                self._finished.set_result(self._done)

    def connection_lost(self, error: Exception | None) -> None:
        if hasattr(self, "_finished") and not self._finished.done():
            self._finished.set_exception(error or ConnectionError("the server hung up"))


def body_of(received: bytes) -> bytes | None:
    """The body of a whole reply, with the marks of its chunks if it has them; None if more is to come."""
    head, end, body = received.partition(b"\r\n\r\n")
    if not end:
        return None
    if head.startswith(b"HTTP/1.1 204"):
        return b""
    _, found, rest = head.lower().partition(b"\r\ncontent-length:")
    if found:
        return body if len(body) >= int(rest.partition(b"\r\n")[0]) else None
    return body if body.endswith(b"0\r\n\r\n") else None
