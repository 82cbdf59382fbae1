"""The HTTP transport against a gateway that says what the test wants."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest
from aiohttp import web

from roost.api.discovery import Beat, Change, Instance, RegisterInput
from roost.api.errors import ErrorDetail, ErrorReply
from roost.api.errors import error_of as refused
from roost.core.errors import (
    OutcomeUnknown,
    RoostError,
    ServerFull,
    StoreOverloaded,
    StoreUnavailable,
    TooManyRequests,
    WorldClosed,
)
from roost.core.events import Mark
from roost.sdk.http.registry import read_change
from roost.sdk.http.transport import HttpTransport
from roost.web.listen import bind, serve, url_of

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def gateway(answer: Answer) -> AsyncIterator[HttpTransport]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    listener = bind("127.0.0.1", 0)
    runner = await serve(app, listener)
    transport = HttpTransport(url_of(listener), "a-token")
    try:
        yield transport
    finally:
        await transport.close()
        await runner.cleanup()


def saying(status: int, body: bytes, **headers: str) -> Answer:
    async def answer(_: web.Request) -> web.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, body=body, headers=named)

    return answer


def refusal(code: str) -> bytes:
    return msgspec.json.encode(ErrorReply(ErrorDetail(code, "no", "", "r-1")))


def retry_after_s(error: RoostError) -> float:
    return float(getattr(error, "retry_after_s", 0.0))


# -- Retry-After


@pytest.mark.parametrize(
    ("status", "code", "family", "header", "seconds"),
    [
        (429, "TOO_MANY_REQUESTS", TooManyRequests, "7", 7.0),
        (503, "WORLD_CLOSED", WorldClosed, "120", 120.0),
        (503, "STORE_OVERLOADED", StoreOverloaded, "2", 2.0),
        (503, "STORE_AWAY", StoreUnavailable, "1", 1.0),
    ],
)
async def test_what_the_gateway_says_of_when_to_come_again_reaches_the_caller(
    status: int, code: str, family: type[RoostError], header: str, seconds: float
) -> None:
    async with gateway(saying(status, refusal(code), Retry_After=header)) as transport:
        with pytest.raises(family) as caught:
            await transport.registry.get("i-1")
    assert retry_after_s(caught.value) == seconds


async def test_a_proxy_that_answers_for_the_gateway_may_say_it_too() -> None:
    async with gateway(saying(503, b"<html>busy</html>", Retry_After="9")) as transport:
        with pytest.raises(StoreUnavailable, match="not as Roost does") as caught:
            await transport.registry.get("i-1")
    assert retry_after_s(caught.value) == 9.0


@pytest.mark.parametrize("header", ["", "soon", "Wed, 21 Oct 2026 07:28:00 GMT", "-1", "nan", "inf"])
def test_a_header_that_is_no_number_of_seconds_leaves_what_the_class_says(header: str) -> None:
    assert retry_after_s(refused(ErrorDetail("WORLD_CLOSED", "no", "", ""), header)) == 30.0
    assert retry_after_s(refused(ErrorDetail("SERVER_FULL", "no", "", ""), header)) == 0.0
    assert isinstance(refused(ErrorDetail("SERVER_FULL", "no", "", ""), header), ServerFull)


# -- replies that cannot be read


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"status": "SING"}'])
async def test_a_reply_that_cannot_be_read_is_a_lost_one(body: bytes) -> None:
    async with gateway(saying(200, body)) as transport:
        with pytest.raises(StoreUnavailable, match="not as expected"):
            await transport.registry.heartbeat("i-1", Beat())
        with pytest.raises(OutcomeUnknown, match="not as expected"):
            await transport.registry.register(RegisterInput("game", "kr-1"))


# -- the watch


def instance(instance_id: str) -> Instance:
    return Instance(
        "game", "kr-1", instance_id=instance_id, life="1", status="ready", accepting=True, last_heartbeat=""
    )


def added(instance_id: str, revision: int) -> bytes:
    change = Change("added", revision, "5", instance_id=instance_id, instance=instance(instance_id))
    return msgspec.json.encode(change)


async def test_one_event_that_cannot_be_read_does_not_end_a_watch() -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(request.headers.get("Last-Event-ID", ""))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        bad = added("b", 2).replace(b'"ready"', b'"dreaming"')
        for rev, data in enumerate((added("a", 1), bad, b"not json", added("c", 4)), start=1):
            await response.write(b"id: %d-5\nevent: added\ndata: %b\n\n" % (rev, data))
        return response

    async with gateway(answer) as transport, asyncio.timeout(10):
        seen = [change async for change in transport.registry.watch("game", "*", (), Mark(7, 8))]
    assert [change.instance_id for change in seen] == ["a", "c"]
    assert asked == ["7-8"]


def test_of_a_snapshot_only_what_cannot_be_read_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    snapshot = Change("snapshot", 3, "5", instances=[instance(name) for name in "abc"])
    data = msgspec.json.encode(snapshot)
    assert read_change("3-5", data) == snapshot
    broken = data.replace(b'"instanceId":"b"', b'"instanceId":7')
    found = read_change("3-5", broken)
    assert found is not None
    assert (found.event, found.revision, found.revision_at) == ("snapshot", 3, "5")
    assert [one.instance_id for one in found.instances or ()] == ["a", "c"]
    assert "unreadable instance skipped" in caplog.text
