"""The request of document 001's admin page, by a token in a header alone: no other page can send one."""

from __future__ import annotations

import msgspec

from roost.api import Message
from roost.api.binding import UnknownHolder
from roost.api.drain import (
    DrainInput,
    HotfixReply,
    InvalidServerList,
    LastServer,
    NowhereToMove,
    SchemaPoint,
    Servers,
    WrongJobState,
)
from roost.binding.drain import views
from roost.core.errors import InvalidId, InvalidInput, MethodNotAllowed, Unavailable
from roost.gateway import recording
from roost.gateway.context import Gateway
from roost.web.acts import Act
from roost.web.route import Handler, Request, Route

PATH = "/admin/v1/hotfix"


class HotfixQuery(Message):
    nodes: Servers = msgspec.field(name="nodes[]", default_factory=list)
    """Server ids to empty, one each."""


def routes(gateway: Gateway) -> list[Route]:
    on = HotfixRoutes(gateway)
    return [on.route("GET", on.start_hotfix_by_get), on.route("POST", on.start_hotfix)]


class HotfixRoutes:
    def __init__(self, gateway: Gateway) -> None:
        self._drains = gateway.platform.drains

    def route(self, method: str, handler: Handler) -> Route:
        return Route(
            method,
            PATH,
            handler,
            "Move all users off these entity servers: the same job as /drain/v1/jobs",
            scope="admin",
            by_header_only=True,
            act=Act("drain.hotfix", "job", after=recording.of_hotfix, made=recording.hotfix_job),
            query=HotfixQuery,
            reply=HotfixReply,
            errors=(InvalidServerList, NowhereToMove, LastServer, SchemaPoint, WrongJobState, Unavailable),
        )

    async def start_hotfix_by_get(self, request: Request) -> HotfixReply:
        if request.http.method == "HEAD":  # which promises to change nothing
            refusal = MethodNotAllowed(f"{PATH} takes GET, POST")
            refusal.allowed = ("GET", "POST")
            raise refusal
        return await self.start_hotfix(request)

    async def start_hotfix(self, request: Request) -> HotfixReply:
        nodes: list[str] = request.query.nodes
        if not nodes:
            raise InvalidServerList
        try:
            job = await self._drains.start(views.request_of(DrainInput(nodes, by="hotfix")))
        except (InvalidId, InvalidInput, UnknownHolder) as error:
            raise InvalidServerList(hint=error.message) from None
        return HotfixReply("success", "Received nodes", nodes, job.id)
