"""What nobody can read is refused as a mistake of its sender: 400 or 401, without a traceback in the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from roost.testing import RunningServer
from tests.acceptance.queue import TOKEN, Gate, open_gate, settings_for

ENTRY = "/api/queue/entry"
INSTANCES = "/sd/v1/instances"


@pytest.fixture
async def gate(server: RunningServer, tmp_path: Path) -> AsyncIterator[Gate]:
    async with open_gate(server, settings_for(tmp_path)) as gate:
        yield gate


async def send(gate: Gate, method: str, path: str, body: bytes = b"", *headers: bytes) -> bytes:
    """The status line and everything after it, for a request whose bytes are as they are."""
    reader, writer = await asyncio.open_connection(*gate.address)
    length = b"Content-Length: %d" % len(body)
    lines = [f"{method} {path} HTTP/1.1".encode(), b"Host: x", b"Connection: close", length, *headers]
    try:
        writer.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        async with asyncio.timeout(10):
            return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


BODIES = {
    "bad UTF-8 in a value": b'{"userId": "\xff\xfe"}',
    "bad UTF-8 in a name": b'{"userId": "ann", "\xff\xfe": 1}',
    "a lone surrogate": b'{"userId": "\\ud800"}',
    "nested deeply in a known field": b'{"userId": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "nested deeply in an unknown field": b'{"userId": "ann", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "nested deeply and unfinished": b"[" * 200_000,
    "NUL in an id": b'{"userId": "a\\u0000b"}',
    "a number out of range": b'{"userId": "ann", "partySize": 1e400}',
    "not JSON": b"userId=ann",
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("path", [ENTRY, INSTANCES, "/lb/v1/select", "/auth/v1/tokens"])
async def test_an_unreadable_body_is_a_mistake(
    gate: Gate, path: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    answer = await send(gate, "POST", path, BODIES[name], b"X-API-Token: " + TOKEN.encode())
    assert status_of(answer) == 400, answer
    assert not [record for record in caplog.records if record.exc_info]


HEADERS = [
    b"X-API-Token: \xff\xfe",
    "X-API-Token: tökén".encode(),
    b"Authorization: Bearer \xff\xfe",
    b"X-Queue-Receipt: \xff\xfe",
    "X-Queue-Receipt: v1.q1.ä.ö".encode(),
    b"X-Queue-Signature: \xff\xfe",
    b"X-Request-Id: \xff\xfe",
    b"Cookie: roost_receipt_main=\xff\xfe",
    b"Cookie: \xff\xfe=;;;==",
    b"Last-Event-ID: \xff-\xfe",
    "Last-Event-ID: ٣-٣".encode(),
    b"Content-Type: \xff/\xfe",
    b"Content-Encoding: gzip",
    b"X-Forwarded-For: \xff\xfe",
    b"Expect: nothing",
    b"If-Modified-Since: \xff\xfe",
    b"Accept-Encoding: \xff",
]
PLACES = [
    ("GET", "/api/queue/status?userId=ann"),
    ("GET", "/api/queue/status?userId=%ff%fe"),
    ("GET", "/api/queue/status?userId=%ED%A0%80"),
    ("GET", "/api/queue/events?userId=%ED%A0%80"),
    ("GET", "/api/queue/status?userId=ann&world=%ff"),
    ("DELETE", "/api/queue/entry?userId=%00"),
    ("GET", "/sd/v1/instances?type=%ff"),
    ("GET", "/sd/v1/instances?label=%ff=%fe"),
    ("GET", "/sd/v1/instances/%ff"),
    ("GET", "/sd/v1/instances/%ED%A0%80"),
    ("DELETE", "/sd/v1/instances/%ff?life=%ff"),
    ("GET", "/lb/v1/select?type=game&key=%ff%ED%A0%80"),
    ("GET", "/lb/v1/explain?type=game&key=%ED%A0%80"),
    ("GET", "/queue/v1/worlds/%ff"),
    ("DELETE", "/queue/v1/worlds/main/people/%ED%A0%80"),
    ("DELETE", "/auth/v1/tokens/%ED%A0%80"),
    ("GET", "/queue/%ff"),
    ("GET", "/%ff%fe?%ff=%fe"),
]


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("path", ["/api/queue/status?userId=ann", "/sd/v1/instances?type=game", "/nowhere"])
async def test_an_unreadable_header_is_a_mistake(
    gate: Gate, path: str, header: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    answer = await send(gate, "GET", path, b"", header)
    assert 400 <= status_of(answer) < 500, answer
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize(("method", "path"), PLACES)
async def test_an_unreadable_address_is_a_mistake(
    gate: Gate, method: str, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    answer = await send(gate, method, path, b"", b"X-API-Token: " + TOKEN.encode())
    assert status_of(answer) in (200, 204, 400, 401, 404, 410), answer
    assert not [record for record in caplog.records if record.exc_info]
