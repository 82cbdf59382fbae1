"""One typed table of routes drives routing, validation, the OpenAPI document and the metrics.

A handler gets a `Request` whose query and body are already of the declared types, and returns the
declared reply. Everything around it (token, limits, errors, request id, counters) is done once, here,
in one function per route: a chain of middleware would cost a third of the throughput.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple, cast, get_args, get_origin

import msgspec
from aiohttp import web

from roost.api import Message
from roost.api.tokens import Scope
from roost.core.errors import (
    BodyTooLarge,
    Internal,
    InvalidId,
    InvalidInput,
    MalformedJson,
    MethodNotAllowed,
    NotFound,
    RequestTimeout,
    RoostError,
)
from roost.core.grants import NOBODY, Grant, Target
from roost.core.histogram import Histogram
from roost.web.auth import Guard, token_in
from roost.web.connections import vouch
from roost.web.errors import body_of, headers_of, known, status_of

log = logging.getLogger("roost.web")

BODY_S = 10.0
"""From the headers to the end of the body, however slowly it comes."""
DRAIN_BYTES = 4 * 1024 * 1024
DRAIN_S = 2.0
"""How much, and for how long, of a body that is too large is read, so that its sender can read the answer."""

_JSON = "application/json"
_REQUEST_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True)
class Request:
    """What a handler works on. `query` and `body` are of the types that its route declares."""

    path: Mapping[str, str]
    query: Any
    body: Any
    http: web.Request
    request_id: str
    grant: Grant = NOBODY
    """What the token of the caller allows."""


class WithHeaders(NamedTuple):
    """An answer that comes with headers of its own."""

    answer: Any
    headers: Mapping[str, str]


Handler = Callable[[Request], Awaitable[Any]]
"""A method of the class that holds what its routes need; its name is the operationId."""


class Header(NamedTuple):
    """A header that a route reads, or answers with."""

    name: str
    meaning: str
    pattern: str = ""
    """What it must look like to be understood, as a regular expression of JSON Schema; empty: anything."""


REQUEST_ID = Header(
    "X-Request-Id",
    "Names the request in logs and in the answer. One that does not fit is replaced.",
    f"^{_REQUEST_ID.pattern}$",
)
"""Read and answered by every route."""


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
    may_lack_body: bool = False
    """Whether no body at all stands for one in which everything is left out."""
    reply: type[Message] | None = None
    """None: the handler renders its own response, or there is nothing to say (204)."""
    status: int = 200
    before: Callable[[web.Request], Awaitable[Grant]] | None = None
    """Refuses a request, by address for example, before anything of it but the headers is read; what its
    token allows, where it is no route with a scope."""
    acts_on: Callable[[Request], Awaitable[Iterable[Target]]] | None = None
    """What a request would change. A token that is bound to something else is refused."""
    on_refusal: Callable[[Request | None, RoostError], None] | None = None
    """Hears of every refusal; without a request where it was not even read."""
    upgrades: bool = False
    """Whether it answers with a WebSocket."""
    errors: tuple[type[RoostError], ...] = ()
    """What it can be refused with, beyond what every route can."""
    content_type: str = _JSON
    headers: tuple[Header, ...] = ()
    """Request headers that it reads, beyond the token and `REQUEST_ID`."""
    reply_headers: tuple[Header, ...] = ()
    """Headers that it may answer with when it succeeds."""
    touches_store: bool = True
    """Whether its handler uses the store, and so can meet every fault that the store has."""


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


@dataclass(frozen=True, slots=True)
class Edge:
    """What all routes of one listener have in common."""

    guard: Guard
    is_dev: bool = False
    """Whether routes that are open in profile dev need no token."""
    body_limit_bytes: int = 262_144
    ids: RequestIds = field(default_factory=RequestIds)
    not_found_hint: str = "/docs lists every address"


def build_app(routes: Mapping[Route, RouteStats], edge: Edge) -> web.Application:
    """An application of these routes, each behind its own adapter; everything else is a clear 404 or 405."""
    app = web.Application()
    for route, stats in routes.items():
        handler = adapt(route, edge, stats)
        app.router.add_route(route.method, route.path, handler)
        if route.method == "GET" and not route.upgrades:
            app.router.add_route("HEAD", route.path, handler)
    refuse = _refuser(list(routes), edge.not_found_hint)
    fallback = Route("*", "/{rest:.*}", refuse, "Everything else")
    app.router.add_route("*", fallback.path, adapt(fallback, edge, RouteStats()))
    return app


def _refuser(routes: list[Route], hint: str) -> Handler:
    patterns = [(re.compile(re.sub(r"{\w+}", "[^/]+", route.path)), route.method) for route in routes]

    async def refuse(request: Request) -> None:
        allowed = sorted({method for pattern, method in patterns if pattern.fullmatch(request.http.path)})
        if request.http.method in allowed:
            raise InvalidId("ids in addresses hold no braces")  # aiohttp matches none that do
        if allowed:
            refusal = MethodNotAllowed(f"{request.http.path} takes {', '.join(allowed)}")
            refusal.allowed = tuple(allowed)
            raise refusal
        raise NotFound(f"there is nothing at {request.http.path}", hint=hint)

    return refuse


def adapt(
    route: Route, edge: Edge, stats: RouteStats
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """The aiohttp handler of a route."""
    guarded = route.scope is not None and not (route.open_in_dev and edge.is_dev)
    check, ids = edge.guard.check, edge.ids
    before, acts_on = route.before, route.acts_on
    read_query = _query_reader(route.query) if route.query is not None else None
    read_body = _body_reader(route, edge.body_limit_bytes) if route.body is not None else None
    encode = msgspec.json.Encoder().encode

    async def handle(http: web.Request) -> web.StreamResponse:
        started = time.perf_counter()
        request_id = ids.of(http.headers)
        response: web.StreamResponse
        grant, request = NOBODY, None
        try:
            if guarded:
                assert route.scope is not None
                grant = await check(token_in(http.headers), route.scope)
                vouch(http)
            if before is not None:
                grant = await before(http)
            query = read_query(http) if read_query is not None else None
            body, warnings = await read_body(http) if read_body is not None else (None, ())
            request = Request(http.match_info, query, body, http, request_id, grant)
            if acts_on is not None and grant.is_bound:
                for target in await acts_on(request):
                    grant.check(target)
            answer = await route.handler(request)
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
            told = known(error)
            if route.on_refusal is not None:
                route.on_refusal(request, told)
            response = _refusal(error, told, request_id, http, for_everybody=not guarded)
        if not response.prepared:
            response.headers["X-Request-Id"] = request_id
        stats.statuses[response.status] += 1
        stats.latency.observe(time.perf_counter() - started)
        return response

    return handle


def _query_reader(wanted: type[Message]) -> Callable[[web.Request], Message]:
    """Reads a query into its type. What the type says is found out once: that costs more than the rest."""
    many = {f.encode_name: _takes_many(f.type) for f in msgspec.structs.fields(wanted)}

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


def _takes_many(kind: Any) -> bool:
    plain = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return get_origin(plain) in (list, tuple)


def _body_reader(
    route: Route, limit: int
) -> Callable[[web.Request], Awaitable[tuple[Message, tuple[str, ...]]]]:
    """Reads a body into its type, along with the names of fields that nobody here knows."""
    wanted = route.body
    assert wanted is not None
    known = frozenset(f.encode_name for f in msgspec.structs.fields(wanted))
    strict = msgspec.defstruct(wanted.__name__, [], bases=(wanted,), forbid_unknown_fields=True)
    decode_strictly = msgspec.json.Decoder(strict).decode
    decode = msgspec.json.Decoder(wanted).decode
    decode_names = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

    async def read(http: web.Request) -> tuple[Message, tuple[str, ...]]:
        raw = await _read_in_time(http, limit)
        if not raw and route.may_lack_body:
            raw = b"{}"
        try:
            try:
                return cast(Message, decode_strictly(raw)), ()
            except msgspec.ValidationError:
                body = decode(raw)  # raises unless it was only for fields that we do not know
                return body, tuple(sorted(decode_names(raw).keys() - known))
        except UnicodeDecodeError:
            raise MalformedJson("the body is not UTF-8") from None
        except RecursionError:
            raise MalformedJson("the body is nested too deeply") from None

    return read


async def _read_in_time(http: web.Request, limit: int) -> bytes:
    if http.content.is_eof():  # nearly always: it came along with the headers
        return await _read_whole(http, limit)
    try:
        async with asyncio.timeout(BODY_S):
            return await _read_whole(http, limit)
    except TimeoutError:
        raise RequestTimeout(f"the body did not arrive within {BODY_S:g} s") from None


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


def _refusal(
    error: Exception, told: RoostError, request_id: str, http: web.Request, *, for_everybody: bool
) -> web.Response:
    status = status_of(type(told))
    if status >= 500:
        expected = isinstance(error, RoostError)
        log.log(
            logging.WARNING if expected else logging.ERROR,
            "request failed",
            exc_info=error if isinstance(told, Internal) else None,
            extra={
                "request_id": request_id,
                "method": http.method,
                "path": http.path,
                "code": told.code,
                "reason": str(error),
            },
        )
    response = web.Response(
        body=body_of(told, request_id, for_everybody=for_everybody),
        status=status,
        headers=headers_of(told),
        content_type=_JSON,
    )
    if status in (408, 413):
        response.force_close()
    return response
