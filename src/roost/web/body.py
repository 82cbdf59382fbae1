"""Reading the body of a request that aiohttp has: within its time and its size."""

from __future__ import annotations

import asyncio

from aiohttp import web

from roost.core.errors import BodyTooLarge, RequestTimeout

BODY_S = 10.0
"""From the headers to the end of the body, however slowly it comes."""
DRAIN_BYTES = 4 * 1024 * 1024
DRAIN_S = 2.0
"""How much, and for how long, of a body that is too large is read, so that its sender can read the answer."""


async def read_in_time(http: web.Request, limit: int) -> bytes:
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
