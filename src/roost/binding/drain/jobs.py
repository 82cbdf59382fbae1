"""The verbs of drain jobs: what operators order, and what gates ask and tell."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Sequence
from typing import Any

import msgspec

from roost.api import drain as api
from roost.api.drain import JobState, NowhereToMove, SchemaPoint, WrongJobState
from roost.binding.drain.certificate import GateReport
from roost.binding.drain.controller import Controller
from roost.binding.drain.ending import read_report
from roost.binding.drain.metrics import DrainMetrics
from roost.binding.drain.model import (
    MAX_PINNED,
    MOVES_NOBODY,
    DrainRequest,
    Job,
    Order,
    Plan,
    RunningJob,
)
from roost.binding.drain.movers import EntityServers
from roost.binding.drain.plan import (
    busy_servers,
    check_answer,
    check_request,
    emptiest,
    is_wanted,
    make_plan,
    schema_point,
)
from roost.binding.drain.records import JobRecords, NotSo, Running, Started, TooMany, Turned
from roost.binding.drain.standing import Directory, Standings, standings_of
from roost.binding.drain.view import View
from roost.binding.service import Bindings
from roost.core.errors import RoostError, Unavailable
from roost.core.ids import new_ulid
from roost.core.loops import Loops
from roost.core.owner import Owner
from roost.store.scopes import drain
from roost.store.store import Store

Jobs = list[Job]
Work = list[Coroutine[Any, Any, None]]
RunningJobs = list[RunningJob]

OPEN: tuple[JobState, ...] = ("running", "paused")
ENDING_S = 5.0
"""How long a start waits for a cancelled job to let its servers go."""
SURVEY_S = 5.0
"""How long a plan may ask the servers who is pinned."""


class Drains:
    """Emptying servers while their users play."""

    def __init__(
        self,
        store: Store,
        bindings: Bindings,
        directory: Directory,
        servers: EntityServers,
        *,
        loops: Loops | None = None,
    ) -> None:
        """`directory` says which servers there are; `servers` are called for plans and moves."""
        self._store = store
        self._bindings = bindings
        self._directory = directory
        self._servers = servers
        self.records = JobRecords(store)
        self.controller = Controller(self.records, self._view, servers, loops)
        self.metrics = DrainMetrics(self)

    def loops(self, roles: Collection[str]) -> Work:
        """The controller, in managers only."""
        return [self.lead()] if "manager" in roles else []

    async def lead(self) -> None:
        await self._store.leader(drain(), "manager").lead(self.controller.run)

    def _view(self, type_: str) -> View:
        return View(self._directory, self._bindings, self.records, type_)

    async def _standings(self, type_: str) -> Standings:
        found, rows = await asyncio.gather(
            self._directory.discover(type_, "*"), self._bindings.servers(type_)
        )
        return standings_of(found.instances, rows)

    # -- orders

    async def plan(self, request: DrainRequest) -> Plan:
        """What `start` would do. Raises why it would be refused."""
        check_request(request)
        request = await self._chosen(self._with_settings(request))
        plan, standings = await self._planned(request)
        if (found := await self._holder(request)) is not None and found.state not in MOVES_NOBODY:
            check_answer(found, request, standings)
        await self._survey(plan, standings)
        return plan

    def _with_settings(self, request: DrainRequest) -> DrainRequest:
        """What was left open is as it is set."""
        settings = self._bindings.settings
        return msgspec.structs.replace(
            request,
            rate=request.rate or settings.drain_rate,
            max_block_ms=request.max_block_ms or settings.move_block_ms,
            deadline_s=request.deadline_s or float(settings.drain_deadline_seconds),
        )

    async def _planned(self, request: DrainRequest) -> tuple[Plan, Standings]:
        standings, running = await asyncio.gather(self._standings(request.type), self.running())
        return make_plan(request, standings, running), standings

    async def _survey(self, plan: Plan, standings: Standings) -> None:
        """Who cannot move just now, as far as the servers answer in time."""
        pinned: dict[str, str] = {}
        for source in plan.sources:
            try:
                async with asyncio.timeout(SURVEY_S):
                    surveyed = await self._servers.survey(standings[source.server_id], plan.type)
            except (RoostError, TimeoutError) as error:
                reason = error.message if isinstance(error, RoostError) else "no answer in time"
                plan.notes.append(f"{source.server_id} does not say who is pinned: {reason}")
                continue
            pinned |= {one.user: one.note for one in surveyed if one.verdict == "pinned"}
            plan.later += sum(one.verdict == "later" for one in surveyed)
        plan.pinned = dict(list(pinned.items())[:MAX_PINNED])
        if pinned:
            plan.notes.append(f"{len(pinned)} users are pinned: they move when that ends, or at the deadline")

    async def start(self, request: DrainRequest) -> Job:
        """Start a job, or answer with the one that does this already.

        `WrongJobState`: another has one of the servers, and does not empty all that are asked for.
        """
        check_request(request)
        request = self._with_settings(request)
        if request.emptiest and (running := await self._running_drain(request)) is not None:
            return running
        request = await self._chosen(request)
        if (running := await self._running_on(request)) is not None:
            return running
        plan, standings = await self._planned(request)
        order = _order(request, plan, standings)
        match await self.records.start(order):
            case Started():
                return await self.get(order.id)
            case Running(id):
                job = await self.get(id)
                check_answer(job, request, standings)
                return job
            case TooMany():
                raise Unavailable("too many drain jobs are running")

    async def _chosen(self, request: DrainRequest) -> DrainRequest:
        """With the servers that it names, or means."""
        if not request.emptiest:
            return request
        standings, running = await asyncio.gather(self._standings(request.type), self.running())
        left_out = busy_servers(running, request.type) | set(request.to)
        servers = emptiest(standings, request.emptiest, left_out)
        return msgspec.structs.replace(request, servers=servers, emptiest=0)

    async def _running_drain(self, request: DrainRequest) -> Job | None:
        """Of an order that names no server: repeated, it must not empty others."""
        ids = [one.id for one in await self.running() if one.type == request.type and not one.moves_nobody]
        jobs = [await self.get(job_id) for job_id in ids]
        drains = [job for job in jobs if job.kind == "drain" and job.state not in MOVES_NOBODY]
        largest = max(drains, key=lambda job: (job.state != "rolling-back", len(job.sources)), default=None)
        if largest is not None:
            check_answer(largest, request, {})
        return largest

    async def _running_on(self, request: DrainRequest) -> Job | None:
        """The job that does this already; one that is cancelled is waited for."""
        deadline = asyncio.get_running_loop().time() + ENDING_S
        while (found := await self._holder(request)) is not None and found.state in MOVES_NOBODY:
            if asyncio.get_running_loop().time() > deadline:
                break
            await asyncio.sleep(0.05)
        if found is not None:
            check_answer(found, request, await self._standings(request.type))
        return found

    async def _holder(self, request: DrainRequest) -> Job | None:
        """The first job that has one of the servers, whatever it does there."""
        for server in request.servers:
            if (job_id := await self.records.holder(request.type, server)) is not None:
                return await self.get(job_id)
        return None

    async def pause(self, job_id: str) -> Job:
        return await self._turn(await self.get(job_id), "paused", "ordered", ("running",))

    async def resume(self, job_id: str) -> Job:
        """Go on after a pause, the job's own among them."""
        return await self._turn(await self.get(job_id), "running", "", ("paused",))

    async def cancel(self, job_id: str) -> Job:
        """No more moves; those under way end, and the servers take users again."""
        kept = await self.records.get(job_id)
        if kept.state == "reconciling" and kept.progress.outcome == "cancelled":  # ordered twice
            return kept.job
        return await self._turn(kept.job, "cancelled", "ordered", (*OPEN, "rolling-back"))

    async def rollback(self, job_id: str) -> Job:
        """Bring everybody back whom the job has moved, if their servers still live."""
        job = await self.get(job_id)
        standings = await self._standings(job.type)
        homes = [
            standings[server]
            for server in job.sources
            if server in standings and standings[server].owner == Owner(server, job.lives[server])
        ]
        if not homes:
            raise NowhereToMove(f"{', '.join(job.sources)} ended: there is nothing to go back to")
        held = [one for one in standings.values() if one.server_id not in job.lives and one.users]
        taken = [one for one in held if is_wanted(one, job.to, job.version)]
        if job.counts["moved"] and (point := schema_point(homes, taken)):
            raise SchemaPoint(point)
        allowed: tuple[JobState, ...] = (*OPEN, "cancelled", "done", "reconciling", "failed")
        return await self._turn(job, "rolling-back", "ordered", allowed)

    async def _turn(self, job: Job, to: JobState, why: str, allowed: Sequence[JobState]) -> Job:
        match await self.records.turn(job, to, why, allowed):
            case Turned():
                return await self.get(job.id)
            case NotSo(state):
                raise WrongJobState(f"the drain {job.id} is {state}")
            case Running(other):
                raise WrongJobState(f"the drain {other} has one of its servers by now")
            case _:
                raise api.UnknownJob(f"there is no drain job {job.id}")

    # -- looking

    async def get(self, job_id: str) -> Job:
        return (await self.records.get(job_id)).job

    async def report(self, job_id: str) -> dict[str, object] | None:
        """The certificate; None: it has none yet."""
        return (await self.get(job_id)).certificate

    async def running(self) -> RunningJobs:
        """Jobs that have not ended; one call to the store."""
        return list(await self.records.running())

    async def list(self, limit: int = 20) -> Jobs:
        """Newest first."""
        return [kept.job for kept in await self.records.list(max(1, min(limit, api.MAX_JOBS)))]

    # -- gates

    async def tell(self, job_id: str, gate: str, report: GateReport) -> None:
        """What a gate has counted for a job so far; a job that has ended hears nothing more."""
        await self.records.tell(job_id, gate, msgspec.json.encode(report))

    async def told(self, job_id: str) -> dict[str, GateReport]:
        return {gate: read_report(packed) for gate, packed in (await self.records.told(job_id)).items()}


def _order(request: DrainRequest, plan: Plan, standings: Standings) -> Order:
    sources = [one.server_id for one in plan.sources]
    is_drain = request.kind == "drain"
    return Order(
        id=new_ulid(),
        type=request.type,
        kind=request.kind,
        sources=sources,
        lives={server: standings[server].owner.life for server in sources},
        to=request.to if is_drain else [one.server_id for one in plan.targets],
        version=request.version,
        rate=request.rate,
        canary=request.canary,
        max_block_ms=request.max_block_ms,
        deadline_s=request.deadline_s,
        quota={} if is_drain else {one.server_id: one.moves for one in plan.sources},
        by=request.by,
    )
