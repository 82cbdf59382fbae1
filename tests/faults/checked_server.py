"""A game server that can be asked for its health: `python -m tests.faults.checked_server URL SERVER_ID`.

Prints one line of JSON once it is registered, and beats until it is killed. SIGUSR1 closes the port where it
answers, SIGUSR2 opens it again; its beats go on all the while.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys

import roost
from roost.testing import free_port

TTL_S = 30.0
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER)
        await writer.drain()
    writer.close()


class Port:
    """Where it answers, while it does."""

    def __init__(self) -> None:
        self.number = free_port()
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(answer, "127.0.0.1", self.number)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None


async def main(url: str, server_id: str) -> None:
    port = Port()
    await port.open()
    async with roost.connect(url, ttl_seconds=TTL_S, cache_folder="/nowhere", sweeps=False) as client:
        registered = await client.register(
            type="game",
            group="kr-1",
            server_id=server_id,
            private_ip="127.0.0.1",
            ports={"main": port.number},
            health={"kind": "http", "port": "main", "path": "/health"},
        )
        client.start_auto_heartbeat(registered.instance_id)
        orders: asyncio.Queue[int] = asyncio.Queue()
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            asyncio.get_running_loop().add_signal_handler(number, orders.put_nowait, number)
        print(json.dumps({"instanceId": registered.instance_id}), flush=True)
        while True:
            await (port.close() if await orders.get() == signal.SIGUSR1 else port.open())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
