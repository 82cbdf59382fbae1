"""Server-sent events: a line that stays open, with ids to go on from and comments that keep it open."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import NamedTuple

from aiohttp import web

KEEP_ALIVE_S = 15.0
WRITE_TIMEOUT_S = 10.0
"""A reader that does not take its events for so long is cut off; it can come back with Last-Event-ID."""

has_begun: ContextVar[bool] = ContextVar("has_begun")
"""Whether the status of an answer went out already: then there can be no other. For requests of aiohttp."""


async def note_begun(_: web.Request, __: web.StreamResponse) -> None:
    has_begun.set(True)


class Event(NamedTuple):
    id: str
    name: str
    data: bytes


async def stream(http: web.Request, events: AsyncIterator[Event], request_id: str) -> web.StreamResponse:
    """Send events until the reader leaves or cannot keep up."""
    response = web.StreamResponse(
        headers={
            "Content-Type": "text/event-stream",
            "Cache-Control": "no-store",
            "X-Accel-Buffering": "no",
            "X-Request-Id": request_id,
        }
    )
    await response.prepare(http)
    await response.write(b": roost\n\n")
    pending = asyncio.ensure_future(anext(events))
    try:
        while True:
            done, _ = await asyncio.wait({pending}, timeout=KEEP_ALIVE_S)
            if not done:
                await _write(response, b": keep-alive\n\n")
                continue
            event = pending.result()
            pending = asyncio.ensure_future(anext(events))
            await _write(
                response, f"id: {event.id}\nevent: {event.name}\ndata: ".encode() + event.data + b"\n\n"
            )
    except (ConnectionError, TimeoutError, StopAsyncIteration):
        pass
    finally:
        pending.cancel()
        with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration, Exception):
            await pending
    return response


async def _write(response: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(WRITE_TIMEOUT_S):
        await response.write(data)
