"""What happens and how things are, over HTTP."""

from __future__ import annotations

from aiohttp import web

from roost.api import Message
from roost.api.events import EVENT_SCOPES, EventScope
from roost.api.overview import Overview
from roost.core.errors import Unavailable
from roost.gateway.context import Gateway
from roost.web.auth import asks_again
from roost.web.route import Header, Request, Route
from roost.web.stream import stream


class EventsQuery(Message):
    scope: list[EventScope] = []  # noqa: RUF012
    """What to hear of; none: everything."""


class EventRoutes:
    def __init__(self, gateway: Gateway) -> None:
        self._live = gateway.live
        self._tokens = gateway.tokens

    async def watch_events(self, request: Request) -> web.StreamResponse:
        scopes = request.query.scope or EVENT_SCOPES
        after = request.http.headers.get("Last-Event-ID", "")
        async with self._live.viewing(scopes, after) as viewer:
            still_allowed = asks_again(self._tokens, request.http)
            return await stream(request.open, self._live.events(viewer), request.request_id, still_allowed)

    async def get_overview(self, request: Request) -> Overview:
        try:
            return await self._live.overview()
        except TimeoutError:
            raise Unavailable("the overview is not ready yet", hint="ask again in a moment") from None


def routes(gateway: Gateway) -> list[Route]:
    on = EventRoutes(gateway)
    return [
        Route(
            "GET",
            "/events/v1",
            on.watch_events,
            "Everything that happens, as server-sent events with a sentence each; Last-Event-ID goes on",
            scope="read",
            query=EventsQuery,
            content_type="text/event-stream",
            headers=(
                Header(
                    "Last-Event-ID",
                    "Of the last event seen: goes on from there, or says `gap` and goes on from now.",
                ),
            ),
        ),
        Route(
            "GET",
            "/overview/v1",
            on.get_overview,
            "Everything at a glance: worlds, servers, homes, jobs, orders, health, what needs attention",
            scope="read",
            reply=Overview,
            errors=(Unavailable,),
        ),
    ]
