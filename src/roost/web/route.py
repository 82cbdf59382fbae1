"""One typed table of routes drives routing, validation, the OpenAPI document and the metrics.

A handler gets a `Request` whose query and body are already of the declared types, and returns the
declared reply. Everything around it (token, limits, errors, request id, counters) is done once, here,
in one function per route: a chain of middleware would cost a third of the throughput.
"""

from __future__ import annotations

import itertools
import logging
import re
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple, cast, get_args, get_origin

import msgspec
from aiohttp import web

from roost.api import Message
from roost.api.tokens import Scope
from roost.core.errors import (
    Internal,
    InvalidId,
    InvalidInput,
    MalformedJson,
    MethodNotAllowed,
    NotFound,
    RoostError,
)
from roost.core.grants import NOBODY, Grant, Target
from roost.core.histogram import Histogram
from roost.core.networks import Network
from roost.core.requests import current_request
from roost.core.tracing import TRACEPARENT, Tracer
from roost.web.acts import Act, Acts, NoRecorder, Recorder, Refusals
from roost.web.auth import COOKIE, Guard, by_cookie, token_in
from roost.web.body import read_in_time
from roost.web.connections import vouch
from roost.web.errors import body_of, headers_of, known, status_of
from roost.web.plain import JSON, PLAIN, Answer, Asked, PlainRequest, PlainRoutes, Reply
from roost.web.stream import has_begun, note_begun
from roost.web.tracing import traced

log = logging.getLogger("roost.web")

_NONE: Mapping[str, str] = {}
_REQUEST_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Request(NamedTuple):
    """What a handler works on. `query` and `body` are of the types that its route declares."""

    path: Mapping[str, str]
    query: Any
    body: Any
    http: Asked
    request_id: str
    grant: Grant = NOBODY
    """What the token of the caller allows."""

    @property
    def open(self) -> web.Request:
        """The request as aiohttp has it, for handlers that answer with more than one piece of JSON."""
        assert isinstance(self.http, web.Request)
        return self.http


class WithHeaders(NamedTuple):
    """An answer that comes with headers of its own."""

    answer: Any
    headers: Mapping[str, str]


class Encoded(NamedTuple):
    """An answer that is JSON already."""

    body: bytes


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
TRACE = Header(
    TRACEPARENT,
    "W3C trace context. Where tracing is on, the request becomes a span below it; of a caller without a "
    "token the draw decides whether it is sampled.",
)
"""Read by every route."""


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    path: str
    handler: Handler
    summary: str
    scope: Scope | None = None
    """What the token must allow; None: everybody may call it."""
    open_in_dev: bool = False
    by_header_only: bool = False
    """Whether a session cookie does not count: the token must stand in a header."""
    query: type[Message] | None = None
    body: type[Message] | None = None
    may_lack_body: bool = False
    """Whether no body at all stands for one in which everything is left out."""
    reply: type[Message] | None = None
    """None: the handler renders its own response, or there is nothing to say (204)."""
    status: int = 200
    before: Callable[[Asked], Awaitable[Grant]] | None = None
    """Refuses a request, by address for example, before anything of it but the headers is read; what its
    token allows, where it is no route with a scope."""
    acts_on: Callable[[Request], Awaitable[Iterable[Target]]] | None = None
    """What a request would change. A token that is bound to something else is refused."""
    on_refusal: Callable[[Request | None, RoostError], None] | None = None
    """Hears of every refusal; without a request where it was not even read."""
    act: Act | None = None
    """What it is as an act of an operator: then it is recorded, also where it is refused."""
    span: str = ""
    """The name of its span where a trace may begin with it; empty: only a caller's context has it traced."""
    upgrades: bool = False
    """Whether it answers with a WebSocket."""
    errors: tuple[type[RoostError], ...] = ()
    """What it can be refused with, beyond what every route can."""
    content_type: str = JSON
    headers: tuple[Header, ...] = ()
    """Request headers that it reads, beyond the token, `REQUEST_ID` and `TRACE`."""
    reply_headers: tuple[Header, ...] = ()
    """Headers that it may answer with when it succeeds."""
    touches_store: bool = True
    """Whether its handler uses the store, and so can meet every fault that the store has."""

    @property
    def answers_plainly(self) -> bool:
        """Whether each answer is one piece of JSON, or none."""
        return self.reply is not None or (self.status == 204 and not self.upgrades)


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
    recorder: Recorder = field(default_factory=NoRecorder)
    """Hears of every act of an operator."""
    refusals: Refusals = field(default_factory=Refusals)
    proxies: Sequence[Network] = ()
    """Whose X-Forwarded-For is believed."""
    tracer: Tracer | None = None


def build_app(routes: Mapping[Route, RouteStats], edge: Edge) -> web.Application:
    """An application of these routes, each behind its own adapter; everything else is a clear 404 or 405."""
    app = web.Application()
    app.on_response_prepare.append(note_begun)
    plain = app[PLAIN] = PlainRoutes(edge.body_limit_bytes)
    for route, stats in routes.items():
        answer = adapt(route, edge, stats)
        if edge.tracer is not None:
            answer = traced(answer, edge.tracer, f"{route.method} {route.path}", route.span)
        handler = _by_aiohttp(answer)
        app.router.add_route(route.method, route.path, handler)
        if route.method == "GET" and not route.upgrades:
            app.router.add_route("HEAD", route.path, handler)
        if route.answers_plainly:
            plain.add(route.method, route.path, answer)
    refuse = _refuser(list(routes), edge.not_found_hint)
    fallback = Route("*", "/{rest:.*}", refuse, "Everything else")
    app.router.add_route("*", fallback.path, _by_aiohttp(adapt(fallback, edge, RouteStats())))
    return app


def _by_aiohttp(answer: Answer) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(http: web.Request) -> web.StreamResponse:
        has_begun.set(False)
        found = await answer(http)
        if not isinstance(found, Reply):
            return found
        if has_begun.get() and http.transport is not None:
            http.transport.abort()  # a body without its end says that it is not whole
        response = web.Response(body=found.body or None, status=found.status, headers=found.headers)
        if found.body:
            response.content_type = JSON
        response.headers["X-Request-Id"] = found.request_id
        if found.closes:
            response.force_close()
        return response

    return handle


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


def adapt(route: Route, edge: Edge, stats: RouteStats) -> Answer:
    """Everything around the handler of a route."""
    scope = route.scope or ""
    guarded = bool(scope) and not (route.open_in_dev and edge.is_dev)
    identify, ids = _identifier(route, edge.guard), edge.ids
    before, acts_on = route.before, route.acts_on
    read_query = _query_reader(route.query) if route.query is not None else None
    read_body = _body_reader(route, edge.body_limit_bytes) if route.body is not None else None
    encode = msgspec.json.Encoder().encode
    acts = Acts(route.act, edge.recorder, edge.proxies, edge.refusals) if route.act is not None else None
    handler = acts.recorded(route.handler) if acts is not None else route.handler

    async def answer(http: Asked) -> Reply | web.StreamResponse:
        started = time.perf_counter()
        request_id = ids.of(http.headers)
        current_request.set(request_id)
        reply: Reply | web.StreamResponse
        grant, request = NOBODY, None
        try:
            if guarded:
                grant = await identify(http)
                grant.check_scope(scope)
                vouch(http)
            if before is not None:
                grant = await before(http)
            query = read_query(http) if read_query is not None else None
            body, warnings = await read_body(http) if read_body is not None else (None, ())
            request = Request(http.match_info, query, body, http, request_id, grant)
            if acts_on is not None and grant.is_bound:
                for target in await acts_on(request):
                    grant.check(target)
            found = await handler(request)
            headers: Mapping[str, str] = _NONE
            if isinstance(found, WithHeaders):
                found, headers = found
            if isinstance(found, Encoded):
                reply = Reply(route.status, found.body, request_id, headers)
            elif found is None:
                reply = Reply(204, b"", request_id, headers)
            elif isinstance(found, Message) or not isinstance(found, web.StreamResponse):
                payload = encode(_with_warnings(found, warnings) if warnings else found)
                reply = Reply(route.status, payload, request_id, headers)
            else:
                reply = found
                if not reply.prepared:
                    reply.headers["X-Request-Id"] = request_id
        except Exception as error:
            told = known(error)
            if route.on_refusal is not None:
                route.on_refusal(request, told)
            if acts is not None:
                await acts.refused(http, request, grant, request_id, told)
            reply = _refusal(error, told, request_id, http, for_everybody=not guarded)
        stats.statuses[reply.status] += 1
        stats.latency.observe(time.perf_counter() - started)
        return reply

    return answer


def _identifier(route: Route, guard: Guard) -> Callable[[Asked], Awaitable[Grant]]:
    """Who asks: by the token in a header, else by the cookie of a session where that counts."""
    by_token, takes_cookie = guard.identify, not route.by_header_only

    async def identify(http: Asked) -> Grant:
        token = token_in(http.headers)
        if not token and takes_cookie and (cookie := http.cookies.get(COOKIE, "")):
            return await by_cookie(guard, http, cookie)
        return await by_token(token)

    return identify


def _query_reader(wanted: type[Message]) -> Callable[[Asked], Message]:
    """Reads a query into its type. What the type says is found out once: that costs more than the rest."""
    many = {f.encode_name: _takes_many(f.type) for f in msgspec.structs.fields(wanted)}

    def read(http: Asked) -> Message:
        values: dict[str, Any] = {}
        for name, value in http.query.items():
            if name not in many:
                raise InvalidInput(f"unknown query parameter {name!r}", hint=f"known here: {', '.join(many)}")
            if many[name]:
                values.setdefault(name, []).append(value)
            elif name in values:  # two readers of it could go by different ones
                raise InvalidInput(f"query parameter {name!r} stands there twice")
            else:
                values[name] = value
        return msgspec.convert(values, wanted, strict=False)

    return read


def _takes_many(kind: Any) -> bool:
    return get_origin(get_args(kind)[0] if get_origin(kind) is Annotated else kind) in (list, tuple)


def _body_reader(route: Route, limit: int) -> Callable[[Asked], Awaitable[tuple[Message, tuple[str, ...]]]]:
    """Reads a body into its type, along with the names of fields that nobody here knows."""
    wanted = route.body
    assert wanted is not None
    known = frozenset(f.encode_name for f in msgspec.structs.fields(wanted))
    strict = msgspec.defstruct(wanted.__name__, [], bases=(wanted,), forbid_unknown_fields=True)
    decode_strictly = msgspec.json.Decoder(strict).decode
    decode = msgspec.json.Decoder(wanted).decode
    decode_names = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

    async def read(http: Asked) -> tuple[Message, tuple[str, ...]]:
        raw = http.body if isinstance(http, PlainRequest) else await read_in_time(http, limit)
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


def _with_warnings(answer: Any, unknown: tuple[str, ...]) -> dict[str, Any]:
    return {**msgspec.to_builtins(answer), "warnings": [f"unknown field {name}" for name in unknown]}


def _refusal(
    error: Exception, told: RoostError, request_id: str, http: Asked, *, for_everybody: bool
) -> Reply:
    status = status_of(type(told))
    if status >= 500:
        log.log(
            logging.WARNING if isinstance(error, RoostError) else logging.ERROR,
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
    body = body_of(told, request_id, for_everybody=for_everybody)
    return Reply(status, body, request_id, headers_of(told), closes=status in (408, 413))
