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


def discovery_routes(platform: Platform) -> list[Route]:
    """The routes of document 003, and what grew around them."""
    discovery, prober = platform.discovery, platform.prober
    lists = ListCache(discovery)
    proxies = parse_networks(platform.settings.gateway.trusted_proxies)

    async def register_instance(request: Request) -> Registered:
        given: RegisterInput = request.body
        if not given.public_ip:
            given.public_ip = client_ip(request.http, proxies)
        registered = await discovery.register(given)
        lists.forget()
        return registered

    async def heartbeat(request: Request) -> BeatReply:
        return await discovery.heartbeat(request.path["id"], request.body)

    async def list_instances(request: Request) -> web.Response:
        query: ListQuery = request.query
        if not query.verify:
            body = await lists.encoded(query.type, query.group, query.label)
            return web.Response(body=body, content_type=JSON)
        found = await discovery.discover(query.type, query.group, query.label)
        await prober.verify(found.instances)
        return web.Response(body=msgspec.json.encode(found), content_type=JSON)

    async def get_instance(request: Request) -> InstanceDetail:
        return await discovery.get(request.path["id"])

    async def remove_instance(request: Request) -> None:
        q: RemoveQuery = request.query
        await discovery.remove(request.path["id"], q.type, q.group, life=q.life, cause=q.cause)
        lists.forget()

    async def override_instance(request: Request) -> InstanceDetail:
        await discovery.override(request.path["id"], request.body)
        lists.forget()
        return await discovery.get(request.path["id"])

    async def watch_instances(request: Request) -> web.StreamResponse:
        query: WatchQuery = request.query
        after = _mark(request.http.headers.get("Last-Event-ID", ""))

        async def events() -> AsyncIterator[Event]:
            async for change in discovery.watch(query.type, query.group, query.label, after):
                yield Event(
                    f"{change.revision}-{change.revision_at}", change.event, msgspec.json.encode(change)
                )

        return await stream(request.http, events(), request.request_id)

    refused = (e.UnknownInstance, e.RemovedInstance, e.FencedInstance)
    instances = "/sd/v1/instances"
    return [
        Route(
            "POST",
            instances,
            register_instance,
            "Register an instance",
            scope="register",
            body=RegisterInput,
            reply=Registered,
            status=201,
            errors=(e.ServerIdTaken, e.RemovedInstance, e.FencedInstance, e.InvalidId),
        ),
        Route(
            "POST",
            f"{instances}/{{id}}/heartbeat",
            heartbeat,
            "Renew the lease; OK or DRAIN",
            scope="register",
            body=Beat,
            reply=BeatReply,
            errors=refused,
        ),
        Route(
            "GET",
            instances,
            list_instances,
            "Live instances; verify=true also probes them",
            scope="read",
            query=ListQuery,
            reply=InstanceList,
        ),
        Route(
            "GET",
            f"{instances}/{{id}}",
            get_instance,
            "One instance, living or gone, with its history",
            scope="read",
            reply=InstanceDetail,
            errors=(e.UnknownInstance,),
        ),
        Route(
            "DELETE",
            f"{instances}/{{id}}",
            remove_instance,
            "Take an instance out; it does not come back by itself",
            scope="register",
            query=RemoveQuery,
            status=204,
            errors=(e.UnknownInstance, e.FencedInstance),
        ),
        Route(
            "PUT",
            f"{instances}/{{id}}/override",
            override_instance,
            "Order: drain, out of service, weight; an empty order lifts it",
            scope="admin",
            body=Order,
            reply=InstanceDetail,
            errors=(e.UnknownInstance,),
        ),
        Route(
            "GET",
            "/sd/v1/watch",
            watch_instances,
            "Every change as server-sent events; Last-Event-ID goes on",
            scope="read",
            query=WatchQuery,
            content_type="text/event-stream",
        ),
    ]


def _mark(text: str) -> Mark | None:
    """The mark in a Last-Event-ID, `<rev>-<at>`; None starts with a snapshot."""
    rev, _, at = text.partition("-")
    return Mark(int(rev), int(at)) if rev.isdecimal() and at.isdecimal() and len(text) < 40 else None
