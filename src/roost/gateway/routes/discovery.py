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
    Override,
    Registered,
    RegisterInput,
)
from roost.api.limits import Name, OptionalLife, OptionalName
from roost.core import errors as e
from roost.core.events import Mark
from roost.core.grants import Target
from roost.core.ids import check_service
from roost.gateway import recording
from roost.gateway.context import Gateway
from roost.gateway.owners import Owners
from roost.web.acts import Act
from roost.web.auth import asks_again
from roost.web.peer import client_ip
from roost.web.plain import Asked
from roost.web.route import Encoded, Header, Request, Route
from roost.web.stream import Event, stream

INSTANCES = "/sd/v1/instances"
INSTANCE = f"{INSTANCES}/{{id}}"


class ListQuery(Message):
    type: Name = "*"
    group: Name = "*"
    verify: bool = False
    label: list[str] = []  # noqa: RUF012


class DetailQuery(Message):
    verify: bool = False
    """Probe it now; a second look within moments gets the same answer."""


class WatchQuery(Message):
    type: Name = "*"
    group: Name = "*"
    label: list[str] = []  # noqa: RUF012


class RemoveQuery(Message):
    type: OptionalName = ""
    group: OptionalName = ""
    life: OptionalLife = ""
    cause: Literal["terminated", "crashed", "removed"] = "terminated"


class DiscoveryRoutes:
    def __init__(self, gateway: Gateway) -> None:
        platform = gateway.platform
        self._discovery, self._verifier, self._lists = platform.discovery, platform.verifier, platform.lists
        self._tokens = gateway.tokens
        self._keyring = platform.worlds.keyring
        self._proxies = gateway.proxies
        self._owners = Owners(platform.discovery.get)

    # -- what a call acts on

    async def registers(self, request: Request) -> list[Target]:
        """The server that is registered, and the one whose place it takes by its id."""
        given: RegisterInput = request.body
        taken = given.instance_id
        self._owners.forget(taken)
        replaced = await self._owners.of(taken) if taken else []
        return [Target(type=given.type, server_id=given.server_id), *replaced]

    async def beats(self, request: Request) -> list[Target]:
        return await self._owners.of(request.path["id"])

    async def removes(self, request: Request) -> list[Target]:
        self._owners.forget(request.path["id"])
        return await self._owners.of(request.path["id"])

    # -- for the audit log

    async def instance_before(self, request: Request) -> object:
        return recording.of_instance(await self._discovery.get(request.path["id"]))

    async def override_before(self, request: Request) -> object:
        return recording.of_override(await self._discovery.get(request.path["id"]))

    # -- verbs

    async def register_instance(self, request: Request) -> Registered:
        given: RegisterInput = request.body
        if not given.public_ip:
            given.public_ip = client_ip(request.http, self._proxies)
        registered = await self._discovery.register(given, decoded=True)
        registered.proof = self._keyring.life_proof(
            given.server_id or registered.instance_id, registered.life
        )
        return registered

    async def send_heartbeat(self, request: Request) -> BeatReply:
        beat: Beat = request.body
        reply = await self._discovery.heartbeat(request.path["id"], beat, decoded=True)
        reply.proof = self._keyring.renewed_proof(beat.proof, beat.life)
        return reply

    async def list_instances(self, request: Request) -> Encoded:
        query: ListQuery = request.query
        if not query.verify:
            body = await self._lists.encoded(query.type, query.group, query.label)
            return Encoded(body)
        found = await self._discovery.discover(query.type, query.group, query.label)
        await self._verifier.verify(found.instances)
        return Encoded(msgspec.json.encode(found))

    async def get_instance(self, request: Request) -> InstanceDetail:
        found = await self._discovery.get(request.path["id"])
        if request.query.verify and found.instance is not None:
            await self._verifier.verify([found.instance])
        return found

    async def remove_instance(self, request: Request) -> None:
        q: RemoveQuery = request.query
        if q.cause == "removed":  # it does not come back by itself: that is an operator's word
            request.grant.check_scope("admin")
        await self._discovery.remove(request.path["id"], q.type, q.group, life=q.life, cause=q.cause)

    async def override_instance(self, request: Request) -> InstanceDetail:
        await self._discovery.override(request.path["id"], request.body)
        return await self._discovery.get(request.path["id"])

    async def watch_instances(self, request: Request) -> web.StreamResponse:
        query: WatchQuery = request.query
        check_service(query.type, query.group)  # while there can be an answer other than a stream
        after = _mark(request.http.headers.get("Last-Event-ID", ""))

        async def events() -> AsyncIterator[Event]:
            async for change in self._discovery.watch(query.type, query.group, query.label, after):
                yield Event(
                    f"{change.revision}-{change.revision_at}", change.event, msgspec.json.encode(change)
                )

        still_allowed = asks_again(self._tokens, request.http)
        return await stream(request.open, events(), request.request_id, still_allowed)


def routes(gateway: Gateway) -> list[Route]:
    """The routes of document 003, and what grew around them."""
    on = DiscoveryRoutes(gateway)
    return [*_lease_routes(on), *_lookup_routes(on), *_operator_routes(on), _watch_route(on)]


def _lease_routes(on: DiscoveryRoutes) -> list[Route]:
    return [
        Route(
            "POST",
            INSTANCES,
            on.register_instance,
            "Register an instance",
            scope="register",
            acts_on=on.registers,
            body=RegisterInput,
            reply=Registered,
            status=201,
            errors=(e.UnknownInstance, e.ServerIdTaken, e.RemovedInstance, e.FencedInstance),
        ),
        Route(
            "POST",
            f"{INSTANCE}/heartbeat",
            on.send_heartbeat,
            "Renew the lease; OK or DRAIN",
            scope="register",
            acts_on=on.beats,
            body=Beat,
            may_lack_body=True,
            reply=BeatReply,
            errors=(e.UnknownInstance, e.RemovedInstance, e.FencedInstance),
        ),
    ]


def _lookup_routes(on: DiscoveryRoutes) -> list[Route]:
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
            "One instance, living or gone, with its history; verify=true also probes it",
            scope="read",
            query=DetailQuery,
            reply=InstanceDetail,
            errors=(e.UnknownInstance,),
        ),
    ]


def _operator_routes(on: DiscoveryRoutes) -> list[Route]:
    return [
        Route(
            "DELETE",
            INSTANCE,
            on.remove_instance,
            "Take an instance out; cause=removed needs the scope admin, and it does not come back by itself",
            scope="register",
            acts_on=on.removes,
            query=RemoveQuery,
            act=Act(
                "instance.remove", "instance/{id}", on.instance_before, counts=lambda http, _: _for_good(http)
            ),
            status=204,
            errors=(e.UnknownInstance, e.FencedInstance),
        ),
        Route(
            "PUT",
            f"{INSTANCE}/override",
            on.override_instance,
            "Override: drain, out of service, weight; an empty one lifts it",
            scope="admin",
            act=Act("instance.override", "instance/{id}", on.override_before, recording.of_override),
            body=Override,
            reply=InstanceDetail,
            errors=(e.UnknownInstance,),
        ),
    ]


def _watch_route(on: DiscoveryRoutes) -> Route:
    return Route(
        "GET",
        "/sd/v1/watch",
        on.watch_instances,
        "Every change as server-sent events; Last-Event-ID goes on",
        scope="read",
        query=WatchQuery,
        content_type="text/event-stream",
        headers=(
            Header(
                "Last-Event-ID",
                "`<revision>-<revisionAt>` of the last change seen: goes on from there. "
                "One that does not fit begins with a snapshot.",
                "^[0-9]{1,19}-[0-9]{1,19}$",
            ),
        ),
    )


def _for_good(http: Asked) -> bool:
    """A server's own end is none of an operator."""
    return http.query.get("cause") == "removed"


def _mark(text: str) -> Mark | None:
    """The mark in a Last-Event-ID, `<rev>-<at>`; None starts with a snapshot."""
    rev, _, at = text.partition("-")
    return Mark(int(rev), int(at)) if rev.isdecimal() and at.isdecimal() and len(text) < 40 else None
