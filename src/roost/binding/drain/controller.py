"""The controller: whoever leads the scope of drains runs every job that has not ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from roost.binding.drain.movers import EntityServers
from roost.binding.drain.records import JobRecords
from roost.binding.drain.runner import Runner
from roost.binding.drain.view import View
from roost.core.lease import Tenure
from roost.core.loops import Loops

log = logging.getLogger("roost.drain")

LOOK_S = 0.25


class Controller:
    def __init__(
        self,
        records: JobRecords,
        view: Callable[[str], View],
        servers: EntityServers,
        loops: Loops | None = None,
    ) -> None:
        """`view`: the fleet of a type."""
        self._records = records
        self._view = view
        self._servers = servers
        self._loops = loops or Loops()
        self._jobs: dict[str, asyncio.Task[None]] = {}
        self.leading = False
        self.running: dict[str, Runner] = {}

    async def run(self, tenure: Tenure) -> None:
        """The leader's work: goes on with what the store holds, until another leads."""
        self.leading = True
        try:
            await self._loops.keep_running("drain jobs", lambda: self._look(tenure), pause_s=LOOK_S)
        finally:
            self.leading = False
            jobs = list(self._jobs.values())
            for job in jobs:
                job.cancel()
            await asyncio.gather(*jobs, return_exceptions=True)

    async def _look(self, tenure: Tenure) -> None:
        for job in await self._records.running():
            if job.id not in self._jobs:
                task = asyncio.create_task(self._run(job.id, tenure), name=f"roost drain {job.id}")
                self._jobs[job.id] = task
                task.add_done_callback(partial(self._ended, job.id))

    def _ended(self, job_id: str, task: asyncio.Task[None]) -> None:
        self._jobs.pop(job_id, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("drain: a job is taken up again", extra={"job": job_id, "reason": str(error)})

    async def _run(self, job_id: str, tenure: Tenure) -> None:
        kept = await self._records.get(job_id)
        log.info("drain: taken up", extra={"job": job_id, "state": kept.state})
        runner = Runner(kept, tenure, self._records, self._view(kept.order.type), self._servers)
        self.running[job_id] = runner
        try:
            await self._loops.keep_running("drain job", runner.step)
        finally:
            self.running.pop(job_id, None)
            await runner.leave()
