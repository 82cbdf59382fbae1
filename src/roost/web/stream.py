"""Server-sent events: a line that stays open, with ids to go on from and comments that keep it open."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from typing import NamedTuple

from aiohttp import web

from roost.core.errors import NotAuthenticated, StoreError

CHECK_S = 1.0
"""How often a stream asks whether its token still counts."""
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


StillAllowed = Callable[[], Awaitable[object]]
"""Raises `NotAuthenticated` once whoever began a stream may read it no longer."""


async def stream(
    http: web.Request,
    events: AsyncIterator[Event],
    request_id: str,
    still_allowed: StillAllowed | None = None,
) -> web.StreamResponse:
    """Send events until the reader leaves, cannot keep up or may read no longer; to HEAD none."""
    response = web.StreamResponse(
        headers={
            "Content-Type": "text/event-stream",
            "Cache-Control": "no-store",
            "X-Accel-Buffering": "no",
            "X-Request-Id": request_id,
        }
    )
    await response.prepare(http)
    if http.method == "HEAD":
        return response
    await response.write(b": roost\n\n")
    pending = asyncio.ensure_future(anext(events))
    checked_at = written_at = time.monotonic()
    try:
        while True:
            done, _ = await asyncio.wait({pending}, timeout=CHECK_S if still_allowed else KEEP_ALIVE_S)
            now = time.monotonic()
            if still_allowed is not None and now - checked_at >= CHECK_S:
                checked_at = now
                if not await _is_allowed(still_allowed):
                    break
            if done:
                event = pending.result()
                pending = asyncio.ensure_future(anext(events))
                head = f"id: {event.id}\nevent: {event.name}\ndata: ".encode()
                await _write(response, head + event.data + b"\n\n")
            elif now - written_at >= KEEP_ALIVE_S:
                await _write(response, b": keep-alive\n\n")
            else:
                continue
            written_at = now
    except (ConnectionError, TimeoutError, StopAsyncIteration):
        pass
    finally:
        pending.cancel()
        with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration, Exception):
            await pending
    return response


async def _is_allowed(still_allowed: StillAllowed) -> bool:
    """A store that is away revokes nobody."""
    try:
        await still_allowed()
    except NotAuthenticated:
        return False
    except StoreError:
        return True
    return True


async def _write(response: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(WRITE_TIMEOUT_S):
        await response.write(data)
