"""Through a gateway, for machines that may not or need not reach the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from aiohttp import ClientConnectorError, ClientError, ClientResponse, ClientSession, ClientTimeout

from roost.api.discovery import (
    Beat,
    BeatReply,
    Change,
    InstanceDetail,
    InstanceList,
    Registered,
    RegisterInput,
)
from roost.api.errors import ErrorReply, error_of
from roost.api.queue import (
    ConsumeInput,
    ConsumeReply,
    ReleaseInput,
    ReleaseReply,
    ReportInput,
    ReportReply,
)
from roost.core.errors import OutcomeUnknown, RoostError, StoreUnavailable

TIMEOUT_S = 10.0
SILENCE_S = 45.0
"""A stream without even a keep-alive for so long (three of them) is dead."""

Reply = TypeVar("Reply")
_INSTANCES = "/sd/v1/instances"


class HttpTransport:
    def __init__(self, url: str, token: str) -> None:
        self._url = url.rstrip("/")
        headers = {"X-API-Token": token} if token else {}
        self._session = ClientSession(headers=headers, timeout=ClientTimeout(total=TIMEOUT_S))

    async def register(self, given: RegisterInput) -> Registered:
        registered: Registered = await self._ask("POST", _INSTANCES, Registered, body=given)
        return registered

    async def heartbeat(self, instance_id: str, beat: Beat) -> BeatReply:
        # Sending a beat twice does what sending it once does, so a lost answer is no unknown outcome.
        path = f"{_INSTANCES}/{quote(instance_id, safe='')}/heartbeat"
        reply: BeatReply = await self._ask("POST", path, BeatReply, body=beat, again=True)
        return reply

    async def discover(self, type_: str, group: str, labels: Sequence[str], verify: bool) -> InstanceList:
        query = [("type", type_), ("group", group), *(("label", label) for label in labels)]
        if verify:
            query.append(("verify", "true"))
        found: InstanceList = await self._ask("GET", _INSTANCES, InstanceList, query=query)
        return found

    async def get(self, instance_id: str) -> InstanceDetail:
        path = f"{_INSTANCES}/{quote(instance_id, safe='')}"
        detail: InstanceDetail = await self._ask("GET", path, InstanceDetail)
        return detail

    async def remove(self, instance_id: str, type_: str, group: str, life: str) -> None:
        named = (("type", type_), ("group", group), ("life", life))
        query = [(name, value) for name, value in named if value]
        await self._ask(
            "DELETE", f"{_INSTANCES}/{quote(instance_id, safe='')}", None, query=query, again=True
        )

    async def watch(self, type_: str, group: str, labels: Sequence[str]) -> AsyncIterator[Change]:
        query = [("type", type_), ("group", group), *(("label", label) for label in labels)]
        last_id = ""
        while True:
            headers = {"Last-Event-ID": last_id} if last_id else {}
            timeout = ClientTimeout(total=None, sock_connect=TIMEOUT_S, sock_read=SILENCE_S)
            try:
                async with self._session.get(
                    f"{self._url}/sd/v1/watch", params=query, headers=headers, timeout=timeout
                ) as response:
                    if response.status != 200:
                        raise await _refusal(response)
                    async for event_id, data in _events(response):
                        last_id = event_id
                        yield msgspec.json.decode(data, type=Change)
            except (ClientError, TimeoutError, OSError) as error:
                if not last_id:
                    raise StoreUnavailable(f"the gateway at {self._url} does not answer: {error}") from None
            await asyncio.sleep(0.5)

    async def consume(self, given: ConsumeInput) -> ConsumeReply:
        reply: ConsumeReply = await self._ask(
            "POST", "/api/queue/tickets/consume", ConsumeReply, body=given, again=True
        )
        return reply

    async def release(self, world: str, server_id: str, given: ReleaseInput) -> ReleaseReply:
        path = f"{_server_path(world, server_id)}/release"
        reply: ReleaseReply = await self._ask("POST", path, ReleaseReply, body=given, again=True)
        return reply

    async def report(self, world: str, server_id: str, given: ReportInput) -> ReportReply:
        path = f"{_server_path(world, server_id)}/report"
        reply: ReportReply = await self._ask("POST", path, ReportReply, body=given, again=True)
        return reply

    async def close(self) -> None:
        await self._session.close()

    async def _ask(
        self,
        method: str,
        path: str,
        reply: type[Reply] | None,
        *,
        query: list[tuple[str, str]] | None = None,
        body: Any = None,
        again: bool = False,
    ) -> Any:
        """The reply in its type; a refusal as the class that a direct call would raise."""
        data = msgspec.json.encode(body) if body is not None else None
        try:
            async with self._session.request(method, self._url + path, params=query, data=data) as response:
                if response.status >= 400:
                    raise await _refusal(response)
                return msgspec.json.decode(await response.read(), type=reply) if reply is not None else None
        except ClientConnectorError as error:
            raise StoreUnavailable(f"no gateway answers at {self._url}: {error.os_error}") from None
        except (ClientError, TimeoutError, OSError) as error:
            problem = f"the gateway at {self._url} did not answer: {error or type(error).__name__}"
            if method == "GET" or again:
                raise StoreUnavailable(problem) from None
            raise OutcomeUnknown(problem) from None


def _server_path(world: str, server_id: str) -> str:
    return f"/queue/v1/worlds/{quote(world, safe='')}/servers/{quote(server_id, safe='')}"


async def _refusal(response: ClientResponse) -> RoostError:
    """The error that the gateway sent, as the class it stands for."""
    try:
        detail = msgspec.json.decode(await response.read(), type=ErrorReply).error
    except msgspec.DecodeError:
        return StoreUnavailable(f"{response.url.origin()} answers {response.status}, but not as Roost does")
    return error_of(detail)


async def _events(response: ClientResponse) -> AsyncIterator[tuple[str, bytes]]:
    """(id, data) of each server-sent event; data is one line, as our gateway writes it."""
    event_id, data = "", b""
    buffer = bytearray()
    async for chunk in response.content.iter_any():
        buffer += chunk
        *lines, rest = bytes(buffer).split(b"\n")
        buffer = bytearray(rest)
        for line in lines:
            if line.startswith(b"id: "):
                event_id = line[4:].decode()
            elif line.startswith(b"data: "):
                data = line[6:]
            elif not line and data:
                yield event_id, data
                data = b""
