"""The peer of bench_orders.py: an order server as one would write it in an afternoon.

orders_naive.py STORE_URL [asyncio]    prints its port

JSON lines over asyncio streams, a queue and a task for each symbol, a stream for each shard, one XADD by
redis-py for each command, and the answer after it. It leaves out what would cost it more: no numbers of
clients, no fills pushed, no receipts, no index, no database, no owner but this process; ids are a counter.
It runs on uvloop, or on asyncio's own loop.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import zlib
from typing import Any

import uvloop

from report import need

try:
    import redis.asyncio
except ImportError:
    need("redis")

SHARDS = 16
MAX_CONNECTIONS = 2048
"""One for each XADD under way; beyond the default of 100 redis-py raises."""
BUY = 1
REFUSED, OPEN, FILLED, CANCELLED = 0, 1, 2, 3


class Book:
    """Orders of one symbol: by side and price, the oldest first. An order is [id, price, left]."""

    def __init__(self) -> None:
        self.sides: tuple[dict[int, list[list[int]]], dict[int, list[list[int]]]] = ({}, {})
        self.orders: dict[int, tuple[dict[int, list[list[int]]], list[int]]] = {}

    def new(self, order_id: int, side: int, price: int, quantity: int) -> int:
        own, other = self.sides if side == BUY else self.sides[::-1]
        while quantity and other:
            best = min(other) if side == BUY else max(other)
            if best > price if side == BUY else best < price:
                break
            level = other[best]
            while quantity and level:
                traded = min(quantity, level[0][2])
                quantity -= traded
                level[0][2] -= traded
                if not level[0][2]:
                    del self.orders[level.pop(0)[0]]
            if not level:
                del other[best]
        if not quantity:
            return FILLED
        order = [order_id, price, quantity]
        own.setdefault(price, []).append(order)
        self.orders[order_id] = (own, order)
        return OPEN

    def cancel(self, order_id: int) -> int:
        if order_id not in self.orders:
            return REFUSED
        side, order = self.orders.pop(order_id)
        side[order[1]].remove(order)
        if not side[order[1]]:
            del side[order[1]]
        return CANCELLED


class Naive:
    def __init__(self, url: str) -> None:
        self._redis = redis.asyncio.from_url(url, max_connections=MAX_CONNECTIONS)
        self._ids = itertools.count(1)
        self._queues: dict[str, asyncio.Queue[tuple[dict[str, Any], asyncio.StreamWriter]]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            command = json.loads(line)
            symbol = command["symbol"]
            if symbol not in self._queues:
                self._queues[symbol] = asyncio.Queue()
                self._tasks.append(asyncio.create_task(self._work(symbol)))
            self._queues[symbol].put_nowait((command, writer))

    async def _work(self, symbol: str) -> None:
        book, queue = Book(), self._queues[symbol]
        stream = f"naive:{zlib.crc32(symbol.encode()) % SHARDS}"
        while True:
            command, writer = await queue.get()
            if command["op"] == "new":
                order_id = next(self._ids)
                state = book.new(order_id, command["side"], command["price"], command["quantity"])
            else:
                order_id = command["order"]
                state = book.cancel(order_id)
            command["order"] = order_id
            await self._redis.xadd(stream, {"command": json.dumps(command)})
            reply = {"id": command["id"], "order": order_id, "state": state}
            writer.write(json.dumps(reply).encode() + b"\n")


async def serve(url: str) -> None:
    server = await asyncio.start_server(Naive(url).connected, "127.0.0.1", 0)
    print("ready", server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    run = asyncio.run if sys.argv[2:] == ["asyncio"] else uvloop.run
    run(serve(sys.argv[1]))
