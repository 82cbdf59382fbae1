"""A worker's side of its supervisor: what it is asked, and what it asks so that it can answer for all.

Whichever worker the kernel hands a request to, `/metrics` and `/readyz` are about the port, which all share.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

import msgspec

from roost.api.system import Ready
from roost.core.errors import Unavailable
from roost.gateway.workers.line import ANSWER_S, Line
from roost.web.ops import Check, Page

log = logging.getLogger("roost.workers")

ALL_ANSWER_S = ANSWER_S + 1.0
"""The supervisor waits for every worker first."""

_ready = msgspec.json.Decoder(Ready).decode


class Place(NamedTuple):
    """Who a worker is: its number, and its end of the line to the supervisor."""

    number: int
    end: socket.socket


class Colleagues:
    """All workers of this gateway, itself included."""

    def __init__(self) -> None:
        self._line: Line | None = None
        self._page: Page | None = None
        self._check: Check | None = None

    def join(self, page: Page, check: Check) -> None:
        """Say what this worker itself shows, and whether it can serve."""
        self._page, self._check = page, check

    async def render(self) -> bytes:
        """The page of all workers; where the supervisor gives none, an error rather than a part of it."""
        assert self._line is not None
        return await self._line.ask("metrics", ALL_ANSWER_S)

    async def check(self) -> Ready:
        """Ready if every worker is that takes connections: the kernel hands them to all alike."""
        assert self._line is not None
        return _ready(await self._line.ask("ready", ALL_ANSWER_S))

    async def say_up(self) -> None:
        """Tell the supervisor that this worker takes connections."""
        assert self._line is not None
        await self._line.ask("up")

    async def answer(self, what: str) -> bytes:
        """What the supervisor asks."""
        if self._page is None or self._check is None:
            raise Unavailable("starting")
        if what == "page":
            return await self._page.render()
        return msgspec.json.encode(await self._check())

    @contextlib.asynccontextmanager
    async def connected(self, place: Place, on_end: Callable[[], None]) -> AsyncIterator[None]:
        """`on_end`: the supervisor is gone, and nobody would start this worker again or stop it."""
        self._line = await Line.open(place.end, self.answer)
        reading = asyncio.create_task(self._line.run())
        reading.add_done_callback(lambda _: on_end())
        try:
            yield
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
