"""Drain jobs as operators see them."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from roost.api.drain import (
    MAX_JOBS,
    CertificateView,
    DrainInput,
    JobCounts,
    JobList,
    JobView,
    Pauses,
    PlannedServer,
    PlanView,
    WrongJobState,
)
from roost.api.limits import MAX_TEXT
from roost.binding.drain.certificate import Certificate
from roost.binding.drain.jobs import Drains
from roost.binding.drain.model import PAUSE_MS, DrainRequest, Job, Plan
from roost.binding.views import iso
from roost.core.errors import InvalidInput


def request_of(given: DrainInput) -> DrainRequest:
    """What the verbs take; they check what they use. A time of 0 is as they have it."""
    if len(given.by) > MAX_TEXT or not given.by.isprintable():
        raise InvalidInput(f"by must be at most {MAX_TEXT} characters, all of them printable")
    if given.max_block_ms < 0 or given.deadline_seconds < 0:
        raise InvalidInput("maxBlockMs and deadlineSeconds must not be negative")
    wanted = DrainRequest(
        servers=list(dict.fromkeys(given.servers)),
        type=given.type,
        kind=given.kind,
        to=list(dict.fromkeys(given.to)),
        version=given.version,
        rate=given.rate,
        canary=given.canary,
        users=given.users,
        emptiest=given.emptiest,
        by=given.by,
    )
    wanted.max_block_ms = given.max_block_ms or wanted.max_block_ms
    wanted.deadline_s = given.deadline_seconds or wanted.deadline_s
    return wanted


async def job_list(drains: Drains, limit: int) -> JobList:
    if not 1 <= limit <= MAX_JOBS:
        raise InvalidInput(f"limit is {limit}, must be 1 to {MAX_JOBS}")
    return JobList([job_view(job) for job in await drains.list(limit)])


def job_view(job: Job) -> JobView:
    return JobView(
        id=job.id,
        type=job.type,
        kind=job.kind,
        servers=job.sources,
        to=job.to,
        version=job.version,
        rate=job.rate,
        canary=job.canary,
        state=job.state,
        why=job.why,
        by=job.by,
        made_at=_moment(job.made_at),
        started_at=_moment(job.started_at),
        ended_at=_moment(job.ended_at),
        counts=JobCounts(**{name: job.counts.get(name, 0) for name in JobCounts.__struct_fields__}),
        rate_now=job.rate_now,
        rate_why=job.rate_why,
        pauses=_pauses(job),
        pinned=job.pinned,
        eta_seconds=None if job.eta_s is None else math.ceil(job.eta_s),
        certificate=certificate_view(job.certificate),
    )


def _pauses(job: Job) -> Pauses:
    kept = job.pauses
    return Pauses(kept.quantile(0.5), kept.quantile(0.99), kept.max_ms, list(PAUSE_MS), kept.counts)


def certificate_view(kept: Mapping[str, object] | None) -> CertificateView | None:
    """A certificate as the store keeps it, and the same for people; None: there is none that can be read."""
    try:
        certificate = msgspec.convert(kept, Certificate)
    except msgspec.ValidationError:
        return None
    return CertificateView(**msgspec.structs.asdict(certificate), lines=certificate.lines())


async def report_of(drains: Drains, job_id: str) -> CertificateView:
    """The certificate of a job that is over."""
    view = certificate_view(await drains.report(job_id))
    if view is None:
        raise WrongJobState("it has no certificate before it is over", hint="`roost drain status` follows it")
    return view


def plan_view(plan: Plan) -> PlanView:
    told = msgspec.structs.asdict(plan)
    for side in ("sources", "targets"):
        told[side] = [PlannedServer(**msgspec.structs.asdict(one)) for one in told[side]]
    return PlanView(**told)


def _moment(seconds: float) -> str:
    """Empty: not yet."""
    return iso(int(seconds * 1e6)) if seconds else ""
