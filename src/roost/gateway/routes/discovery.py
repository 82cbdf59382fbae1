"""Discovery over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal

import msgspec
from aiohttp import web

from roost.api import Message
from roost.api.discovery import (
    Beat,
    BeatReply,
    InstanceDetail,
    InstanceList,
    Order,
    Registered,
    RegisterInput,
)
from roost.app import Platform
from roost.core import errors as e
from roost.core.events import Mark
from roost.discovery.cache import ListCache
from roost.gateway.peer import client_ip
from roost.gateway.route import Request, Route
from roost.gateway.stream import Event, stream
from roost.settings import parse_networks

JSON = "application/json"
INSTANCES = "/sd/v1/instances"
INSTANCE = f"{INSTANCES}/{{id}}"


class ListQuery(Message):
    type: str = "*"
    group: str = "*"
    verify: bool = False
    label: list[str] = []  # noqa: RUF012


class WatchQuery(Message):
    type: str = "*"
    group: str = "*"
    label: list[str] = []  # noqa: RUF012


class RemoveQuery(Message):
    type: str = ""
    group: str = ""
    life: str = ""
    cause: Literal["terminated", "removed"] = "terminated"


class _Handlers:
    """What answers each route; the cached lists are theirs in common."""

    def __init__(self, platform: Platform) -> None:
        self._discovery, self._prober = platform.discovery, platform.prober
        self._lists = ListCache(platform.discovery)
        self._proxies = parse_networks(platform.settings.gateway.trusted_proxies)

    async def register_instance(self, request: Request) -> Registered:
        given: RegisterInput = request.body
        if not given.public_ip:
            given.public_ip = client_ip(request.http, self._proxies)
        registered = await self._discovery.register(given)
        self._lists.forget()
        return registered

    async def heartbeat(self, request: Request) -> BeatReply:
        return await self._discovery.heartbeat(request.path["id"], request.body)

    async def list_instances(self, request: Request) -> web.Response:
        query: ListQuery = request.query
        if not query.verify:
            body = await self._lists.encoded(query.type, query.group, query.label)
            return web.Response(body=body, content_type=JSON)
        found = await self._discovery.discover(query.type, query.group, query.label)
        await self._prober.verify(found.instances)
        return web.Response(body=msgspec.json.encode(found), content_type=JSON)

    async def get_instance(self, request: Request) -> InstanceDetail:
        return await self._discovery.get(request.path["id"])

    async def remove_instance(self, request: Request) -> None:
        q: RemoveQuery = request.query
        await self._discovery.remove(request.path["id"], q.type, q.group, life=q.life, cause=q.cause)
        self._lists.forget()

    async def override_instance(self, request: Request) -> InstanceDetail:
        await self._discovery.override(request.path["id"], request.body)
        self._lists.forget()
        return await self._discovery.get(request.path["id"])

    async def watch_instances(self, request: Request) -> web.StreamResponse:
        query: WatchQuery = request.query
        after = _mark(request.http.headers.get("Last-Event-ID", ""))

        async def events() -> AsyncIterator[Event]:
            async for change in self._discovery.watch(query.type, query.group, query.label, after):
                yield Event(
                    f"{change.revision}-{change.revision_at}", change.event, msgspec.json.encode(change)
                )

        return await stream(request.http, events(), request.request_id)


def discovery_routes(platform: Platform) -> list[Route]:
    """The routes of document 003, and what grew around them."""
    on = _Handlers(platform)
    return [*_lease_routes(on), *_lookup_routes(on), *_order_routes(on), _watch_route(on)]


def _lease_routes(on: _Handlers) -> list[Route]:
    return [
        Route(
            "POST",
            INSTANCES,
            on.register_instance,
            "Register an instance",
            scope="register",
            body=RegisterInput,
            reply=Registered,
            status=201,
            errors=(e.ServerIdTaken, e.RemovedInstance, e.FencedInstance, e.InvalidId),
        ),
        Route(
            "POST",
            f"{INSTANCE}/heartbeat",
            on.heartbeat,
            "Renew the lease; OK or DRAIN",
            scope="register",
            body=Beat,
            reply=BeatReply,
            errors=(e.UnknownInstance, e.RemovedInstance, e.FencedInstance),
        ),
    ]


def _lookup_routes(on: _Handlers) -> list[Route]:
    return [
        Route(
            "GET",
            INSTANCES,
            on.list_instances,
            "Live instances; verify=true also probes them",
            scope="read",
            query=ListQuery,
            reply=InstanceList,
        ),
        Route(
            "GET",
            INSTANCE,
            on.get_instance,
            "One instance, living or gone, with its history",
            scope="read",
            reply=InstanceDetail,
            errors=(e.UnknownInstance,),
        ),
    ]


def _order_routes(on: _Handlers) -> list[Route]:
    return [
        Route(
            "DELETE",
            INSTANCE,
            on.remove_instance,
            "Take an instance out; it does not come back by itself",
            scope="register",
            query=RemoveQuery,
            status=204,
            errors=(e.UnknownInstance, e.FencedInstance),
        ),
        Route(
            "PUT",
            f"{INSTANCE}/override",
            on.override_instance,
            "Order: drain, out of service, weight; an empty order lifts it",
            scope="admin",
            body=Order,
            reply=InstanceDetail,
            errors=(e.UnknownInstance,),
        ),
    ]


def _watch_route(on: _Handlers) -> Route:
    return Route(
        "GET",
        "/sd/v1/watch",
        on.watch_instances,
        "Every change as server-sent events; Last-Event-ID goes on",
        scope="read",
        query=WatchQuery,
        content_type="text/event-stream",
    )


def _mark(text: str) -> Mark | None:
    """The mark in a Last-Event-ID, `<rev>-<at>`; None starts with a snapshot."""
    rev, _, at = text.partition("-")
    return Mark(int(rev), int(at)) if rev.isdecimal() and at.isdecimal() and len(text) < 40 else None
