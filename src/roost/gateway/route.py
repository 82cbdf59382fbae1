"""One typed table of routes drives routing, validation, the OpenAPI document and the metrics.

A handler gets a `Request` whose query and body are already of the declared types, and returns the
declared reply. Everything around it (token, limits, errors, request id, counters) is done once, here,
in one function per route: a chain of middleware would cost a third of the throughput.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import re
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast, get_origin

import msgspec
from aiohttp import web

from roost.api import Message
from roost.api.tokens import Scope
from roost.app import Platform
from roost.core.errors import InvalidInput, RoostError
from roost.core.histogram import Histogram
from roost.gateway.auth import Tokens
from roost.gateway.errors import INTERNAL, RETRY_AFTER_S, BodyTooLarge, MethodNotAllowed, render

log = logging.getLogger("roost.gateway")

DRAIN_BYTES = 4 * 1024 * 1024
DRAIN_S = 2.0
"""How much, and for how long, of a body that is too large is read, so that its sender can read the answer."""

_JSON = "application/json"
_REQUEST_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True)
class Request:
    """What a handler works on. `query` and `body` are of the types that its route declares."""

    platform: Platform
    path: Mapping[str, str]
    query: Any
    body: Any
    http: web.Request
    request_id: str


class WithHeaders(NamedTuple):
    """An answer that comes with headers of its own."""

    answer: Any
    headers: Mapping[str, str]


Handler = Callable[[Request], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    path: str
    handler: Handler
    summary: str
    scope: Scope | None = None
    """What the token must allow; None: everybody may call it."""
    open_in_dev: bool = False
    query: type[Message] | None = None
    body: type[Message] | None = None
    reply: type[Message] | None = None
    """None: the handler renders its own response, or there is nothing to say (204)."""
    status: int = 200
    errors: tuple[type[BaseException], ...] = ()
    """What it can be refused with, beyond what every route can."""
    content_type: str = _JSON


@dataclass(slots=True)
class RouteStats:
    latency: Histogram = field(default_factory=Histogram)
    statuses: Counter[int] = field(default_factory=Counter)


class RequestIds:
    """The caller's id where it is a sane one, else one of ours: a random start and a count."""

    def __init__(self) -> None:
        self._start = secrets.token_hex(4)
        self._count = itertools.count(1)

    def of(self, headers: Mapping[str, str]) -> str:
        given = headers.get("X-Request-Id")
        if given is not None and _REQUEST_ID.fullmatch(given):
            return given
        return f"{self._start}-{next(self._count):x}"


def adapt(
    route: Route, platform: Platform, tokens: Tokens, ids: RequestIds, stats: RouteStats
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """The aiohttp handler of a route."""
    guarded = route.scope is not None and not (route.open_in_dev and platform.settings.is_dev())
    read_query = _query_reader(route.query) if route.query is not None else None
    limit = platform.settings.gateway.body_limit_bytes
    read_body = _body_reader(route.body, limit) if route.body is not None else None
    encode = msgspec.json.Encoder().encode

    async def handle(http: web.Request) -> web.StreamResponse:
        started = time.perf_counter()
        request_id = ids.of(http.headers)
        response: web.StreamResponse
        try:
            if guarded:
                assert route.scope is not None
                await tokens.check(http.headers, route.scope)
            query = read_query(http) if read_query is not None else None
            body, warnings = await read_body(http) if read_body is not None else (None, ())
            answer = await route.handler(Request(platform, http.match_info, query, body, http, request_id))
            headers = None
            if isinstance(answer, WithHeaders):
                answer, headers = answer
            if isinstance(answer, web.StreamResponse):
                response = answer
            elif answer is None:
                response = web.Response(status=204)
            else:
                payload = encode(_with_warnings(answer, warnings) if warnings else answer)
                response = web.Response(
                    body=payload, status=route.status, headers=headers, content_type=_JSON
                )
        except Exception as error:
            response = _refusal(error, request_id, http)
        if not response.prepared:
            response.headers["X-Request-Id"] = request_id
        stats.statuses[response.status] += 1
        stats.latency.observe(time.perf_counter() - started)
        return response

    return handle


def _query_reader(wanted: type[Message]) -> Callable[[web.Request], Message]:
    """Reads a query into its type. What the type says is found out once: that costs more than the rest."""
    many = {f.encode_name: get_origin(f.type) in (list, tuple) for f in msgspec.structs.fields(wanted)}

    def read(http: web.Request) -> Message:
        values: dict[str, Any] = {}
        for name, value in http.query.items():
            if name not in many:
                raise InvalidInput(f"unknown query parameter {name!r}", hint=f"known here: {', '.join(many)}")
            if many[name]:
                values.setdefault(name, []).append(value)
            else:
                values[name] = value
        return msgspec.convert(values, wanted, strict=False)

    return read


def _body_reader(
    wanted: type[Message], limit: int
) -> Callable[[web.Request], Awaitable[tuple[Message, tuple[str, ...]]]]:
    """Reads a body into its type, along with the names of fields that nobody here knows."""
    known = frozenset(f.encode_name for f in msgspec.structs.fields(wanted))
    strict = msgspec.defstruct(wanted.__name__, [], bases=(wanted,), forbid_unknown_fields=True)
    decode_strictly = msgspec.json.Decoder(strict).decode
    decode = msgspec.json.Decoder(wanted).decode
    decode_names = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

    async def read(http: web.Request) -> tuple[Message, tuple[str, ...]]:
        raw = await _read_whole(http, limit)
        try:
            return cast(Message, decode_strictly(raw)), ()
        except msgspec.ValidationError:
            body = decode(raw)  # raises unless it was only for fields that we do not know
            return body, tuple(sorted(decode_names(raw).keys() - known))

    return read


async def _read_whole(http: web.Request, limit: int) -> bytes:
    """The whole body, or `BodyTooLarge` after a bounded part of the rest was read and thrown away."""
    if http.content_length is not None and http.content_length <= limit:
        return await http.content.read()
    received = bytearray()
    async for chunk in http.content.iter_any():
        received += chunk
        if len(received) > limit:
            await _drain(http)
            raise BodyTooLarge(f"the body is larger than {limit} bytes", hint="send less, or raise the limit")
    return bytes(received)


async def _drain(http: web.Request) -> None:
    dropped = 0
    try:
        async with asyncio.timeout(DRAIN_S):
            async for chunk in http.content.iter_any():
                dropped += len(chunk)
                if dropped > DRAIN_BYTES:
                    return
    except TimeoutError:
        pass


def _with_warnings(answer: Any, unknown: tuple[str, ...]) -> dict[str, Any]:
    return {**msgspec.to_builtins(answer), "warnings": [f"unknown field {name}" for name in unknown]}


def _refusal(error: Exception, request_id: str, http: web.Request) -> web.Response:
    row, body = render(error, request_id)
    if row.status >= 500:
        expected = isinstance(error, RoostError)
        log.log(
            logging.WARNING if expected else logging.ERROR,
            "request failed",
            exc_info=error if row is INTERNAL else None,
            extra={
                "request_id": request_id,
                "method": http.method,
                "path": http.path,
                "code": row.code,
                "reason": str(error),
            },
        )
    response = web.Response(body=body, status=row.status, content_type=_JSON)
    if row.status in (429, 503):
        after_s = getattr(error, "retry_after_s", 0.0)
        response.headers["Retry-After"] = str(math.ceil(after_s)) if after_s else RETRY_AFTER_S
    if row.status == 401:
        response.headers["WWW-Authenticate"] = 'Bearer realm="roost"'
    if isinstance(error, MethodNotAllowed):
        response.headers["Allow"] = ", ".join(error.allowed)
    if row.status == 413:
        response.force_close()
    return response
