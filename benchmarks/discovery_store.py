"""Discovery straight on the store: what 10 000 instances cost it, and how each verb grows with the fleet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from statistics import median
from typing import Any

from discovery_http import sample
from http_load import cpu_seconds
from report import Figure
from roost.api.discovery import Beat
from roost.core.lease import MAX_STEP_MS
from roost.discovery.reaper import BUDGET_PERCENT, BUDGET_WINDOW_MS, SWEEP_INTERVAL_S, SWEEP_LIMIT
from roost.discovery.scripts import Swept
from roost.discovery.service import Discovery
from roost.store.store import Store
from roost.store.url import parse_store_url
from roost.testing import RunningServer, run_valkey

FLEET = 10_000
BEAT_INTERVAL_S = 10.0
BEATING_LINKS = 100
BATCH = 100
SIZES = (100, 1_000, FLEET)
GROUP = 100
BIG_GROUP = 1_000
SILENT = 500
REPEATS = 50
ROUNDS = 5
MOST_US_PER_BEAT = 50.0
MOST_PINGS_PER_BEAT = 2.0

METHOD = (
    f"Store: a throwaway valkey-server with append-only file (fsync once a second) on loopback TCP. Beats: "
    f"{FLEET:,} instances, one beat each in {BEAT_INTERVAL_S:g} s, evenly spread, over {BEATING_LINKS} "
    f"connections (as many servers on the store) or over one (a gateway, which sends together what comes "
    f"within 20 ms), with the sweep of every second; processor time of the store, as a share of one core. "
    f"One beat per wake-up finds the store asleep and its caches cold: PING at the same pace is the floor, "
    f"{BATCH} beats at once show the work alone. Growth: groups of {GROUP}, one of {BIG_GROUP:,}; `ms of "
    f"store` is how long the script holds the store (INFO commandstats, mean of {REPEATS} calls), `ms` the "
    f"median wait of a caller from call to decoded answer."
)

Once = Callable[[], Awaitable[object]]


async def main() -> list[Figure]:
    with run_valkey(persistent=True) as server:
        figures = await beats(server)
    with run_valkey(persistent=True) as server:
        return figures + await growth(server)


async def connect(url: str, stack: AsyncExitStack) -> Discovery:
    return Discovery(await open_store(url, stack))


async def open_store(url: str, stack: AsyncExitStack) -> Store:
    store = await Store.open(parse_store_url(url))
    stack.push_async_callback(store.close)
    return store


async def populate(discovery: Discovery, numbers: range, group_of: int, ttl_s: float) -> list[str]:
    """Register one instance per number, `group_of` to a group, some hundred at a time; their ids."""
    ids: list[str] = []
    for start in range(numbers.start, numbers.stop, 500):
        part = range(start, min(start + 500, numbers.stop))
        given = (sample(group=f"g-{n // group_of}", ttl_seconds=ttl_s) for n in part)
        ids += [one.instance_id for one in await asyncio.gather(*map(discovery.register, given))]
    return ids


# -- the cost of being alive


async def beats(server: RunningServer) -> list[Figure]:
    print(f"store: {FLEET:,} instances beat for {BEAT_INTERVAL_S:g} s", flush=True)
    async with AsyncExitStack() as stack:
        links = [await connect(server.url, stack) for _ in range(BEATING_LINKS)]
        ids = await populate(links[0], range(FLEET), GROUP, 3 * BEAT_INTERVAL_S)
        await asyncio.sleep(1.5)  # the fsync of what was just written belongs to nobody's beat

        async def beat(number: int) -> None:
            said = Beat(load=412 + number % 3, performance={"cpu": 41.5, "tickMs": 16.6})
            await links[number % BEATING_LINKS].heartbeat(ids[number], said)

        async def ping(number: int) -> None:
            await stores[number % BEATING_LINKS].ping()

        sweeper = asyncio.create_task(sweep_for_ever(links[0]))
        beating = await share_of_core(server.pid, paced(beat, FLEET))
        sweeper.cancel()
        assert all(one.status == "ready" for one in (await links[0].discover("game")).instances)
        gateway = await connect(server.url, stack)

        async def beat_gateway(number: int) -> None:
            said = Beat(load=412 + number % 3, performance={"cpu": 41.5, "tickMs": 16.6})
            await gateway.heartbeat(ids[number], said)

        sweeper = asyncio.create_task(sweep_for_ever(links[0]))
        gathered = await share_of_core(server.pid, paced(beat_gateway, FLEET))
        sweeper.cancel()
        stores = [await open_store(server.url, stack) for _ in range(BEATING_LINKS)]
        pinging = await share_of_core(server.pid, paced(ping, FLEET // 2))
        used = cpu_seconds([server.pid])
        for first in range(0, FLEET, BATCH):
            await asyncio.gather(*map(beat_gateway, range(first, first + BATCH)))
        per_beat_us = (cpu_seconds([server.pid]) - used) / FLEET * 1e6
    pace = f"{FLEET / BEAT_INTERVAL_S:,.0f}/s evenly"
    return [
        Figure(f"store CPU, beats, {pace}", "% of a core", [beating]),
        Figure(f"store CPU, beats through one gateway, {pace}", "% of a core", [gathered]),
        Figure(f"store CPU, PING instead, {pace}", "% of a core", [pinging]),
        Figure("store CPU, beats through one gateway / PING", "×", [gathered / pinging], MOST_PINGS_PER_BEAT),
        Figure(f"store CPU per beat, {BATCH} at once", "µs", [per_beat_us], MOST_US_PER_BEAT),
    ]


async def paced(once: Callable[[int], Coroutine[Any, Any, None]], count: int) -> None:
    """Call it with 0, 1, 2 …, evenly spread, as a fleet of `FLEET` would."""
    loop = asyncio.get_running_loop()
    started, step = loop.time(), BEAT_INTERVAL_S / FLEET
    async with asyncio.TaskGroup() as group:
        for number in range(count):
            if (early := started + number * step - loop.time()) > 0:
                await asyncio.sleep(early)
            group.create_task(once(number))


async def share_of_core(pid: int, doing: Awaitable[None]) -> float:
    started, used = time.monotonic(), cpu_seconds([pid])
    await doing
    return 100 * (cpu_seconds([pid]) - used) / (time.monotonic() - started)


async def sweep_for_ever(discovery: Discovery) -> None:
    while True:
        await sweep(discovery)
        await asyncio.sleep(SWEEP_INTERVAL_S)


async def sweep(discovery: Discovery, now: int | str = "") -> Swept:
    return await discovery.scripts.sweep(
        limit=SWEEP_LIMIT,
        budget_percent=BUDGET_PERCENT,
        window_ms=BUDGET_WINDOW_MS,
        max_step_ms=MAX_STEP_MS,
        now=now,
    )


# -- how the verbs grow


async def growth(server: RunningServer) -> list[Figure]:
    figures: list[Figure] = []
    async with AsyncExitStack() as stack:
        discovery = await connect(server.url, stack)
        known = 0
        for size in SIZES:
            print(f"store: verbs with {size:,} instances", flush=True)
            await populate(discovery, range(known, size), GROUP, 3600)
            known = size
            figures += await verbs(server, discovery, size)
        figures += await discover_big_group(server, discovery)
        figures += await silent_sweeps(server, discovery)
    return figures


async def verbs(server: RunningServer, discovery: Discovery, size: int) -> list[Figure]:
    given = sample(group="g-0", instance_id="one-and-the-same")
    of = f"of {size:,}"
    held_by_sweep = await held_ms(server, lambda: sweep(discovery))
    held_by_register = await held_ms(server, lambda: discovery.register(given))
    found = Figure(f"register, one {of}", "ms", await waited_ms(lambda: discovery.register(given)))
    await discovery.remove("one-and-the-same")
    held_by_discover = await held_ms(server, lambda: discovery.discover("game", "g-0"))
    return [
        found,
        Figure(f"register, one {of}", "ms of store", [held_by_register]),
        Figure(f"discover, {GROUP} {of}", "ms of store", [held_by_discover]),
        Figure(f"sweep {of}", "ms of store", [held_by_sweep]),
    ]


async def discover_big_group(server: RunningServer, discovery: Discovery) -> list[Figure]:
    given = sample(group="big")
    await asyncio.gather(*(discovery.register(given) for _ in range(BIG_GROUP)))
    before = calls_of_scripts(server)[0]
    found = await discovery.discover("game", "big")
    assert len(found.instances) == BIG_GROUP
    commands = calls_of_scripts(server)[0] - before
    return [
        Figure(f"discover, {BIG_GROUP:,}, round trips", "scripts", [commands], most=1),
        Figure(f"discover, {BIG_GROUP:,}", "ms", await waited_ms(lambda: discovery.discover("game", "big"))),
        Figure(
            f"discover, {BIG_GROUP:,}",
            "ms of store",
            [await held_ms(server, lambda: discovery.discover("game", "big"))],
        ),
    ]


async def silent_sweeps(server: RunningServer, discovery: Discovery) -> list[Figure]:
    """Sweeps that find 500 silent, then dead; the clock is stepped by hand: one sweep finds them all."""
    suspecting: list[float] = []
    ending: list[float] = []
    now = int(time.time() * 1_000_000)
    for _ in range(ROUNDS):
        await sweep(discovery, now)
        await asyncio.gather(*(discovery.register(sample("brief", ttl_seconds=4)) for _ in range(SILENT)))
        for held, found_by in ((suspecting, "suspected"), (ending, "ended")):
            now += 2_000_000
            before = calls_of_scripts(server)
            swept = await sweep(discovery, now)
            assert len(getattr(swept, found_by)) == SILENT, swept
            held.append((calls_of_scripts(server)[1] - before[1]) / 1000)
    return [
        Figure(f"sweep of {FLEET:,}, {SILENT} fall silent", "ms of store", suspecting),
        Figure(f"sweep of {FLEET:,}, {SILENT} die", "ms of store", ending),
    ]


async def waited_ms(once: Once) -> list[float]:
    """The median wait of a single caller, as many rounds as anywhere."""
    rounds = []
    for _ in range(ROUNDS):
        waits = []
        for _ in range(REPEATS):
            started = time.perf_counter()
            await once()
            waits.append((time.perf_counter() - started) * 1000)
        rounds.append(median(waits))
    return rounds


async def held_ms(server: RunningServer, once: Once) -> float:
    """How long the store was busy with each call's script."""
    calls, held_us = calls_of_scripts(server)
    for _ in range(REPEATS):
        await once()
    calls_after, held_us_after = calls_of_scripts(server)
    return (held_us_after - held_us) / (calls_after - calls) / 1000


def calls_of_scripts(server: RunningServer) -> tuple[int, int]:
    """How many scripts the store has run, and their time in µs."""
    calls = held_us = 0
    for line in server.command_reply("INFO", "commandstats").decode().splitlines():
        name, _, rest = line.partition(":")
        if name.startswith("cmdstat_eval"):  # by its digest or not, also those that only read
            fields = dict(part.split("=") for part in rest.split(","))
            calls, held_us = calls + int(fields["calls"]), held_us + int(fields["usec"])
    return calls, held_us
