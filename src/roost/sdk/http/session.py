"""One HTTP session to a gateway, or to several of one store: questions, refusals and server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any, TypeVar

import msgspec
from aiohttp import ClientConnectorError, ClientError, ClientResponse, ClientSession, ClientTimeout

from roost.api.errors import ErrorReply, error_of
from roost.core.errors import OutcomeUnknown, RoostError, StoreOverloaded, StoreUnavailable
from roost.core.loops import up_to_date
from roost.core.tracing import TRACEPARENT, current_trace
from roost.sdk.http.gateways import Gateways, gateway_urls

TIMEOUT_S = 10.0
"""For a call as a whole; each of several gateways gets its share."""
BEAT_TIMEOUT_S = 4.0
"""The same for a heartbeat: shorter than the shortest default interval between two (5 s)."""
SILENCE_S = 45.0
"""A stream without even a keep-alive for so long (three of them) is dead."""
CHECK_S = 5.0
"""Of a stream that is silent for so long the gateway is asked whether it lives, if there is another one."""

Reply = TypeVar("Reply")
Query = list[tuple[str, str]]


class Foreign(StoreUnavailable):
    """Something that is not Roost answered: a proxy in between, or another program."""


class Session:
    """Raises what a direct call would raise; never an error of the HTTP library or of the decoder.

    `url` may be a comma list. A call that another gateway can safely answer is asked of the next one when a
    gateway does not answer, within the time of the call.
    """

    def __init__(self, url: str, token: str) -> None:
        self._gateways = Gateways(gateway_urls(url))
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
        timeout_s: float = TIMEOUT_S,
    ) -> Reply:
        """The reply in its type. `repeatable`: doing it twice does what doing it once does."""
        data = msgspec.json.encode(body) if body is not None else None
        call = _Call(method, path, query, data, repeatable or method == "GET")
        answer: Reply = await self._try_each(call, reply, timeout_s)
        return answer

    async def tell(
        self, method: str, path: str, *, query: Query | None = None, repeatable: bool = False
    ) -> None:
        """As `ask`, where the reply is of no interest."""
        await self._try_each(_Call(method, path, query, None, repeatable), None, TIMEOUT_S)

    async def _try_each(self, call: _Call, reply: type[Reply] | None, timeout_s: float) -> Any:
        """Ask the gateway in use; on to the next, as long as there is one and nothing can be done twice."""
        share_s = timeout_s / len(self._gateways.urls)
        for attempts_left in reversed(range(len(self._gateways.urls))):
            url = self._gateways.current
            try:
                return await self._send(url, call, reply, share_s)
            except StoreOverloaded:
                raise  # another gateway would only add to the load of the same store
            except StoreUnavailable as error:
                self._gateways.leave(url, error.message)
                if not attempts_left or not call.may_go_on_after(error):
                    raise call.lost(error) from None
            except asyncio.CancelledError:
                self._gateways.leave(url, "it took too long")
                raise
        raise AssertionError("there is a gateway")

    async def _send(self, url: str, call: _Call, reply: type[Reply] | None, timeout_s: float) -> Any:
        timeout = ClientTimeout(total=timeout_s)
        headers = {TRACEPARENT: trace} if (trace := current_trace.get()) else None
        try:
            async with self._session.request(
                call.method,
                url + call.path,
                params=call.query,
                data=call.data,
                timeout=timeout,
                headers=headers,
            ) as response:
                if response.status >= 400:
                    raise await _refusal(response)
                data = await response.read()
        except ClientConnectorError as error:
            raise _NotSent(f"no gateway answers at {url}: {_reason(error)}") from None
        except (ClientError, TimeoutError, OSError) as error:
            raise _Silent(f"the gateway at {url} did not answer: {_reason(error)}") from None
        if reply is None:
            return None
        try:
            return msgspec.json.decode(data, type=reply)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Foreign(f"the reply of {url} is not as expected: {error}") from None

    async def events(self, path: str, query: Query, last_id: str) -> AsyncGenerator[tuple[str, bytes], None]:
        """(id, data) of each event after `last_id`; ends if the gateway ends it, raises if it is cut off."""
        headers = {"Last-Event-ID": last_id} if last_id else {}
        url, share_s = self._gateways.current, TIMEOUT_S / len(self._gateways.urls)
        timeout = ClientTimeout(total=None, sock_connect=share_s, sock_read=SILENCE_S)
        try:
            async with asyncio.timeout(share_s):
                response = await self._session.get(url + path, params=query, headers=headers, timeout=timeout)
            async with response, contextlib.aclosing(_events(self._chunks(url, response))) as events:
                if response.status != 200:
                    raise await _refusal(response)
                if response.content_type != "text/event-stream":
                    raise Foreign(f"{url} answers with {response.content_type}, not with events")
                async for event in events:
                    yield event
        except StoreUnavailable as error:
            self._gateways.leave(url, error.message)
            raise
        except (ClientError, TimeoutError, OSError) as error:
            self._gateways.leave(url, _reason(error))
            raise StoreUnavailable(f"the gateway at {url} does not answer: {_reason(error)}") from None

    async def _chunks(self, url: str, response: ClientResponse) -> AsyncGenerator[bytes, None]:
        """What the stream brings. Silence is looked into where there is another gateway to go to."""
        check_s = CHECK_S if len(self._gateways.urls) > 1 else None
        while not response.content.at_eof():
            reading = asyncio.ensure_future(response.content.readany())
            try:
                while not (await asyncio.wait({reading}, timeout=check_s))[0]:
                    await self._check(url)
                chunk = reading.result()
            finally:
                reading.cancel()
            up_to_date()
            yield chunk

    async def _check(self, url: str) -> None:
        async with self._session.get(f"{url}/healthz", timeout=ClientTimeout(total=CHECK_S / 2)) as response:
            await response.read()

    async def close(self) -> None:
        await self._session.close()


class _Silent(StoreUnavailable):
    """It did not answer; what was asked may have been done."""


class _NotSent(_Silent):
    """It could not be reached: nothing was done."""


class _Call:
    """A question, as it is sent to one gateway after the other."""

    def __init__(
        self, method: str, path: str, query: Query | None, data: bytes | None, repeatable: bool
    ) -> None:
        self.method = method
        self.path = path
        self.query = query
        self.data = data
        self.repeatable = repeatable

    def may_go_on_after(self, error: StoreUnavailable) -> bool:
        """Whether asking another one is harmless: who says that its store is away did nothing."""
        return self.repeatable or not isinstance(error, (Foreign, _Silent)) or isinstance(error, _NotSent)

    def lost(self, error: StoreUnavailable) -> RoostError:
        """A reply that did not arrive: of a question that may be repeated that is no unknown outcome."""
        return error if self.may_go_on_after(error) else OutcomeUnknown(error.message)


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__


async def _refusal(response: ClientResponse) -> RoostError:
    """The error that the gateway sent, as the class it stands for."""
    retry_after = response.headers.get("Retry-After", "")
    try:
        detail = msgspec.json.decode(await response.read(), type=ErrorReply).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        problem = f"{response.url.origin()} answers {response.status}, but not as Roost does"
        foreign = Foreign(problem)
        if retry_after.isascii() and retry_after.isdecimal():
            foreign.retry_after_s = float(retry_after)
        return foreign
    return error_of(detail, retry_after)


async def _events(chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[tuple[str, bytes], None]:
    """(id, data) of each server-sent event; data is one line, as our gateway writes it."""
    event_id, data = "", b""
    buffer = bytearray()
    async with contextlib.aclosing(chunks):
        async for chunk in chunks:
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
