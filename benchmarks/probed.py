"""Where the instances of a benchmark answer their health checks: in a process of its own, as servers do."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import cast

import uvloop

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class _Answers(asyncio.Protocol):
    answered = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        _Answers.answered += 1
        self._transport.write(ANSWER)
        self._transport.close()


class Target:
    """One port that stands for the health port of a whole fleet."""

    def __init__(self, port: int, line: Connection) -> None:
        self.port = port
        self._line = line

    def answered(self) -> int:
        """How many probes it has answered by now."""
        self._line.send(None)
        count: int = self._line.recv()
        return count


@contextlib.contextmanager
def run_target() -> Iterator[Target]:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_run, args=(theirs,), daemon=True)
    process.start()
    try:
        yield Target(ours.recv(), ours)
    finally:
        process.terminate()
        process.join()


def _run(line: Connection) -> None:
    uvloop.run(_serve(line))


async def _serve(line: Connection) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Answers, "127.0.0.1", 0, backlog=1024)
    line.send(server.sockets[0].getsockname()[1])

    def tell() -> None:
        line.recv()
        line.send(_Answers.answered)

    loop.add_reader(line.fileno(), tell)
    await server.serve_forever()
