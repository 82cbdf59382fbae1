"""What do traces cost a request: switched off, on for somebody else, and on for this one?"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import NamedTuple

from http_load import Load, Work, cpu_seconds, request
from report import Case, need, publish, result_file
from roost.testing import free_port, run_valkey

try:
    import opentelemetry.sdk.trace  # noqa: F401
except ImportError:
    need("opentelemetry-sdk")

ROUNDS = 5
REQUESTS, SAMPLED_REQUESTS = 60_000, 10_000
CONNECTIONS = 64
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
TOKEN = "a-token-for-the-benchmark"
LIST = request("GET", "/sd/v1/instances?verify=false", token=TOKEN)
CONTEXT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"
QUEUE = "100000"
"""More than wait: a span that is dropped would be one that costs less."""
QUIET_S = 1.2
"""Spans leave at least once a second."""

METHOD = (
    "two `roost gateway` on one throwaway valkey-server, one with tracing off and one with it on "
    f"(ROOST_TRACING__PER_MILLION=1); {CONNECTIONS} kept connections ask for the list of instances "
    f"(empty, from memory) {REQUESTS:,} times. `ours` is the gateway with tracing off; on, requests "
    f"bring no context, one that is not sampled, or one that is ({SAMPLED_REQUESTS:,} times): then each "
    f"is a span, sent to a collector that takes everything. They take turns within each of {ROUNDS} "
    "rounds, the median counts. CPU seconds are those of the gateway until it is quiet again, so with "
    "the thread that sends; the collector and the load are processes of their own."
)


def asking(flags: str = "") -> Work:
    """The request, with a context of these flags if there are any."""
    whole = (
        LIST.replace(b"\r\n\r\n", f"\r\ntraceparent: {CONTEXT}-{flags}\r\n\r\n".encode()) if flags else LIST
    )

    def ask() -> Generator[bytes, bytes, None]:
        yield whole

    return ask


class Collector(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None: ...


def collect(told: Connection) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    told.send(server.server_address[1])
    server.serve_forever()


@contextmanager
def collector() -> Iterator[str]:
    told, tells = get_context("spawn").Pipe(duplex=False)
    process = get_context("spawn").Process(target=collect, args=(tells,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{told.recv()}"
    finally:
        process.kill()
        process.join()


class Gateway(NamedTuple):
    port: int
    pids: tuple[int, ...]


@contextmanager
def gateway(store: str, **settings: str) -> Iterator[Gateway]:
    port = free_port()
    with tempfile.TemporaryDirectory() as data:
        command = [sys.executable, "-m", "roost", "gateway", "--port", str(port)]
        own = {"ROOST_DATA": data, "ROOST_API_TOKEN": TOKEN, "ROOST_STORE": store} | settings
        process = subprocess.Popen(command, env=os.environ | own, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            assert "is up" in process.stdout.readline()
            yield Gateway(port, (process.pid,))
        finally:
            process.terminate()
            process.wait()


async def per_cpu_second(server: Gateway, load: Load, work: Work, requests: int) -> float:
    before = cpu_seconds(server.pids)
    await load.count(work, requests)
    used = cpu_seconds(server.pids)
    while True:  # what is left to be sent is paid by who made it
        await asyncio.sleep(QUIET_S)
        last, used = used, cpu_seconds(server.pids)
        if used - last <= 2 * TICK_S:
            return requests / (last - before)


async def main() -> int:
    cost = Case("requests per CPU second, tracing off")
    with run_valkey() as valkey, collector() as url:
        settings = {"PER_MILLION": "1", "ENDPOINT": url, "QUEUE": QUEUE}
        traced = {f"ROOST_TRACING__{name}": value for name, value in settings.items()}
        with gateway(valkey.url) as off, gateway(valkey.url, **traced) as on:
            loads = {server: Load(server.port, server.pids, CONNECTIONS) for server in (off, on)}
            contenders = {
                "ours": (off, asking(), REQUESTS),
                "on, no context": (on, asking(), REQUESTS),
                "on, not sampled": (on, asking("00"), REQUESTS),
                "on, sampled": (on, asking("01"), SAMPLED_REQUESTS),
            }
            for load in loads.values():
                await load.open()
                await load.count(asking(), SAMPLED_REQUESTS)
            for _ in range(ROUNDS):
                for name, (server, work, requests) in contenders.items():
                    cost.add(name, await per_cpu_second(server, loads[server], work, requests))
            for load in loads.values():
                load.close()
    return publish("tracing", "requests", METHOD, [cost], result_file())


if __name__ == "__main__":
    import uvloop

    sys.exit(uvloop.run(main()))
