"""A waiting room straight on the store: what one person costs, and what a tick costs while a million wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial

from discovery_store import calls_of_scripts, open_store
from report import Figure
from roost.core.passes import BASE
from roost.store.keys.waitingroom import world_keys
from roost.store.store import Store
from roost.testing import Leader, RunningServer, run_valkey
from roost.waitingroom.rules import Policy
from roost.waitingroom.scripts import Waiting
from roost.waitingroom.service import WaitingRoom

SMALL, BIG = 10_000, 1_000_000
TALKATIVE = 100_000
BATCH = 100
TICKS = 200
WARM_UP_TICKS = 20
BATCH_LIMIT = 1000
MOST_BYTES = 400.0
MOST_GROWTH = 2.0
CAPACITY = 2 * BIG

METHOD = (
    f"Store: throwaway valkey-servers of the wheel, append-only file on (fsync once a second, never "
    f"rewritten meanwhile). People enter by the script of `POST /api/queue/entry`, {BATCH_LIMIT:,} at a "
    f"time, in a world that moves. Memory: growth of used_memory by the line, divided by its people; "
    f"ids of 12 bytes, no nickname, no region. `talkative`: {TALKATIVE:,} with a nickname of 10 and a "
    f"region of 2 characters, who have asked the store once. Admit: one server with room for all; "
    f"{TICKS} ticks of {BATCH} tickets with {SMALL:,} waiting in one store and as many with {BIG:,} in "
    f"another, in turns, everybody there; after each tick {BATCH} enter, so that the line stays as long. `ms "
    f"of store` is how long the script holds the store (INFO commandstats, tick by tick), `ms` the wait of "
    f"the caller until it has the decoded answer."
)


def room_in(store: Store, policy: Policy | None = None) -> WaitingRoom:
    return WaitingRoom(store, "main", policy or Policy())


def user_of(number: int) -> str:
    return f"user{number:08d}"


async def fill(
    room: WaitingRoom, numbers: range, nickname: str = "", region: str = ""
) -> list[tuple[str, Waiting]]:
    """Let people enter, some at a time; each with the place that they got."""
    places: list[tuple[str, Waiting]] = []
    for start in range(numbers.start, numbers.stop, BATCH_LIMIT):
        users = [user_of(number) for number in range(start, min(start + BATCH_LIMIT, numbers.stop))]
        answers = await asyncio.gather(*(room.enter(user, nickname, region, BASE) for user in users))
        for user, answer in zip(users, answers, strict=True):
            assert isinstance(answer, Waiting), answer
            places.append((user, answer))
    return places


@dataclass
class Scene:
    """A world with one large server, in a store of its own."""

    server: RunningServer
    store: Store
    room: WaitingRoom
    leader: Leader = field(init=False)
    waiting: int = 0
    entered: int = 0
    held_ms: list[float] = field(default_factory=list)
    waited_ms: list[float] = field(default_factory=list)

    async def open(self) -> None:
        """A world that moves, and in which everybody queues though there is room."""
        await self.room.govern(mode="queue-all", message="-", limit="-", rate="-")
        self.leader = await Leader.of(self.store, self.room)
        await self.leader.shows("huge", "1")
        await self.room.report("huge", "1", number=1, capacity=CAPACITY, users=0, counted=0, url="ws://huge")
        world = world_keys(self.store.keys, self.room.scope)["world"]
        await self.store.call("HSET", world, "fast", 100_000, "slow", 100_000)

    async def enter(self, count: int) -> None:
        numbers = range(self.entered, self.entered + count)
        for start in range(numbers.start, numbers.stop, 50 * BATCH_LIMIT):
            await fill(self.room, range(start, min(start + 50 * BATCH_LIMIT, numbers.stop)))
        self.entered += count

    def used_memory(self) -> int:
        text: str = self.server.command_reply("INFO", "memory").decode()
        return int(dict(line.split(":", 1) for line in text.splitlines() if ":" in line)["used_memory"])

    async def tick(self) -> None:
        before = calls_of_scripts(self.server)[1]
        started = time.perf_counter()
        ticked = await self.leader.tick(BATCH)
        self.waited_ms.append((time.perf_counter() - started) * 1000)
        self.held_ms.append((calls_of_scripts(self.server)[1] - before) / 1000)
        assert (ticked.issued, ticked.expired, ticked.gone) == (BATCH, 0, 0), ticked
        assert ticked.waiting == self.waiting - BATCH, ticked
        await self.enter(BATCH)


async def main() -> list[Figure]:
    run = partial(run_valkey, persistent=True, options=("--auto-aof-rewrite-percentage", "0"))
    with run() as small, run() as big:
        async with AsyncExitStack() as stack:
            scenes = [await scene(server, stack) for server in (small, big)]
            figures = [await memory(scenes[1], BIG)]
            await scenes[0].enter(SMALL)
            scenes[0].waiting, scenes[1].waiting = SMALL, BIG
            figures += await admits(*scenes)
    with run() as server:
        async with AsyncExitStack() as stack:
            figures.insert(1, await talkative(await scene(server, stack)))
    return figures


async def scene(server: RunningServer, stack: AsyncExitStack) -> Scene:
    store = await open_store(server.url, stack)
    found = Scene(server, store, room_in(store))
    await found.open()
    return found


async def memory(empty: Scene, people: int) -> Figure:
    print(f"store: {people:,} people enter", flush=True)
    before = empty.used_memory()
    await empty.enter(people)
    grown = await settled(empty.used_memory) - before
    return Figure(f"memory of one of {people:,}", "bytes", [grown / people], MOST_BYTES)


async def talkative(empty: Scene) -> Figure:
    before = empty.used_memory()
    places = await fill(empty.room, range(TALKATIVE), "Wolkenstür", "kr")
    for at in range(0, len(places), BATCH_LIMIT):
        await asyncio.gather(*(empty.room.status(user) for user, _ in places[at : at + BATCH_LIMIT]))
    grown = await settled(empty.used_memory) - before
    return Figure(f"memory of one of {TALKATIVE:,}, talkative", "bytes", [grown / TALKATIVE])


async def settled(measured: Callable[[], int]) -> int:
    """The value once it stands still: the store frees buffers and old tables after the last call."""
    value = measured()
    while True:
        await asyncio.sleep(0.5)
        last, value = value, measured()
        if abs(last - value) < 65_536:
            return value


async def admits(small: Scene, big: Scene) -> list[Figure]:
    print(f"store: {TICKS} ticks with {SMALL:,} and with {BIG:,} waiting", flush=True)
    for number in range(WARM_UP_TICKS + TICKS):
        if number == WARM_UP_TICKS:
            for one in (small, big):
                one.held_ms.clear()
                one.waited_ms.clear()
        for one in (small, big):
            await one.tick()
    figures = []
    for one in (small, big):
        name = f"admit {BATCH}, {one.waiting:,} waiting"
        for unit, found in (("ms", one.waited_ms), ("ms of store", one.held_ms)):
            for what, share in (("p50", 0.5), ("p99", 0.99)):
                figures.append(Figure(f"{name}, {what}", unit, [percentile(found, share)]))
    for unit, few, many in (
        ("×, ms", small.waited_ms, big.waited_ms),
        ("×, store", small.held_ms, big.held_ms),
    ):
        growth = percentile(many, 0.5) / percentile(few, 0.5)
        figures.append(Figure(f"admit, {SMALL:,} → {BIG:,} waiting, p50", unit, [growth], MOST_GROWTH))
    return figures


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[int(len(values) * share)]
