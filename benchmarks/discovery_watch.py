"""How long after a registration does a watcher know?"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from contextlib import AsyncExitStack
from multiprocessing.connection import Connection

import uvloop

from discovery_http import sample
from discovery_store import connect
from report import Figure
from roost.discovery.service import Discovery
from roost.testing import run_valkey

PROCESSES = 4
WATCHERS_EACH = 25
REGISTRATIONS = 250
PAUSE_S = 0.04

METHOD = (
    f"Watch: {PROCESSES * WATCHERS_EACH} watchers in {PROCESSES} processes, each with links of its own; "
    f"{REGISTRATIONS} registrations, one every {PAUSE_S * 1000:g} ms. A wait is from just before the call of "
    f"register until the watcher has the decoded change; `last` is the slowest watcher of each registration."
)

Seen = dict[str, list[int]]
"""Instance id → when each watcher had it, ns of the machine's monotonic clock."""


async def main() -> list[Figure]:
    with run_valkey(persistent=True) as server:
        print(f"watch: {REGISTRATIONS} registrations", flush=True)
        context = multiprocessing.get_context("spawn")
        pipes, children = [], []
        for _ in range(PROCESSES):
            ours, theirs = context.Pipe()
            child = context.Process(target=_watch_in_process, args=(server.url, theirs), daemon=True)
            child.start()
            pipes.append(ours)
            children.append(child)
        for pipe in pipes:
            pipe.recv()  # its watchers have their first snapshot
        called = await _register(server.url)
        seen = [pipe.recv() for pipe in pipes]
        for child in children:
            child.join()
    waits = {one: [ns - at for part in seen for ns in part[one]] for one, at in called.items()}
    assert all(len(found) == PROCESSES * WATCHERS_EACH for found in waits.values())
    everyone = sorted(wait / 1e6 for found in waits.values() for wait in found)
    last = sorted(max(found) / 1e6 for found in waits.values())
    return [
        Figure(f"register → watcher, {name}", "ms", [waited[int(len(waited) * share)]])
        for name, waited, share in (
            ("p50", everyone, 0.5),
            ("p99", everyone, 0.99),
            ("last of 100, p50", last, 0.5),
            ("last of 100, p99", last, 0.99),
        )
    ]


async def _register(url: str) -> dict[str, int]:
    """When the registration of each id was called."""
    called: dict[str, int] = {}
    async with AsyncExitStack() as stack:
        discovery = await connect(url, stack)
        for number in range(REGISTRATIONS):
            given = sample(instance_id=f"watched-{number}")
            called[given.instance_id] = time.monotonic_ns()
            await discovery.register(given)
            await asyncio.sleep(PAUSE_S)
    return called


def _watch_in_process(url: str, pipe: Connection) -> None:
    uvloop.run(_watch(url, pipe))


async def _watch(url: str, pipe: Connection) -> None:
    seen: Seen = {}
    async with AsyncExitStack() as stack:
        watchers = [await connect(url, stack) for _ in range(WATCHERS_EACH)]
        ready = [asyncio.Event() for _ in watchers]
        tasks = [asyncio.create_task(_watch_one(*pair, seen)) for pair in zip(watchers, ready, strict=True)]
        for one in ready:
            await one.wait()
        await asyncio.sleep(0.5)  # until their doorbells hang
        pipe.send(True)
        await asyncio.gather(*tasks)
    pipe.send(seen)


async def _watch_one(discovery: Discovery, ready: asyncio.Event, seen: Seen) -> None:
    left = REGISTRATIONS
    async for change in discovery.watch("game", "kr-1"):
        if change.event == "snapshot":
            ready.set()
            continue
        seen.setdefault(change.instance_id, []).append(time.monotonic_ns())
        left -= 1
        if not left:
            return
