"""One HTTP session to a gateway: questions, refusals and server-sent events."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from typing import Any, TypeVar

import msgspec
from aiohttp import ClientConnectorError, ClientError, ClientResponse, ClientSession, ClientTimeout

from roost.api.errors import ErrorDetail, ErrorReply, error_of
from roost.core.errors import OutcomeUnknown, RoostError, StoreUnavailable

TIMEOUT_S = 10.0
SILENCE_S = 45.0
"""A stream without even a keep-alive for so long (three of them) is dead."""

Reply = TypeVar("Reply")
Query = list[tuple[str, str]]


class Session:
    """Raises what a direct call would raise; never an error of the HTTP library or of the decoder."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url.rstrip("/")
        headers = {"X-API-Token": token} if token else {}
        self._session = ClientSession(headers=headers, timeout=ClientTimeout(total=TIMEOUT_S))

    async def ask(
        self,
        method: str,
        path: str,
        reply: type[Reply],
        *,
        query: Query | None = None,
        body: Any = None,
        repeatable: bool = False,
    ) -> Reply:
        """The reply in its type. `repeatable`: doing it twice does what doing it once does."""
        data = await self._send(method, path, query, body, repeatable)
        try:
            return msgspec.json.decode(data, type=reply)
        except msgspec.DecodeError as error:
            raise _lost(method, repeatable, f"the reply of {self._url} is not as expected: {error}") from None

    async def tell(
        self, method: str, path: str, *, query: Query | None = None, repeatable: bool = False
    ) -> None:
        """As `ask`, where the reply is of no interest."""
        await self._send(method, path, query, None, repeatable)

    async def events(self, path: str, query: Query, last_id: str) -> AsyncGenerator[tuple[str, bytes], None]:
        """(id, data) of each event after `last_id`; ends if the gateway ends it, raises if it is cut off."""
        headers = {"Last-Event-ID": last_id} if last_id else {}
        timeout = ClientTimeout(total=None, sock_connect=TIMEOUT_S, sock_read=SILENCE_S)
        try:
            async with self._session.get(
                self._url + path, params=query, headers=headers, timeout=timeout
            ) as response:
                if response.status != 200:
                    raise await _refusal(response)
                async with contextlib.aclosing(_events(response)) as events:
                    async for event in events:
                        yield event
        except (ClientError, TimeoutError, OSError) as error:
            raise StoreUnavailable(f"the gateway at {self._url} does not answer: {error}") from None

    async def close(self) -> None:
        await self._session.close()

    async def _send(self, method: str, path: str, query: Query | None, body: Any, repeatable: bool) -> bytes:
        data = msgspec.json.encode(body) if body is not None else None
        try:
            async with self._session.request(method, self._url + path, params=query, data=data) as response:
                if response.status >= 400:
                    raise await _refusal(response)
                return await response.read()
        except ClientConnectorError as error:
            raise StoreUnavailable(f"no gateway answers at {self._url}: {error.os_error}") from None
        except (ClientError, TimeoutError, OSError) as error:
            problem = f"the gateway at {self._url} did not answer: {error or type(error).__name__}"
            raise _lost(method, repeatable, problem) from None


def _lost(method: str, repeatable: bool, problem: str) -> RoostError:
    """A reply that did not arrive: of a question that may be repeated that is no unknown outcome."""
    return StoreUnavailable(problem) if method == "GET" or repeatable else OutcomeUnknown(problem)


async def _refusal(response: ClientResponse) -> RoostError:
    """The error that the gateway sent, as the class it stands for."""
    retry_after = response.headers.get("Retry-After", "")
    try:
        detail = msgspec.json.decode(await response.read(), type=ErrorReply).error
    except msgspec.DecodeError:
        problem = f"{response.url.origin()} answers {response.status}, but not as Roost does"
        return error_of(ErrorDetail(StoreUnavailable.code, problem, "", ""), retry_after)
    return error_of(detail, retry_after)


async def _events(response: ClientResponse) -> AsyncGenerator[tuple[str, bytes], None]:
    """(id, data) of each server-sent event; data is one line, as our gateway writes it."""
    event_id, data = "", b""
    buffer = bytearray()
    async for chunk in response.content.iter_any():
        buffer += chunk
        *lines, rest = bytes(buffer).split(b"\n")
        buffer = bytearray(rest)
        for line in lines:
            if line.startswith(b"id: "):
                event_id = line[4:].decode(errors="replace")
            elif line.startswith(b"data: "):
                data = line[6:]
            elif not line and data:
                yield event_id, data
                data = b""
