"""The audit log over HTTP."""

from __future__ import annotations

from typing import Annotated

import msgspec
from aiohttp import web

from roost.api import Message
from roost.api.audit import MAX_ENTRIES, AuditPage
from roost.api.limits import Moment, shown
from roost.audit.model import Wanted
from roost.audit.service import since_of
from roost.gateway.context import Gateway
from roost.web.route import Request, Route

NDJSON = "application/x-ndjson"
LISTED = 50


class ExportQuery(Message):
    name: str = ""
    """Of the token."""
    action: str = ""
    """All that begin so: `drain` is every verb of drains."""
    target: str = ""
    """All that hold this."""
    since: Moment = ""


class EntriesQuery(ExportQuery):
    limit: Annotated[int, shown(minimum=1, maximum=MAX_ENTRIES)] = LISTED
    before: Annotated[str, shown(pattern="^([1-9][0-9]{0,14})?$")] = ""
    """`next` of the page before; empty: from the newest on."""


class AuditRoutes:
    def __init__(self, gateway: Gateway) -> None:
        self._audit = gateway.platform.audit

    async def list_audit_entries(self, request: Request) -> AuditPage:
        query: EntriesQuery = request.query
        return await self._audit.entries(_wanted(query), query.limit, query.before)

    async def get_audit_export(self, request: Request) -> web.StreamResponse:
        wanted = _wanted(request.query)
        since_of(wanted.since)  # while there can be an answer other than a stream
        response = web.StreamResponse(headers={"Content-Type": NDJSON, "X-Request-Id": request.request_id})
        await response.prepare(request.open)
        if request.open.method == "HEAD":
            return response
        async for entry in self._audit.export(wanted):
            await response.write(msgspec.json.encode(entry) + b"\n")
        await response.write_eof()
        return response


def _wanted(query: ExportQuery) -> Wanted:
    return Wanted(query.name, query.action, query.target, query.since)


def routes(gateway: Gateway) -> list[Route]:
    on = AuditRoutes(gateway)
    return [
        Route(
            "GET",
            "/audit/v1/entries",
            on.list_audit_entries,
            "What operators did, newest first: who, when, from where, to what, and what came of it",
            scope="read",
            query=EntriesQuery,
            reply=AuditPage,
        ),
        Route(
            "GET",
            "/audit/v1/export",
            on.get_audit_export,
            "The same as JSON lines, oldest first, all of them",
            scope="read",
            query=ExportQuery,
            content_type=NDJSON,
        ),
    ]
