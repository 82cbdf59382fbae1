"""Discovery over HTTP beside etcd: requests per second, and per second of the server's processor time."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

import etcd
from http_load import Load, Work, ask, request
from probed import Target, run_target
from report import Case
from roost.api.discovery import HealthCheck, RegisterInput
from roost.testing import free_port, wait_until

ROUNDS = 5
ROUND_S = 2.0
WARM_UP_S = 0.5
CONNECTIONS = 64
TTL_S = 3600
"""Nobody shall expire while we measure, here or there."""
LISTED = 10

PROMISED = {"etcd": 1.2}
PROMISED_PER_CPU = {"HTTP read": {"etcd": 2.0}, "HTTP register": {"etcd": 2.0}}

METHOD = (
    f"HTTP: {CONNECTIONS} kept connections, each with one request under way, from one generator for all "
    f"contenders; {ROUNDS} rounds of {ROUND_S:g} s in turns, the median counts. Ours: `roost up`, one "
    f"gateway with its token check and its health checker, and its valkey-server over a unix socket; both "
    f"count. Every instance declares an HTTP check, which a process beside them answers. etcd: one "
    f"member, its HTTP/JSON gateway (which speaks gRPC to itself; native gRPC saves that hop), no "
    f"authentication. register: one POST here; lease grant and put there, which count as one. read: "
    f"{LISTED} instances as JSON; etcd holds the same JSON. Our list comes from the gateway's memory while "
    f"the feed proves it current (beat times up to 1 s old); an etcd read is linearizable. DURABILITY "
    f"DIFFERS: etcd answers a write after its Raft log is fsynced; our store writes its append-only file on "
    f"each write and fsyncs it once a second, so a power cut can cost the last second (instances then "
    f"register again by themselves). The column `etcd eased` takes these costs from etcd: "
    f"--unsafe-no-fsync and serializable reads. Nothing is promised against that one."
)


@dataclass(frozen=True)
class Gateway:
    port: int
    token: str
    pids: tuple[int, int]


@dataclass(frozen=True)
class Contender:
    load: Load
    register: Work
    read: Work


def sample(type_: str = "game", group: str = "kr-1", **more: object) -> RegisterInput:
    """A record of ordinary size, about half a kilobyte."""
    given = RegisterInput(
        type=type_,
        group=group,
        hostname="game-7f9c4d-x2x9k.prod.example.net",
        public_ip="203.0.113.57",
        private_ip="10.12.7.91",
        ports={"udp": 7777, "http": 8080},
        capacity=2000,
        load=412,
        version="1.24.3+build.5512",
        zone="ap-northeast-2a",
        labels={"map": "harbour", "mode": "ranked", "fleet": "blue"},
        health=HealthCheck("http", "http", "/healthz"),
        system_info={"os": "linux", "cpus": 16, "memoryMb": 65536},
        performance={"cpu": 41.5, "tickMs": 16.6},
        ttl_seconds=TTL_S,
    )
    return msgspec.structs.replace(given, **more)


def checked(target: Target, type_: str = "game", group: str = "kr-1") -> RegisterInput:
    """The same with a health check that is answered."""
    return sample(type_, group, private_ip="127.0.0.1", ports={"udp": 7777, "http": target.port})


@contextlib.contextmanager
def run_gateway() -> Iterator[Gateway]:
    """`roost up` in a folder that goes with it."""
    with tempfile.TemporaryDirectory(prefix="roost-bench-") as folder:
        data, port = Path(folder) / "data", free_port()
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ROOST_")}
        command = [sys.executable, "-m", "roost", "up", "--no-demo", "--port", str(port), "--data", str(data)]
        with open(Path(folder) / "log", "wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=kept)
        try:
            wait_until((data / "up.json").exists, "roost up", (Path(folder) / "log").read_text)
            store: int = json.loads((data / "store/server.json").read_text())["pid"]
            yield Gateway(port, (data / "token").read_text().strip(), (process.pid, store))
        finally:
            process.terminate()
            process.wait(30)


def registering(gateway: Gateway, given: RegisterInput) -> Work:
    asked = request("POST", "/sd/v1/instances", msgspec.json.encode(given), gateway.token)

    def work() -> Generator[bytes, bytes, None]:
        yield asked

    return work


def reading(gateway: Gateway, replies: list[bytes] | None = None) -> Work:
    asked = request("GET", "/sd/v1/instances?type=game&group=kr-1", token=gateway.token)

    def work() -> Generator[bytes, bytes, None]:
        reply = yield asked
        if replies is not None:
            replies.append(reply)

    return work


async def contenders(stack: contextlib.AsyncExitStack) -> dict[str, Contender]:
    """All servers up, the same ten instances in each, all connections open."""
    gateway = stack.enter_context(run_gateway())
    target = stack.enter_context(run_target())
    peers = {
        "etcd": stack.enter_context(etcd.run_etcd()),
        "etcd eased": stack.enter_context(etcd.run_etcd("--unsafe-no-fsync")),
    }
    for _ in range(LISTED):
        await ask(gateway.port, registering(gateway, checked(target)))
    replies: list[bytes] = []
    await ask(gateway.port, reading(gateway, replies))
    records = [bytes(record) for record in msgspec.json.decode(replies[0], type=_Listed).instances]
    assert len(records) == LISTED

    new = checked(target, "load")
    ours = Load(gateway.port, gateway.pids, CONNECTIONS)
    found = {"ours": Contender(ours, registering(gateway, new), reading(gateway))}
    for name, peer in peers.items():
        await ask(peer.port, etcd.filling(records))
        load = Load(peer.port, [peer.pid], CONNECTIONS)
        register = etcd.registering(msgspec.json.encode(new), TTL_S)
        found[name] = Contender(load, register, etcd.reading(serializable=name == "etcd eased"))
    for contender in found.values():
        await contender.load.open()
        stack.callback(contender.load.close)
    return found


class _Listed(msgspec.Struct):
    instances: list[msgspec.Raw]


async def measure(name: str, works: dict[str, tuple[Load, Work]]) -> list[Case]:
    rate, per_cpu = Case(name, PROMISED), Case(f"{name}, per CPU second", PROMISED_PER_CPU[name])
    for load, work in works.values():
        await load.measure(work, WARM_UP_S)
    for number in range(1, ROUNDS + 1):
        print(f"{name}: round {number} of {ROUNDS}", flush=True)
        for contender, (load, work) in works.items():
            cost = await load.measure(work, ROUND_S)
            rate.add(contender, cost.per_second)
            per_cpu.add(contender, cost.per_cpu_second)
    return [rate, per_cpu]


async def main() -> list[Case]:
    async with contextlib.AsyncExitStack() as stack:
        found = await contenders(stack)
        return [
            *await measure("HTTP read", {name: (c.load, c.read) for name, c in found.items()}),
            *await measure("HTTP register", {name: (c.load, c.register) for name, c in found.items()}),
        ]
