"""How fast is the lane executor beside a queue and a task for each key, and beside a thread for each key?"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from typing import Protocol

import uvloop

from report import Case, publish, result_file
from roost.lanes.executor import LaneExecutor
from roost.lanes.ids import LaneIds, OrderIds

ROUNDS = 7
ITEMS = 40_000
KEYS = [f"key-{n}" for n in range(1_000)]
SINGLY, AT_ONCE = 1, 64
IDS = 100_000
BEGAN_MS = time.time_ns() // 1_000_000
PROMISED = {
    SINGLY: {"Queue per key": 1.2, "ThreadPool(1) per key": 4.0},
    AT_ONCE: {"Queue per key": 1.8, "ThreadPool(1) per key": 4.0},
}

METHOD = (
    f"One process, one event loop (uvloop) for all contenders. {ITEMS:,} items over {len(KEYS):,} keys in "
    f"turn; the handler does nothing. Each arrival is a callback of the loop that submits 1 or {AT_ONCE} "
    "items and schedules the next one; the time runs until the last item was executed. Contenders take turns "
    f"within each of {ROUNDS} rounds, after a warm-up; the median of rounds counts. Queue per key: "
    "asyncio.Queue with a task that reads it. ThreadPool(1) per key: concurrent.futures, a thread for each. "
    f"Ids: {IDS:,} of one lane; snowflake-id gives None where its millisecond is full, which counts for it."
)


class Contender(Protocol):
    def submit(self, key: str, item: int) -> object: ...

    async def drained(self) -> None:
        """Every item that was submitted has been executed."""


class Ours:
    def __init__(self, executor: LaneExecutor) -> None:
        self.submit = executor.submit
        self._executor = executor

    async def drained(self) -> None:
        while self._executor.stats().depth:
            await asyncio.sleep(0)


class QueuePerKey:
    def __init__(self) -> None:
        self._queues: dict[str, asyncio.Queue[int]] = {key: asyncio.Queue() for key in KEYS}
        self._tasks = [asyncio.create_task(self._work(key, queue)) for key, queue in self._queues.items()]

    def submit(self, key: str, item: int) -> None:
        self._queues[key].put_nowait(item)

    async def drained(self) -> None:
        while any(queue.qsize() for queue in self._queues.values()):
            await asyncio.sleep(0)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task

    async def _work(self, key: str, queue: asyncio.Queue[int]) -> None:
        while True:
            handle(key, await queue.get())


class ThreadPerKey:
    def __init__(self) -> None:
        self._pools = {key: ThreadPoolExecutor(1) for key in KEYS}
        self._last: dict[str, Future[None]] = {}

    def submit(self, key: str, item: int) -> None:
        self._last[key] = self._pools[key].submit(handle, key, item)

    async def drained(self) -> None:
        for future in self._last.values():
            future.result()

    async def close(self) -> None:
        for pool in self._pools.values():
            pool.shutdown()


def handle(key: str, item: int) -> None:
    """The work of all contenders: none."""


async def rate(contender: Contender, at_once: int) -> float:
    """Items a second, from the first arrival until all were executed."""
    loop, submit = asyncio.get_running_loop(), contender.submit
    arrived = asyncio.Event()
    sent = 0

    def arrive() -> None:
        nonlocal sent
        for number in range(sent, sent + at_once):
            submit(KEYS[number % len(KEYS)], number)
        sent += at_once
        if sent < ITEMS:
            loop.call_soon(arrive)
        else:
            arrived.set()

    gc.collect()
    started = time.perf_counter()
    loop.call_soon(arrive)
    await arrived.wait()
    await contender.drained()
    return sent / (time.perf_counter() - started)


async def beside_them() -> list[Case]:
    cases = {
        SINGLY: Case("one arrival in a turn of the loop", PROMISED[SINGLY]),
        AT_ONCE: Case(f"{AT_ONCE} arrivals in a turn", PROMISED[AT_ONCE]),
    }
    async with AsyncExitStack() as stack:
        executor = await stack.enter_async_context(LaneExecutor(handle))
        queues, threads = QueuePerKey(), ThreadPerKey()
        close: list[Callable[[], Awaitable[None]]] = [queues.close, threads.close]
        for each in close:
            stack.push_async_callback(each)
        contenders: dict[str, Contender] = {
            "ours": Ours(executor),
            "Queue per key": queues,
            "ThreadPool(1) per key": threads,
        }
        for contender in contenders.values():
            await rate(contender, AT_ONCE)
        for number in range(1, ROUNDS + 1):
            print(f"round {number} of {ROUNDS}", flush=True)
            for at_once, case in cases.items():
                for name, contender in contenders.items():
                    case.add(name, await rate(contender, at_once))
    return list(cases.values())


def ids() -> list[Case]:
    """Order ids beside snowflake-id: as an order server makes them, and with a clock read for each."""
    from snowflake import SnowflakeGenerator

    shard, generator, foreign = LaneIds(3), OrderIds(_now_ms), SnowflakeGenerator(42)
    makers: dict[str, Callable[[], object]] = {
        "ours": lambda: shard.next(7, BEGAN_MS),
        "ours, a clock read for each": lambda: generator.generate(3, 7),
        "snowflake-id": lambda: next(foreign),
    }
    case = Case("order ids, one lane; ours reads the clock once in a turn", {})
    for _ in range(ROUNDS):
        shard.raise_floor(0)
        for name, make in makers.items():
            case.add(name, _made(make))
    return [case]


def _made(make: Callable[[], object]) -> float:
    """Ids a second; those that a full millisecond refuses count as made."""
    gc.collect()
    started = time.perf_counter()
    for _ in range(IDS):
        make()
    return IDS / (time.perf_counter() - started)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    path = result_file()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(beside_them()) + ids()
    sys.exit(publish("lanes", "items per second", METHOD, found, path))
