"""Drains over HTTP: empty servers while their users play, and see how it went."""

from __future__ import annotations

from typing import Annotated

from roost.api import Message
from roost.api.binding import UnknownHolder
from roost.api.drain import (
    MAX_JOBS,
    CertificateView,
    DrainInput,
    DrainReply,
    JobList,
    JobView,
    LastServer,
    NowhereToMove,
    SchemaPoint,
    UnknownJob,
    WrongJobState,
)
from roost.api.limits import shown
from roost.binding.drain import views
from roost.core.errors import Unavailable
from roost.gateway import recording
from roost.gateway.context import Gateway
from roost.web.acts import Act
from roost.web.plain import Asked
from roost.web.route import Handler, Request, Route

LISTED = 20


class PlanQuery(Message):
    plan: bool = False
    """Only tell what would be done; the same as the field."""


class ListQuery(Message):
    limit: Annotated[int, shown(minimum=1, maximum=MAX_JOBS)] = LISTED


def routes(gateway: Gateway) -> list[Route]:
    on = DrainRoutes(gateway)
    jobs = "/drain/v1/jobs"
    job = f"{jobs}/{{id}}"
    return [
        Route(
            "POST",
            jobs,
            on.start_drain,
            "Move all users off servers, or from crowded to empty ones; or tell what that would do",
            scope="admin",
            act=Act(
                "drain.start",
                "job",
                after=recording.of_started,
                made=recording.started_job,
                counts=_is_no_plan,
            ),
            query=PlanQuery,
            body=DrainInput,
            reply=DrainReply,
            errors=(UnknownHolder, NowhereToMove, LastServer, SchemaPoint, WrongJobState, Unavailable),
        ),
        Route(
            "GET",
            jobs,
            on.list_drains,
            "The jobs, newest first",
            scope="read",
            query=ListQuery,
            reply=JobList,
        ),
        Route(
            "GET",
            job,
            on.get_drain,
            "A job: who has moved, who has not and why, how fast, at what pause",
            scope="read",
            reply=JobView,
            errors=(UnknownJob,),
        ),
        Route(
            "GET",
            f"{job}/report",
            on.report_drain,
            "What the gates counted: lost, doubled, reordered; never zero where a gate is missing",
            scope="read",
            reply=CertificateView,
            errors=(UnknownJob, WrongJobState),
        ),
        on.verb(job, "pause", on.pause_drain, "Move nobody more for now"),
        on.verb(job, "resume", on.resume_drain, "Go on with a job that is paused"),
        on.verb(job, "cancel", on.cancel_drain, "End a job; who has moved stays where they are"),
        on.verb(job, "rollback", on.rollback_drain, "Move those who have moved back to where they came from"),
    ]


def _is_no_plan(http: Asked, body: DrainInput | None) -> bool:
    """Whether something would be done; of a body that was not read it is taken so."""
    return http.query.get("plan", "").lower() not in ("true", "1") and not (body is not None and body.plan)


class DrainRoutes:
    def __init__(self, gateway: Gateway) -> None:
        self._drains = gateway.platform.drains

    def verb(self, job: str, name: str, handler: Handler, summary: str) -> Route:
        """A route that an operator changes a job by."""
        return Route(
            "POST",
            f"{job}/{name}",
            handler,
            summary,
            scope="admin",
            act=Act(f"drain.{name}", "job/{id}", self.job_before, recording.of_job),
            reply=JobView,
            errors=(UnknownJob, WrongJobState, SchemaPoint, NowhereToMove),
        )

    async def job_before(self, request: Request) -> object:
        return recording.of_job(await self.get_drain(request))

    async def start_drain(self, request: Request) -> DrainReply:
        wanted = views.request_of(request.body)
        if request.query.plan or request.body.plan:
            return DrainReply(plan=views.plan_view(await self._drains.plan(wanted)))
        return DrainReply(job=views.job_view(await self._drains.start(wanted)))

    async def list_drains(self, request: Request) -> JobList:
        return await views.job_list(self._drains, request.query.limit)

    async def get_drain(self, request: Request) -> JobView:
        return views.job_view(await self._drains.get(request.path["id"]))

    async def report_drain(self, request: Request) -> CertificateView:
        return await views.report_of(self._drains, request.path["id"])

    async def pause_drain(self, request: Request) -> JobView:
        return views.job_view(await self._drains.pause(request.path["id"]))

    async def resume_drain(self, request: Request) -> JobView:
        return views.job_view(await self._drains.resume(request.path["id"]))

    async def cancel_drain(self, request: Request) -> JobView:
        return views.job_view(await self._drains.cancel(request.path["id"]))

    async def rollback_drain(self, request: Request) -> JobView:
        return views.job_view(await self._drains.rollback(request.path["id"]))
