"""Discovery through a gateway."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncGenerator, Sequence
from typing import Literal
from urllib.parse import quote

import msgspec

from roost.api import Message
from roost.api.discovery import (
    Beat,
    BeatReply,
    Change,
    EndCause,
    Instance,
    InstanceDetail,
    InstanceList,
    Registered,
    RegisterInput,
)
from roost.core.events import Mark
from roost.sdk.http.session import BEAT_TIMEOUT_S, Query, Session

log = logging.getLogger("roost.sdk")

_INSTANCES = "/sd/v1/instances"


class HttpRegistry:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def register(self, given: RegisterInput) -> Registered:
        return await self._session.ask("POST", _INSTANCES, Registered, body=given)

    async def heartbeat(self, instance_id: str, beat: Beat) -> BeatReply:
        path = f"{_path(instance_id)}/heartbeat"
        return await self._session.ask(
            "POST", path, BeatReply, body=beat, repeatable=True, timeout_s=BEAT_TIMEOUT_S
        )

    async def discover(self, type_: str, group: str, labels: Sequence[str], verify: bool) -> InstanceList:
        query = _query(type_, group, labels)
        if verify:
            query.append(("verify", "true"))
        return await self._session.ask("GET", _INSTANCES, InstanceList, query=query)

    async def get(self, instance_id: str) -> InstanceDetail:
        return await self._session.ask("GET", _path(instance_id), InstanceDetail)

    async def remove(
        self, instance_id: str, type_: str, group: str, life: str, cause: EndCause = "terminated"
    ) -> None:
        named = (("type", type_), ("group", group), ("life", life), ("cause", cause))
        query = [(name, value) for name, value in named if value]
        await self._session.tell("DELETE", _path(instance_id), query=query, repeatable=True)

    async def watch(
        self, type_: str, group: str, labels: Sequence[str], after: Mark | None
    ) -> AsyncGenerator[Change, None]:
        last_id = f"{after.rev}-{after.at}" if after is not None else ""
        stream = self._session.events("/sd/v1/watch", _query(type_, group, labels), last_id)
        async with contextlib.aclosing(stream) as events:
            async for event_id, data in events:
                change = read_change(event_id, data)
                if change is not None:
                    yield change


def _path(instance_id: str) -> str:
    return f"{_INSTANCES}/{quote(instance_id, safe='')}"


def _query(type_: str, group: str, labels: Sequence[str]) -> Query:
    return [("type", type_), ("group", group), *(("label", label) for label in labels)]


class _Snapshot(Message):
    """A snapshot whose instances are not decoded yet."""

    event: Literal["snapshot"]
    revision: int
    revision_at: str
    instances: list[msgspec.Raw]


def read_change(event_id: str, data: bytes) -> Change | None:
    """The change in an event; None if it cannot be read, which is logged.

    Of a snapshot only the instances that cannot be read are left out: the others must not suffer for them.
    """
    try:
        return msgspec.json.decode(data, type=Change)
    except msgspec.DecodeError as error:
        reason = str(error)
    with contextlib.suppress(msgspec.DecodeError):
        part = msgspec.json.decode(data, type=_Snapshot)
        readable = [found for raw in part.instances if (found := _read_instance(raw)) is not None]
        return Change("snapshot", part.revision, part.revision_at, instances=readable)
    log.error("unreadable change skipped", extra={"eventId": event_id, "reason": reason})
    return None


def _read_instance(raw: msgspec.Raw) -> Instance | None:
    try:
        return msgspec.json.decode(raw, type=Instance)
    except msgspec.DecodeError as error:
        record = bytes(raw)[:200].decode(errors="replace")
        log.error("unreadable instance skipped", extra={"record": record, "reason": str(error)})
        return None
