"""What happens and how things are, over HTTP."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from roost.api import Message
from roost.api.events import EVENT_SCOPES, EventScope
from roost.api.overview import Overview
from roost.core.errors import Unavailable
from roost.core.grants import Grant
from roost.gateway.context import Gateway
from roost.web.auth import COOKIE, token_in
from roost.web.plain import Asked
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
            events = self._live.events(viewer, self._asks_again(request.http))
            return await stream(request.open, events, request.request_id)

    async def get_overview(self, request: Request) -> Overview:
        try:
            return await self._live.overview()
        except TimeoutError:
            raise Unavailable("the overview is not ready yet", hint="ask again in a moment") from None

    def _asks_again(self, http: Asked) -> Callable[[], Awaitable[object]]:
        """Whether whoever began the stream may still look."""
        token, cookie = token_in(http.headers), http.cookies.get(COOKIE, "")

        async def check() -> Grant:
            if token:
                return await self._tokens.identify(token)
            return (await self._tokens.session(cookie)).grant

        return check


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
