"""One process of `bench_wire.py`: a server that echoes, or a client that is told what to do.

wire_contender.py serve ours|grpc asyncio|uvloop         prints its port
wire_contender.py drive ours|grpc asyncio|uvloop PORT    reads `<what> <callers> <seconds>`, prints rates
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import uvloop

from report import need
from roost.wire.client import Peer
from roost.wire.connection import Call
from roost.wire.server import Answer, WireServer

try:
    import grpc.aio
except ImportError:
    need("grpcio")

SECRET = b"only for this benchmark"
PAYLOAD = b"x" * 32
BUDGET_MS = 10_000
SERVICE, METHOD = 1, 1
PATH = "/bench.Wire/Echo"

Once = Callable[[], Awaitable[Any]]
"""One call and its reply."""


async def serve_ours() -> int:
    async def echo(call: Call) -> Answer:
        return Answer(call.payload)

    server = WireServer(secret=SECRET, role="entity")
    server.register(SERVICE, METHOD, echo)
    return (await server.start(("127.0.0.1", 0)))[1]


async def serve_grpc() -> int:
    """As its documentation advises; payloads are plain bytes, so that no protobuf is paid for."""

    async def echo(request: bytes, context: Any) -> bytes:
        return request

    method = grpc.unary_unary_rpc_method_handler(echo)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bench.Wire", {"Echo": method}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    serve_grpc.kept = server  # type: ignore[attr-defined]  # it stops when nobody holds it
    return int(port)


async def ours(port: int, connections: int) -> list[Once]:
    peers = [Peer("127.0.0.1", port, secret=SECRET, role="gate") for _ in range(connections)]
    await asyncio.gather(*(peer.connect() for peer in peers))
    return [_calling(peer) for peer in peers]


def _calling(peer: Peer) -> Once:
    return lambda: peer.call(SERVICE, METHOD, PAYLOAD, budget_ms=BUDGET_MS)


async def by_grpc(port: int, connections: int) -> list[Once]:
    options = [("grpc.use_local_subchannel_pool", 1)]  # else channels to one address share a connection
    channels = [grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options) for _ in range(connections)]
    await asyncio.gather(*(channel.channel_ready() for channel in channels))
    return [_asking(channel.unary_unary(PATH)) for channel in channels]


def _asking(method: Any) -> Once:
    return lambda: method(PAYLOAD, timeout=BUDGET_MS / 1000)


async def rate(calls: list[Once], callers: int, seconds: float) -> float:
    """Replies per second of callers that each have one call under way all the time."""
    replies = 0
    until = time.perf_counter() + seconds

    async def caller(once: Once) -> None:
        nonlocal replies
        while time.perf_counter() < until:
            await once()
            replies += 1

    started = time.perf_counter()
    await asyncio.gather(*(caller(calls[number % len(calls)]) for number in range(callers)))
    return replies / (time.perf_counter() - started)


async def rate_by_callback(port: int, callers: int, seconds: float) -> float:
    """`Peer.send`: neither future nor task on the way."""
    peer = Peer("127.0.0.1", port, secret=SECRET, role="gate")
    await peer.connect()
    replies, in_flight = 0, callers
    until = time.perf_counter() + seconds
    ended = asyncio.Event()

    def done(answer: Answer | Exception) -> None:
        nonlocal replies, in_flight
        if isinstance(answer, Exception):
            raise answer
        replies += 1
        if time.perf_counter() < until:
            peer.send(SERVICE, METHOD, PAYLOAD, budget_ms=BUDGET_MS, done=done)
        else:
            in_flight -= 1
            if not in_flight:
                ended.set()

    started = time.perf_counter()
    for _ in range(callers):
        peer.send(SERVICE, METHOD, PAYLOAD, budget_ms=BUDGET_MS, done=done)
    await ended.wait()
    await peer.close()
    return replies / (time.perf_counter() - started)


async def serve(kind: str) -> None:
    print(await (serve_ours() if kind == "ours" else serve_grpc()), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)  # until the parent ends


async def drive(kind: str, port: int) -> None:
    connect = ours if kind == "ours" else by_grpc
    one, many = await connect(port, 1), await connect(port, 64)
    loop = asyncio.get_running_loop()
    print("ready", flush=True)
    while order := await loop.run_in_executor(None, sys.stdin.readline):
        what, callers, seconds = order.split()
        if what == "callback":
            found = await rate_by_callback(port, int(callers), float(seconds))
        else:
            found = await rate(one if what == "one" else many, int(callers), float(seconds))
        print(found, flush=True)


if __name__ == "__main__":
    part, kind, loop_name, *rest = sys.argv[1:]
    run = uvloop.run if loop_name == "uvloop" else asyncio.run
    run(serve(kind) if part == "serve" else drive(kind, int(rest[0])))
