"""Connections before they have shown a good ticket, and the frames that are no messages: how many, how long.

Whoever opens connections and shows nothing makes room for whoever comes next, the oldest first: of the same
address, and of all where too many addresses do it. So nobody is kept out by those who never meant to come in.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import WSMessage, WSMsgType, web

from roost.core.errors import TooManyRequests
from roost.core.ratelimit import Limiter
from roost.servers.chat import Pace

MOST = 256
"""Connections that may be open without having shown a ticket yet."""
MOST_EACH = 16
"""Of one address."""
CONTROLS_PER_S = 2
CONTROLS_AT_ONCE = 20
"""Pings and pongs of one connection; more of them are not answered, and soon end it."""
REFUSED_PER_S = 2
REFUSED_AT_ONCE = 20
"""Tickets of one address that may turn out bad; then the next is refused unread."""


class Newcomers:
    """Who has connected and shown no ticket yet, oldest first."""

    def __init__(self, most: int = MOST, each: int = MOST_EACH) -> None:
        self._most = most
        self._each = each
        self._lines: dict[str, dict[asyncio.Transport, None]] = {}
        self._all: dict[asyncio.Transport, str] = {}

    def __len__(self) -> int:
        return len(self._all)

    @contextmanager
    def one_more(self, address: str, transport: asyncio.Transport) -> Iterator[None]:
        """Be one of them while the block runs; the line is cut if too many come after it."""
        if len(self._lines.get(address, ())) >= self._each:
            self._cut(next(iter(self._lines[address])))
        elif len(self._all) >= self._most:
            self._cut(next(iter(self._all)))
        self._all[transport] = address
        self._lines.setdefault(address, {})[transport] = None
        try:
            yield
        finally:
            self._forget(transport)

    def _cut(self, transport: asyncio.Transport) -> None:
        self._forget(transport)
        transport.abort()

    def _forget(self, transport: asyncio.Transport) -> None:
        address = self._all.pop(transport, None)
        if address is not None:
            del self._lines[address][transport]
            if not self._lines[address]:
                del self._lines[address]


class BadTickets:
    """How often an address has shown a ticket that was refused."""

    def __init__(self) -> None:
        self._limiter = Limiter(REFUSED_PER_S, REFUSED_AT_ONCE)

    def check(self, address: str) -> None:
        """`TooManyRequests` where too many of its tickets were bad just now."""
        self._limiter.look(address)

    def note(self, address: str) -> None:
        try:
            self._limiter.check(address)
        except TooManyRequests:
            pass  # those that were on their way when the last of them was counted


def control_pace() -> Pace:
    return Pace(CONTROLS_PER_S, CONTROLS_AT_ONCE)


async def receive(ws: web.WebSocketResponse, controls: Pace) -> WSMessage | None:
    """The next frame that is a message, or how the line ended; None: there were too many that are none."""
    while True:
        message = await ws.receive()
        if message.type not in (WSMsgType.PING, WSMsgType.PONG):
            return message
        judged = controls.judge(time.monotonic())
        if judged == "end":
            return None
        if judged == "take" and message.type is WSMsgType.PING:
            await ws.pong(message.data)
