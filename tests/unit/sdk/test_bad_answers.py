"""A beat may fail, the heart may not: nor may a watch. Every kind of bad answer and of bad value."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
import pytest
from aiohttp import web

import roost
from roost.api.discovery import Beat
from roost.core.errors import InvalidInput, RoostError
from roost.sdk.client import Client
from roost.testing import FakeTransport, eventually
from roost.web.listen import bind, serve, url_of

PAGE = b"<!doctype html><html><body>Please log in</body></html>"
HEARTBEAT, INSTANCES, WATCH = "/sd/v1/instances/i-1/heartbeat", "/sd/v1/instances", "/sd/v1/watch"
SNAPSHOT = {"event": "snapshot", "revision": 1, "revisionAt": "5", "instances": []}


Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def says(status: int, body: bytes, kind: str = "text/html") -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, body=body, content_type=kind)

    return answer


async def hangs(_: web.Request) -> web.StreamResponse:
    await asyncio.sleep(60.0)
    return web.Response()


async def resets(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def breaks_off(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b"{")
    assert request.transport is not None
    request.transport.abort()
    return response


BAD_ANSWERS: dict[str, Answer] = {
    "a page": says(200, PAGE),
    "nothing": says(200, b""),
    "other JSON": says(200, b'{"hello": ["world"]}', "application/json"),
    "a JSON list": says(200, b"[1, 2, 3]", "application/json"),
    "an unknown word": says(200, b'{"status": "MAYBE"}', "application/json"),
    "no UTF-8": says(200, b'{"status": "\xff\xfe"}', "application/json"),
    "deep nesting": says(200, b"[" * 100_000, "application/json"),
    "404 page": says(404, PAGE),
    "410 page": says(410, PAGE),
    "401 page": says(401, PAGE),
    "500": says(500, b""),
    "502 page": says(502, PAGE),
    "an error of another kind": says(503, b'{"error": "down"}', "application/json"),
    "an unknown code": says(
        400, b'{"error": {"code": "X", "message": "m", "hint": "", "requestId": "r"}}', "application/json"
    ),
    "a redirect to nowhere": says(302, b""),
    "a hang": hangs,
    "a reset": resets,
    "half an answer": breaks_off,
}


class Gateway:
    """Answers as Roost does, but for the first `bad_times` requests of a route."""

    def __init__(self, route: str, bad: Answer, bad_times: int) -> None:
        self._route, self._bad, self._left = route, bad, bad_times
        self.url = ""
        self.good = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path == self._route and self._left > 0 and request.method != "DELETE":
            self._left -= 1
            return await self._bad(request)
        if request.path == self._route:
            self.good += 1
        if request.path == HEARTBEAT:
            return web.json_response({"status": "OK"})
        if request.path == WATCH:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            await response.write(b"id: 1-5\nevent: snapshot\ndata: %b\n\n" % json.dumps(SNAPSHOT).encode())
            await asyncio.sleep(60.0)
            return response
        known = {"instanceId": "i-1", "life": "7", "ttlSeconds": 30.0, "heartbeatIntervalMs": 200}
        return web.json_response(known)


@contextlib.asynccontextmanager
async def gateway(route: str, bad: Answer, bad_times: int = 2) -> AsyncIterator[tuple[Gateway, Client]]:
    one = Gateway(route, bad, bad_times)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", one.answer)
    listener = bind("127.0.0.1", 0)
    runner = await serve(app, listener)
    one.url = url_of(listener)
    try:
        async with roost.connect(one.url, token="t", ttl_seconds=1.0, heartbeat_interval_ms=200) as client:
            yield one, client
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("kind", BAD_ANSWERS)
async def test_the_heart_outlives_a_bad_answer_and_says_what_it_was(kind: str) -> None:
    async with gateway(HEARTBEAT, BAD_ANSWERS[kind]) as (one, client):
        await client.register(type="game", group="kr-1", instance_id="i-1")
        me = client.start_auto_heartbeat("i-1")
        await eventually(lambda: me.beats_failed >= 1, "the failure is seen")
        assert me.last_error
        await eventually(lambda: one.good >= 3, "beats go on")
        assert me.ended is None
        assert me.last_beat_at is not None
        assert me.last_error == ""
        assert me.beats_failed in (1, 2), "a beat that gets no answer in time asks twice"


@pytest.mark.parametrize("kind", BAD_ANSWERS)
async def test_a_watch_outlives_a_bad_answer(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roost.sdk.http.session.TIMEOUT_S", 0.5)
    if kind == "an unknown code":
        pytest.skip("Roost's own refusal, which repeating does not cure: it is raised")
    async with gateway(WATCH, BAD_ANSWERS[kind]) as (_, client):
        changes = client.watch("game")
        async with asyncio.timeout(15.0):
            assert (await anext(changes)).event == "snapshot"
        await changes.aclose()


async def test_a_certificate_that_nobody_knows_is_a_failed_beat_and_no_more() -> None:
    async with gateway(HEARTBEAT, BAD_ANSWERS["a page"]) as (one, _):
        async with roost.connect(one.url.replace("http://", "https://"), ttl_seconds=1.0) as client:
            with pytest.raises(RoostError, match="no gateway answers"):
                await client.get("i-1")


class Loop(dict[str, Any]):
    """Holds itself."""

    def __init__(self) -> None:
        super().__init__()
        self["me"] = self


BAD_VALUES: list[tuple[str, Any]] = [
    ("load", 3.5),
    ("load", -1),
    ("load", "many"),
    ("load", None),
    ("load", float("nan")),
    ("load", 2**70),
    ("load", b"12"),
    ("status", "dreaming"),
    ("status", 7),
    ("performance", [1, 2]),
    ("performance", "fast"),
    ("performance", Loop()),
    ("performance", {"at": object()}),
    ("performance", {"big": "x" * 10_000}),
    ("performance", {1: {2}, "b": b"\xff", "n": float("inf")}),
]


@pytest.mark.parametrize(("name", "value"), BAD_VALUES, ids=lambda v: type(v).__name__)
async def test_a_value_that_cannot_be_sent_does_not_stop_the_beat(name: str, value: Any) -> None:
    transport = FakeTransport()
    async with transport.client(heartbeat_interval_ms=20) as client:
        async with client.registered(type="game", group="kr-1") as me:
            me.load, me.performance = 5, {"fps": 60}
            await eventually(lambda: transport.script.count("heartbeat") >= 2, "good beats")
            setattr(me, name, value)
            before = transport.script.count("heartbeat")
            await eventually(lambda: transport.script.count("heartbeat") > before + 3, "beats go on")
            assert me.beats_failed == 0
            beat = transport.script.calls[-1].given
            assert isinstance(beat, Beat)
            msgspec.json.decode(msgspec.json.encode(beat), type=Beat)
            if name == "load":
                assert beat.load == 5, "the last good one"
            if value != BAD_VALUES[-1][1]:  # that one can be said in JSON
                assert name in me.last_error

            setattr(me, name, {"load": 6, "status": "ready", "performance": {}}[name])
            await eventually(lambda: me.last_error == "", "all is well again")


async def test_what_the_other_side_refuses_is_left_out_and_the_lease_renewed() -> None:
    transport = FakeTransport()
    async with transport.client(heartbeat_interval_ms=20) as client:
        async with client.registered(type="game", group="kr-1") as me:
            transport.script.refuse("heartbeat", InvalidInput("performance is odd"), times=1)
            await eventually(lambda: me.last_beat_at is not None, "a beat")
            await eventually(lambda: transport.script.count("heartbeat") >= 2, "the bare beat")
            assert me.beats_failed == 0


async def test_a_beat_that_takes_its_time_holds_up_nobody_else() -> None:
    transport = FakeTransport()
    async with transport.client(heartbeat_interval_ms=50) as client:
        for instance_id in ("slow", "quick"):
            await client.register(type="game", group="kr-1", instance_id=instance_id)
        gates = transport.script.hold("heartbeat")
        slow = client.start_auto_heartbeat("slow")
        quick = client.start_auto_heartbeat("quick")
        await eventually(lambda: slow.beats_failed >= 2 and quick.beats_failed >= 2, "timeouts")
        assert "no answer" in slow.last_error
        for gate in list(gates.values()):
            gate.open()
