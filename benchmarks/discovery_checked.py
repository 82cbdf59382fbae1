"""Reads beside the health checker: how long they wait while it asks ten instances, or ten thousand."""

from __future__ import annotations

import asyncio
import contextlib
import time

from discovery_http import CONNECTIONS, Gateway, checked, reading, registering, run_gateway
from http_load import Line, Load, Work, ask, cpu_seconds
from probed import Target, run_target
from report import Figure

LISTED = 10
FLEET = 10_000
READERS = 8
READ_EVERY_S = 0.01
ROUND_S = 3.0
ROUNDS = 5

METHOD = (
    f"Checked: `roost up`, {LISTED} instances and then {FLEET:,} more, each with an HTTP check that a "
    f"process of its own answers; {READERS} connections read the list of the {LISTED} every "
    f"{READ_EVERY_S * 1000:g} ms each ({READERS / READ_EVERY_S:g}/s in all). A wait is from just before the "
    f"request is written until the reply is whole; each round of {ROUND_S:g} s gives its p50 and p99. The "
    f"gateway's processor time is that of its process alone, without requests."
)


async def main() -> list[Figure]:
    async with contextlib.AsyncExitStack() as stack:
        gateway, target = stack.enter_context(run_gateway()), stack.enter_context(run_target())
        for _ in range(LISTED):
            await ask(gateway.port, registering(gateway, checked(target)))
        few = await waits(gateway, LISTED)
        await fill(gateway, target)
        return [*few, *await waits(gateway, FLEET), *await cost(gateway, target)]


async def fill(gateway: Gateway, target: Target) -> None:
    """The whole fleet, and the first probes of it."""
    load = Load(gateway.port, gateway.pids, CONNECTIONS)
    await load.open()
    await load.count(registering(gateway, checked(target, "fleet")), FLEET)
    load.close()
    before = target.answered()
    while target.answered() < before + FLEET // 10:
        await asyncio.sleep(0.1)


async def waits(gateway: Gateway, fleet: int) -> list[Figure]:
    p50, p99 = (Figure(f"HTTP read beside {fleet:,} checked, {name}", "ms", []) for name in ("p50", "p99"))
    for number in range(1, ROUNDS + 1):
        print(f"{p99.name}: round {number} of {ROUNDS}", flush=True)
        found = sorted(await read_for(gateway, ROUND_S))
        p50.rounds.append(found[len(found) // 2] * 1000)
        p99.rounds.append(found[len(found) * 99 // 100] * 1000)
    return [p50, p99]


async def read_for(gateway: Gateway, seconds: float) -> list[float]:
    loop = asyncio.get_running_loop()
    lines = [(await loop.create_connection(Line, "127.0.0.1", gateway.port))[1] for _ in range(READERS)]
    until, work = loop.time() + seconds, reading(gateway)
    found = await asyncio.gather(
        *(_read(line, work, n * READ_EVERY_S / READERS, until) for n, line in enumerate(lines))
    )
    for line in lines:
        line.close()
    return [wait for waits in found for wait in waits]


async def _read(line: Line, work: Work, start_s: float, until: float) -> list[float]:
    loop, found = asyncio.get_running_loop(), list[float]()
    due = loop.time() + start_s
    while due < until:
        await asyncio.sleep(due - loop.time())
        started = time.perf_counter()
        await line.repeat(work, 0.0)
        found.append(time.perf_counter() - started)
        due = max(due + READ_EVERY_S, loop.time())
    return found


async def cost(gateway: Gateway, target: Target) -> list[Figure]:
    """What the checker of an otherwise idle gateway does and costs."""
    share = Figure(f"gateway CPU, {FLEET:,} checked, no requests", "% of a core", [])
    probes = Figure(f"probes, {FLEET:,} checked, no requests", "per second", [])
    for _ in range(ROUNDS):
        used, answered = cpu_seconds(gateway.pids[:1]), target.answered()
        await asyncio.sleep(ROUND_S)
        share.rounds.append((cpu_seconds(gateway.pids[:1]) - used) / ROUND_S * 100)
        probes.rounds.append((target.answered() - answered) / ROUND_S)
    return [share, probes]
