"""The store's side of drain jobs: the scripts as typed functions, and what is kept as objects."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import msgspec

from roost.api.drain import JobState, UnknownJob
from roost.binding.drain.model import MAX_GATES, Job, Order, Progress, RunningJob, job_of
from roost.core.ids import check_name
from roost.core.lease import Tenure
from roost.core.owner import Owner
from roost.store.keys.drain import drain_keys
from roost.store.scripts import ScopedScript
from roost.store.store import Store

MAX_ACTIVE = 64
SAVE_LIMIT = 2000
"""Users whose move one save may tell."""
_FIELDS = ("order", "progress", "state", "why", "made", "ended")

_encode = msgspec.json.Encoder().encode
_order = msgspec.json.Decoder(Order).decode
_progress = msgspec.json.Decoder(Progress).decode


@dataclass(frozen=True, slots=True)
class Started:
    made: int


@dataclass(frozen=True, slots=True)
class Running:
    id: str


@dataclass(frozen=True, slots=True)
class TooMany:
    pass


@dataclass(frozen=True, slots=True)
class Turned:
    pass


@dataclass(frozen=True, slots=True)
class NotSo:
    state: str


@dataclass(frozen=True, slots=True)
class Unknown:
    pass


@dataclass(frozen=True, slots=True)
class Saved:
    state: JobState
    why: str


@dataclass(frozen=True, slots=True)
class Deposed:
    pass


@dataclass(frozen=True, slots=True)
class Jobs:
    jobs: list[str]


@dataclass(frozen=True, slots=True)
class Told:
    pass


@dataclass(frozen=True, slots=True)
class Late:
    pass


@dataclass(frozen=True, slots=True)
class Full:
    pass


class Kept(NamedTuple):
    """A job as it is kept."""

    order: Order
    progress: Progress
    state: JobState
    why: str
    made_us: int
    ended_us: int

    @property
    def job(self) -> Job:
        return job_of(*self)


class Turn(NamedTuple):
    """How a save changes the state, where it is still the known one."""

    known: JobState
    to: JobState
    why: str = ""
    free: bool = False
    """Its servers may have another job."""
    ended: bool = False


class JobRecords:
    """Every job of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        keys = drain_keys(store.keys)
        self._jobs, self._job = keys["jobs"], keys["job"]
        self._moved, self._reports, self._busy = keys["moved"], keys["reports"], keys["busy"]

        def script(name: str, *answers: type[Any]) -> ScopedScript[Any]:
            return ScopedScript(store.library.script("binding", name, *answers), keys)

        self._start: ScopedScript[Started | Running | TooMany] = script(
            "job_start", Started, Running, TooMany
        )
        self._turn: ScopedScript[Turned | NotSo | Running | Unknown] = script(
            "job_turn", Turned, NotSo, Running, Unknown
        )
        self._save: ScopedScript[Saved | Deposed | Unknown] = script("job_save", Saved, Deposed, Unknown)
        self._running: ScopedScript[Jobs] = script("job_running", Jobs)
        self._tell: ScopedScript[Told | Late | Full] = script("job_tell", Told, Late, Full)

    async def start(self, order: Order) -> Started | Running | TooMany:
        return await self._start(
            id=order.id,
            type=order.type,
            parts=" ".join(f"{server}:{order.lives[server]}" for server in order.sources),
            targets=" ".join(order.to),
            version=order.version,
            order=_encode(order),
            progress=_encode(Progress(rate_now=float(order.rate))),
            most=MAX_ACTIVE,
            servers=order.sources,
        )

    async def turn(
        self, job: Job, to: JobState, why: str, allowed: Sequence[JobState]
    ) -> Turned | NotSo | Running | Unknown:
        """An operator's order; a rollback takes its servers again, which are free once nobody moves."""
        servers = " ".join(job.sources) if to == "rolling-back" else ""
        return await self._turn(id=job.id, to=to, why=why, servers=servers, allowed=allowed)

    async def save(
        self, tenure: Tenure, job_id: str, progress: Progress, turn: Turn, moved: Sequence[str] = ()
    ) -> Saved | Deposed | Unknown:
        """The controller's word; `moved`: `+` or `-` and `user<tab>source`."""
        return await self._save(
            holder=tenure.holder,
            epoch=str(tenure.epoch),
            id=job_id,
            progress=_encode(progress),
            known=turn.known,
            to=turn.to,
            why=turn.why,
            free=int(turn.free),
            ended=int(turn.ended),
            changes=moved,
        )

    async def get(self, job_id: str) -> Kept:
        """`UnknownJob` if there is none."""
        key = self._job + check_name(job_id, "job").encode()
        found = await self._store.call("HMGET", key, *_FIELDS, key=key, idempotent=True)
        if found[0] is None:
            raise UnknownJob(f"there is no drain job {job_id}")
        order, progress, state, why, made, ended = found
        return Kept(
            _order(order),
            _progress(progress),
            cast(JobState, state.decode()),
            why.decode(),
            int(made),
            int(ended),
        )

    async def holder(self, type_: str, server: str) -> str | None:
        """The job that moves the users of a server."""
        name = f"{check_name(type_, 'type')}:{check_name(server, 'serverId')}"
        found = await self._store.call("HGET", self._busy, name, key=self._busy, idempotent=True)
        return found.decode() if found is not None else None

    async def list(self, limit: int) -> Sequence[Kept]:
        """Newest first; one that cannot be read is left out."""
        ids = await self._store.call("ZREVRANGE", self._jobs, 0, limit - 1, key=self._jobs, idempotent=True)
        found = await asyncio.gather(*(self.get(one.decode()) for one in ids), return_exceptions=True)
        for fault in found:
            if isinstance(fault, BaseException) and not isinstance(fault, (UnknownJob, msgspec.MsgspecError)):
                raise fault
        return [one for one in found if isinstance(one, Kept)]

    async def running(self) -> Sequence[RunningJob]:
        flat = (await self._running()).jobs
        rows = zip(*(flat[at::7] for at in range(7)), strict=True)
        return [
            RunningJob(
                id_, type_, _owners(parts), cast(JobState, state), int(made), tuple(to.split()), version
            )
            for id_, type_, parts, state, made, to, version in rows
        ]

    async def moved(self, job_id: str, after: str, count: int) -> Sequence[tuple[str, str]]:
        """(user, source) of whom it has moved, in the order of their ids, those behind `after`."""
        key = self._moved + check_name(job_id, "job").encode()
        start = b"(" + f"{after}\t\xff".encode() if after else b"-"
        found = await self._store.call(
            "ZRANGE", key, start, "+", "BYLEX", "LIMIT", 0, count, key=key, idempotent=True
        )
        return [cast("tuple[str, str]", tuple(one.decode().split("\t"))) for one in found]

    async def tell(self, job_id: str, gate: str, report: bytes) -> Told | Late | Full:
        return await self._tell(
            id=check_name(job_id, "job"), gate=check_name(gate, "gate"), report=report, most=MAX_GATES
        )

    async def told(self, job_id: str) -> dict[str, bytes]:
        key = self._reports + check_name(job_id, "job").encode()
        flat = await self._store.call("HGETALL", key, key=key, idempotent=True)
        return {gate.decode(): report for gate, report in zip(flat[::2], flat[1::2], strict=True)}


def _owners(parts: str) -> tuple[Owner, ...]:
    return tuple(Owner(*part.split(":")) for part in parts.split())
