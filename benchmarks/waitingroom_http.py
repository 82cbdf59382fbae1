"""Asking for one's place over HTTP: how much of what the gateway could answer at most is left."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import tempfile
from base64 import b64encode
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from multiprocessing.connection import Connection
from pathlib import Path

import uvloop
from aiohttp import web

from discovery_store import calls_of_scripts, open_store
from http_load import Load, Work
from report import Case, Figure
from roost.api import Message
from roost.api.queue import RECEIPT_HEADER
from roost.app import open_platform
from roost.core.passes import Passes, Receipt
from roost.core.signing import parse_keys
from roost.gateway.routes.queue import StatusQuery
from roost.gateway.server import build_app
from roost.settings import Settings
from roost.store import scopes
from roost.store.keys.waitingroom import world_keys
from roost.store.store import Store
from roost.testing import RunningServer, free_port, run_valkey
from roost.waitingroom.settings import QueueSettings
from roost.web.listen import bind, serve
from roost.web.route import Request, Route
from waitingroom_store import fill, room_in

ROUNDS = 5
ROUND_S = 2.0
WARM_UP_S = 0.5
PAUSE_S = 0.5
"""Between two contenders: what a far poll leaves to be told later is told by then."""
CONNECTIONS = 64
LINE = 50_000
NEAR = range(1000)
FAR = range(5000, LINE)
PER_SECOND_MILLI = 100_000
"""How fast the line is said to move, so that every answer holds an estimate."""

PROMISED_NEAR = {"ceiling": 0.55}
PROMISED_FAR = {"ceiling": 0.60}
"""Per CPU second of the gateway; the goal stays 0.70 near and 0.90 far."""

METHOD = (
    f"Polls: one gateway process, and a valkey-server with append-only file over a unix socket; "
    f"{CONNECTIONS} kept connections, each with one request under way, from a generator in a process of its "
    f"own; {ROUNDS} rounds of {ROUND_S:g} s in turns, the median counts. {LINE:,} people wait. near: GET "
    f"/api/queue/status with the receipt of one of the first {len(NEAR):,}, which is one script. far: the "
    f"same of one of the {len(FAR):,} behind number {FAR.start:,}, told from receipt and board; that they "
    f"were there is told to the store later, and counts. Every answer holds a new signed receipt. ceiling: a "
    f"route of the same process, so with the same edge (request id, metrics, error table), that gets "
    f"the same query and answers with one ZRANK. aiohttp: a handler with a constant, in a process without "
    f"our edge; aiohttp ZRANK: one ZRANK through our link there. The limits per person and address are "
    f"raised, not off. No manager runs. `per CPU second` counts the web process alone."
)

Contender = tuple[Load, Work]


class RankReply(Message):
    rank: int


@dataclass(frozen=True)
class Child:
    port: int
    pid: int


@dataclass(frozen=True)
class Config:
    """What a web process is started with."""

    store: str
    port: int
    folder: str
    keys: str

    def settings(self) -> Settings:
        queue = QueueSettings(user_per_second=200, user_burst=400, ip_per_second=1_000_000)
        data = Path(self.folder)
        return Settings(
            store=self.store,
            data=data,
            api_token="only-for-benchmarks",
            queue_keys=self.keys,
            ticket_keys=self.keys,
            queue=queue,
        )


# -- the web processes


async def run_gateway(config: Config, ready: Connection) -> None:
    async with open_platform(config.settings(), roles=("gateway",)) as platform:
        store = platform.store

        async def ceiling(request: Request) -> RankReply:
            asked: StatusQuery = request.query
            key = world_keys(store.keys, scopes.world(asked.world))["waiting"]
            return RankReply(await store.call("ZRANK", key, asked.user_id, key=key, idempotent=True))

        route = Route("GET", "/bench/rank", ceiling, "One ZRANK", query=StatusQuery, reply=RankReply)
        await serve(build_app(platform, [route]), bind("127.0.0.1", config.port))
        ready.send(True)
        await asyncio.Event().wait()


async def run_bare(config: Config, ready: Connection) -> None:
    settings = config.settings()
    store = await Store.open(settings.store_url)
    key = world_keys(store.keys, scopes.world("main"))["waiting"]

    async def constant(http: web.Request) -> web.Response:
        return web.Response(body=b'{"rank":17}', content_type="application/json")

    async def rank(http: web.Request) -> web.Response:
        found = await store.call("ZRANK", key, http.query["userId"], key=key, idempotent=True)
        return web.Response(body=b'{"rank":%d}' % found, content_type="application/json")

    app = web.Application()
    app.router.add_get("/constant", constant)
    app.router.add_get("/rank", rank)
    await serve(app, bind("127.0.0.1", config.port))
    ready.send(True)
    await asyncio.Event().wait()


Program = Callable[[Config, Connection], Awaitable[None]]


def run_in_process(program: Program, config: Config, ready: Connection) -> None:
    uvloop.run(program(config, ready))  # type: ignore[arg-type]


@contextlib.contextmanager
def web_process(program: Program, server: RunningServer, keys: str) -> Iterator[Child]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    with tempfile.TemporaryDirectory(prefix="roost-bench-") as folder:
        config = Config(server.unix_url, free_port(), folder, keys)
        child = context.Process(target=run_in_process, args=(program, config, theirs), daemon=True)
        child.start()
        try:
            ours.recv()
            assert child.pid is not None
            yield Child(config.port, child.pid)
        finally:
            child.kill()
            child.join()


# -- what is asked


def polls(receipts: Sequence[Receipt], passes: Passes) -> Work:
    """Each of these people in turn, with a receipt."""
    return cycling(
        [
            _get(f"/api/queue/status?userId={one.user}", f"{RECEIPT_HEADER}: {passes.sign_receipt(one)}\r\n")
            for one in receipts
        ]
    )


def cycling(requests: Sequence[bytes]) -> Work:
    endless = cycle(requests)

    def work() -> Generator[bytes, bytes, None]:
        yield next(endless)

    return work


def _get(path: str, headers: str = "") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}\r\n".encode()


async def people(server: RunningServer, stack: contextlib.AsyncExitStack) -> list[Receipt]:
    """A line of people in the world `main`, which moves: their receipts show ranks that were larger."""
    store = await open_store(server.url, stack)
    room = room_in(store)
    places = await fill(room, range(LINE))
    await store.call(
        "HSET",
        world_keys(store.keys, room.scope)["world"],
        "fast",
        PER_SECOND_MILLI,
        "slow",
        PER_SECOND_MILLI,
    )
    born = (await room.read_board()).born
    return [
        Receipt(room.world, user, born, place.seq, place.line, place.rank + LINE) for user, place in places
    ]


async def contenders(server: RunningServer, stack: contextlib.AsyncExitStack) -> dict[str, Contender]:
    keys = "bench:" + b64encode(os.urandom(32)).decode()
    passes = Passes(parse_keys(keys), parse_keys(keys))
    receipts = await people(server, stack)
    loads = []
    for program in (run_gateway, run_bare):
        child = stack.enter_context(web_process(program, server, keys))
        loads.append(Load(child.port, [child.pid], CONNECTIONS))
        await loads[-1].open()
        stack.callback(loads[-1].close)
    gateway, bare = loads
    near, far = [receipts[n] for n in NEAR], [receipts[n] for n in FAR]
    users = [f"?userId={one.user}" for one in near]
    return {
        "ceiling": (gateway, cycling([_get(f"/bench/rank{user}") for user in users])),
        "near": (gateway, polls(near, passes)),
        "far": (gateway, polls(far, passes)),
        "aiohttp": (bare, cycling([_get("/constant")])),
        "aiohttp ZRANK": (bare, cycling([_get(f"/rank{user}") for user in users])),
    }


# -- the measurement


async def measure(server: RunningServer, found: dict[str, Contender]) -> list[Case | Figure]:
    names = ("near", PROMISED_NEAR), ("far", PROMISED_FAR)
    rates = {name: Case(f"{name} poll") for name, _ in names}
    per_cpu = {name: Case(f"{name} poll, per CPU second", promised) for name, promised in names}
    scripts: dict[str, list[float]] = {name: [] for name in found}
    for load, work in found.values():
        await load.measure(work, WARM_UP_S)
    for number in range(1, ROUNDS + 1):
        print(f"polls: round {number} of {ROUNDS}", flush=True)
        for name, (load, work) in found.items():
            before = calls_of_scripts(server)[0]
            cost = await load.measure(work, ROUND_S)
            scripts[name].append((calls_of_scripts(server)[0] - before) / (cost.per_second * ROUND_S))
            for cases, rate in ((rates, cost.per_second), (per_cpu, cost.per_cpu_second)):
                for one, case in cases.items():
                    if name in (one, "ceiling", "aiohttp", "aiohttp ZRANK"):
                        case.add("ours" if name == one else name, rate)
            await asyncio.sleep(PAUSE_S)
    assert min(scripts["near"]) > 0.001, "a near poll asks the store, along with others"
    return [
        *rates.values(),
        *per_cpu.values(),
        Figure("scripts for one far poll", "scripts", scripts["far"], most=0.05),
    ]


async def main() -> list[Case | Figure]:
    with run_valkey(persistent=True) as server:
        async with contextlib.AsyncExitStack() as stack:
            print(f"polls: {LINE:,} people enter", flush=True)
            return await measure(server, await contenders(server, stack))
