"""A connection answers plain requests itself: in order, within every limit, and as aiohttp would."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

import pytest
from aiohttp import web

from roost.api import Message
from roost.core.errors import Conflict, RequestTimeout
from roost.testing import eventually
from roost.web import connections
from roost.web.auth import OneToken
from roost.web.connections import ConnectionLimits
from roost.web.listen import bind, serve
from roost.web.route import Edge, Request, Route, RouteStats, WithHeaders, build_app

TOKEN = b"X-API-Token: secret\r\n"
LEFT_TO_AIOHTTP = b"Cookie: a=b\r\n"


class Given(Message):
    text: str
    loud: bool = False


class Query(Message):
    text: str = ""
    label: list[str] = []  # noqa: RUF012


class Said(Message):
    text: str


class Echo:
    """What is asked, and a gate at which requests can be held."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def say(self, request: Request) -> Said:
        self.heard.append(request.body.text)
        await self.gate.wait()
        if request.body.loud:
            raise Conflict("too loud")
        return Said(request.body.text)

    async def show(self, request: Request) -> WithHeaders:
        query: Query = request.query
        text = f"{request.path['id']} {query.text} {','.join(query.label)} {request.http.remote}"
        return WithHeaders(Said(text), {"Set-Cookie": "c=d; Path=/"})

    async def forget(self, request: Request) -> None:
        self.heard.clear()

    async def give_up(self, request: Request) -> Said:
        raise RequestTimeout("too late")

    async def page(self, request: Request) -> web.Response:
        return web.Response(text="page")

    async def tear(self, request: Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request.open)
        await response.write(b"first")
        raise Conflict("no more of it")

    def routes(self) -> list[Route]:
        return [
            Route("POST", "/say", self.say, "", scope="register", body=Given, reply=Said, status=201),
            Route("GET", "/show/{id}", self.show, "", query=Query, reply=Said),
            Route("DELETE", "/show/{id}", self.forget, "", scope="register", status=204),
            Route("GET", "/give-up", self.give_up, "", reply=Said),
            Route("GET", "/page", self.page, ""),
            Route("GET", "/torn", self.tear, ""),
        ]


class Line:
    """One connection, of which answers are read one by one."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, *raw: bytes) -> None:
        self.writer.write(b"".join(raw))

    async def hear(self) -> tuple[int, dict[str, str], bytes]:
        async with asyncio.timeout(10):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
            status, _, lines = head.partition("\r\n")
            headers = dict(line.split(": ", 1) for line in lines.strip().split("\r\n"))
            body = await self.reader.readexactly(int(headers.get("Content-Length", "0")))
        return int(status.split()[1]), headers, body

    async def is_closed(self) -> bool:
        async with asyncio.timeout(10):
            with contextlib.suppress(ConnectionError):
                return await self.reader.read() == b""
        return True


Connect = Callable[[], Awaitable[Line]]


@pytest.fixture
def echo() -> Echo:
    return Echo()


@contextlib.asynccontextmanager
async def serving(
    echo: Echo, limits: ConnectionLimits | None = None
) -> AsyncIterator[tuple[int, web.AppRunner]]:
    app = build_app(
        {route: RouteStats() for route in echo.routes()}, Edge(OneToken("secret"), body_limit_bytes=1000)
    )
    listener = bind("127.0.0.1", 0)
    runner = await serve(app, listener, limits)
    try:
        yield listener.getsockname()[1], runner
    finally:
        echo.gate.set()
        await runner.cleanup()


@contextlib.asynccontextmanager
async def connected(port: int) -> AsyncIterator[Line]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Line(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@pytest.fixture
async def line(echo: Echo) -> AsyncIterator[Line]:
    async with serving(echo) as (port, _), connected(port) as line:
        yield line


def post(body: bytes, more: bytes = TOKEN, path: bytes = b"/say") -> bytes:
    length = b"Content-Length: %d\r\n" % len(body)
    return b"POST " + path + b" HTTP/1.1\r\nHost: x\r\n" + more + length + b"\r\n" + body


def get(target: bytes, more: bytes = b"", method: bytes = b"GET") -> bytes:
    return method + b" " + target + b" HTTP/1.1\r\nHost: x\r\n" + more + b"\r\n"


SAY = post(b'{"text": "hi"}')
ASKED = {
    "said": SAY,
    "warned": post(b'{"text": "hi", "unknown": 1}'),
    "refused by the handler": post(b'{"text": "hi", "loud": true}'),
    "not JSON": post(b"text"),
    "not UTF-8": post(b'{"text": "\xff"}'),
    "another type": post(b'{"text": 1}'),
    "without a token": post(b'{"text": "hi"}', b""),
    "with a wrong token": post(b'{"text": "hi"}', b"Authorization: Bearer wrong\r\n"),
    "with a good bearer": post(b'{"text": "hi"}', b"authorization: bearer secret\r\n"),
    "with its own request id": post(b'{"text": "hi"}', TOKEN + b"X-Request-Id: mine\r\n"),
    "without a body": get(b"/say", TOKEN, b"POST"),
    "too large": post(b'{"text": "' + b"x" * 1000 + b'"}'),
    "shown": get(b"/show/7?text=a*&label=x&label=y"),
    "an unknown parameter": get(b"/show/7?wrong=1"),
    "nothing": get(b"/show/7", TOKEN, b"DELETE"),
    "nowhere": get(b"/nowhere"),
    "another method": get(b"/say"),
    "too late": get(b"/give-up"),
    "a page": get(b"/page"),
    "a page that is head only": get(b"/say", b"", b"PUT"),
}


def without_what_differs(answer: tuple[int, Mapping[str, str], bytes]) -> object:
    """An answer without the time and the request id, which no two share."""
    status, headers, body = answer
    kept = {name: value for name, value in headers.items() if name not in ("Date", "X-Request-Id")}
    own_id = headers["X-Request-Id"] if headers["X-Request-Id"] == "mine" else ""
    return status, list(kept), kept, own_id, re.sub(rb'"requestId":"[^"]*"', b"", body)


@pytest.mark.parametrize("name", ASKED)
async def test_the_answer_is_the_one_that_aiohttp_gives(echo: Echo, name: str) -> None:
    asked = ASKED[name]
    async with serving(echo) as (port, _):
        async with connected(port) as plain:
            plain.send(asked)
            ours = await plain.hear()
        async with connected(port) as odd:
            odd.send(asked.replace(b"Host: x\r\n", b"Host: x\r\n" + LEFT_TO_AIOHTTP))
            theirs = await odd.hear()
    assert without_what_differs(ours) == without_what_differs(theirs)


@pytest.mark.parametrize("cut", range(1, len(SAY)))
async def test_a_request_may_be_cut_anywhere(line: Line, echo: Echo, cut: int) -> None:
    line.send(SAY[:cut])
    await line.writer.drain()
    await asyncio.sleep(0)
    line.send(SAY[cut:])
    assert (await line.hear())[0] == 201
    line.send(SAY)
    assert (await line.hear())[0] == 201
    assert echo.heard == ["hi", "hi"]


async def test_what_comes_behind_is_answered_in_its_order(line: Line, echo: Echo) -> None:
    echo.gate.clear()
    several = [post(b'{"text": "%d"}' % n) for n in range(5)]
    odd = post(b'{"text": "5"}', TOKEN + LEFT_TO_AIOHTTP)
    line.send(several[0], several[1][:40])
    await eventually(lambda: echo.heard == ["0"])
    line.send(several[1][40:], *several[2:], odd, several[0])
    echo.gate.set()
    said = [(await line.hear())[2] for _ in range(7)]
    assert said == [b'{"text":"%d"}' % n for n in (0, 1, 2, 3, 4, 5, 0)]


async def test_who_sends_on_and_on_waits_until_it_reads(line: Line, echo: Echo) -> None:
    echo.gate.clear()
    line.send(post(b'{"text": "%s"}' % (b"x" * 900)) * 40_000)
    drained = asyncio.create_task(line.writer.drain())
    await eventually(lambda: bool(echo.heard))
    for _ in range(100):
        await asyncio.sleep(0)
    assert not drained.done(), "it is not read without end"
    echo.gate.set()
    for _ in range(300):
        assert (await line.hear())[0] == 201
    drained.cancel()
    line.writer.transport.abort()


async def test_who_asks_many_things_at_once_leaves_others_their_turn(echo: Echo) -> None:
    async with serving(echo) as (port, _), connected(port) as greedy, connected(port) as other:
        greedy.send(SAY * 300)
        await eventually(lambda: bool(echo.heard))
        other.send(get(b"/show/7"))
        assert (await other.hear())[0] == 200
        assert len(echo.heard) < 300
        for _ in range(300):
            assert (await greedy.hear())[0] == 201


async def test_a_closing_answer_ends_the_connection(line: Line) -> None:
    line.send(get(b"/give-up"))
    status, headers, _ = await line.hear()
    assert (status, headers["Connection"]) == (408, "close")
    assert await line.is_closed()


async def test_who_leaves_while_it_is_answered_harms_nobody(
    echo: Echo, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(echo) as (port, _):
        echo.gate.clear()
        async with connected(port) as gone:
            gone.send(SAY)
            await eventually(lambda: echo.heard == ["hi"])
        echo.gate.set()
        async with connected(port) as other:
            other.send(SAY)
            assert (await other.hear())[0] == 201
    assert echo.heard == ["hi", "hi"]
    assert not caplog.records


async def test_an_idle_connection_is_closed(echo: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "IDLE_S", 0.2)
    async with serving(echo) as (port, _), connected(port) as line:
        line.send(SAY)
        assert (await line.hear())[0] == 201
        assert await line.is_closed()


async def test_who_is_being_answered_is_not_idle(echo: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "IDLE_S", 0.1)
    monkeypatch.setattr(connections, "CROWDED_IDLE_S", 0.0)
    monkeypatch.setattr(connections, "SWEEP_S", 0.0)
    async with serving(echo, ConnectionLimits(total=1, head_s=0.1)) as (port, _), connected(port) as busy:
        echo.gate.clear()
        busy.send(SAY)
        await eventually(lambda: echo.heard == ["hi"])
        async with connected(port) as crowd:
            assert (await crowd.hear())[0] == 429
        asyncio.get_running_loop().call_later(0.3, echo.gate.set)  # long after it would have been closed
        assert (await busy.hear())[0] == 201


async def test_an_idle_one_makes_room(echo: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "CROWDED_IDLE_S", 0.0)
    monkeypatch.setattr(connections, "SWEEP_S", 0.0)
    async with serving(echo, ConnectionLimits(total=1)) as (port, _), connected(port) as idle:
        idle.send(SAY)
        assert (await idle.hear())[0] == 201
        async with connected(port) as new:
            new.send(SAY)
            assert (await new.hear())[0] == 201
        assert await idle.is_closed()


async def test_a_good_token_vouches_for_its_connection(echo: Echo) -> None:
    async with serving(echo, ConnectionLimits(per_address=1)) as (port, _), connected(port) as first:
        first.send(SAY)
        assert (await first.hear())[0] == 201
        async with connected(port) as second:
            second.send(get(b"/show/7"))
            assert (await second.hear())[0] == 200
            async with connected(port) as third:
                assert (await third.hear())[0] == 429


async def test_a_stop_waits_for_what_is_being_answered(echo: Echo) -> None:
    async with serving(echo) as (port, runner), connected(port) as busy, connected(port) as idle:
        idle.send(SAY)
        assert (await idle.hear())[0] == 201
        echo.gate.clear()
        busy.send(SAY)
        await eventually(lambda: len(echo.heard) == 2)
        stopping = asyncio.create_task(runner.cleanup())
        assert await idle.is_closed()
        echo.gate.set()
        assert (await busy.hear())[0] == 201
        assert await busy.is_closed()
        await stopping


async def test_an_answer_that_fails_half_way_is_cut_and_no_other_is_put_into_it(line: Line) -> None:
    """Behind a proxy the status line of a second answer would stand where the size of a chunk belongs."""
    line.send(get(b"/torn"), get(b"/page"))
    async with asyncio.timeout(10):
        said = await line.reader.read()
    assert said.startswith(b"HTTP/1.1 200 OK\r\n")
    assert said.count(b"HTTP/1.1") == 1
    assert said.endswith(b"5\r\nfirst\r\n"), "without the chunk that ends it"
