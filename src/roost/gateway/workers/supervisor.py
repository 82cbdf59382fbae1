"""The process above the workers of a gateway: starts them, starts a dead one again, and answers for all.

It serves no request. It holds the port without listening on it, so that no other program takes it while
workers come and go; each worker listens on a socket of its own (SO_REUSEPORT), and the kernel hands
connections only to those that are there.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from roost.core.errors import RoostError, Unavailable
from roost.core.loops import Loops
from roost.gateway.workers.adding import Page, added, counted, read_page, rules, write_page
from roost.gateway.workers.worker import Command, Worker
from roost.web.metrics import counter, gauge

LOOK_S = 5.0
"""How often workers show their pages: what a dead one counted after the last is lost."""
STOP_S = 10.0


class Supervisor:
    def __init__(self, count: int, command: Command, environment: dict[str, str]) -> None:
        self._loops = Loops()
        self._adds = rules()
        self._former = counted((), self._adds)
        self.workers = [
            Worker(number, command, environment, self._answer, self._remember)
            for number in range(1, count + 1)
        ]
        self._tasks: list[asyncio.Task[None]] = []
        self._registry = CollectorRegistry()
        self._registry.register(_Shown(self))

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Those that are started run inside the block; on the way out all of them are stopped."""
        looking = self._loops.keep_running("look at workers", self._look, pause_s=LOOK_S)
        self._tasks.append(asyncio.create_task(looking))
        try:
            yield
        finally:
            await asyncio.gather(*(worker.stop(STOP_S) for worker in self.workers))
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def start(self) -> bool:
        """Start all; False: one ended before it was up. The first goes ahead: a fault is said once."""
        first, *others = self.workers
        self._begin(first)
        if not await _came_up(first):
            return False
        for worker in others:
            self._begin(worker)
        return all(await asyncio.gather(*map(_came_up, others)))

    def _begin(self, worker: Worker) -> None:
        keeping = self._loops.keep_running(f"worker {worker.number}", worker.live)
        self._tasks.append(asyncio.create_task(keeping))

    def hang_up(self) -> None:
        for worker in self.workers:
            worker.hang_up()

    def _remember(self, page: Page) -> None:
        self._former = counted((self._former, page), self._adds)

    async def _answer(self, what: str) -> bytes:
        return await (self._metrics() if what == "metrics" else self._ready())

    async def _metrics(self) -> bytes:
        await self._look()
        # What one counted that does not answer now is in its last page: a sum must not fall.
        pages = {worker.number: worker.page for worker in self.workers if worker.page is not None}
        whole = added(pages, self._former, self._adds)
        return write_page(whole | read_page(generate_latest(self._registry).decode())).encode()

    async def _look(self) -> None:
        await asyncio.gather(*(worker.look() for worker in self.workers if worker.listens))

    async def _ready(self) -> bytes:
        """The answer of one for all; refused where one is not ready that takes connections. One that died
        under the question takes none."""
        up = [worker for worker in self.workers if worker.listens]
        answers = await asyncio.gather(*(worker.ask("ready") for worker in up), return_exceptions=True)
        for worker, answer in zip(up, answers, strict=True):
            if isinstance(answer, RoostError) and worker.listens:
                raise Unavailable(f"worker {worker.number}: {answer.message}")
            if isinstance(answer, BaseException) and not isinstance(answer, RoostError):
                raise answer
        found = [answer for answer in answers if isinstance(answer, bytes)]
        if not found:
            raise Unavailable("starting")
        return found[0]


async def _came_up(worker: Worker) -> bool:
    waits = [asyncio.create_task(event.wait()) for event in (worker.up, worker.ended)]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    return not worker.ended.is_set()


class _Shown(Collector):
    """What the supervisor itself has to show."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    def describe(self) -> Iterator[Metric]:
        return iter(())

    def collect(self) -> Iterator[Metric]:
        workers = self._supervisor.workers
        up = GaugeMetricFamily("roost_worker_up", "Whether a worker takes connections", labels=["worker"])
        for worker in workers:
            up.add_metric([str(worker.number)], float(worker.listens))
        restarts = sum(worker.restarts for worker in workers)
        yield up
        yield gauge("roost_workers", "Worker processes of this gateway", len(workers))
        yield counter("roost_worker_restarts", "Workers that ended and were started again", restarts)
        hung = sum(worker.hung for worker in workers)
        yield counter("roost_worker_hung", "Workers that hung and were ended", hung)
