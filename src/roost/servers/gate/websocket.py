"""Clients over WebSocket: text is JSON, binary is msgpack. The first message decides; it is the login."""

from __future__ import annotations

import asyncio
import logging
import time

from aiohttp import WSCloseCode, WSMessage, WSMsgType, web

from roost.core.errors import (
    InvalidInput,
    RequestTimeout,
    RoostError,
    StoreError,
    TokenRefused,
    Unavailable,
    UpgradeRequired,
)
from roost.core.networks import Network, network_of
from roost.core.ratelimit import AtOnce
from roost.servers.chat import Pace
from roost.servers.gate.gate import Gate
from roost.servers.gate.messages import JSON, MSGPACK, Codec, FromClient
from roost.servers.gate.queued import Refusal
from roost.servers.gate.session import Session
from roost.servers.newcomers import BadTickets, Newcomers, control_pace, receive
from roost.web.connections import ConnectionLimits
from roost.web.peer import client_ip
from roost.web.route import Request, Route

log = logging.getLogger("roost.gate")

PATHS = ("/", "/gate")
HEARTBEAT_S = 20.0
"""A client that does not answer a ping within half of it is gone."""
CLOSE_S = 2.0
LINGER_S = 5.0
LOGIN_S = 5.0
"""From the upgrade to the login."""
MOST_NEW = 1024
"""Connections without a login; then the oldest is cut. After a gate's end many come at once."""
REFUSED = 4000
CLOSE_CODES = {"DRAINING": WSCloseCode.GOING_AWAY, "LOGGED_OUT": WSCloseCode.OK, "IDLE": WSCloseCode.OK}

_TEXT, _BINARY = 0x81, 0x82


class WebSocketPort:
    """Writes whole frames straight to the transport: a reply needs no task, and waits for nobody."""

    def __init__(
        self, ws: web.WebSocketResponse, transport: asyncio.Transport, address: str, most_unread: int
    ) -> None:
        self.address = address
        self.is_slow = False
        """It left so much unread that it was cut."""
        self._ws = ws
        self._transport = transport
        self._most_unread = most_unread
        self._first_byte = _TEXT
        self._closing: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        return not self._transport.is_closing() and self._closing is None

    def speaks(self, codec: Codec) -> None:
        self._first_byte = _BINARY if codec.is_binary else _TEXT

    def send(self, data: bytes) -> None:
        transport = self._transport
        if not self.is_open:
            return
        size = len(data)
        if size < 126:
            head = bytes((self._first_byte, size))
        elif size < 65536:
            head = bytes((self._first_byte, 126, size >> 8, size & 255))
        else:
            head = bytes((self._first_byte, 127)) + size.to_bytes(8, "big")
        transport.write(head + data)
        if transport.get_write_buffer_size() > self._most_unread:
            self.is_slow = True
            self.cut("it left too much unread")

    def cut(self, why: str) -> None:
        log.info("client cut", extra={"reason": why})
        self._transport.abort()

    def close(self, last: bytes, code: str) -> None:
        self.send(last)
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(code), name="roost gate close")

    async def _close(self, code: str) -> None:
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._ws.close(code=CLOSE_CODES.get(code, REFUSED), message=code.encode())
        except TimeoutError:
            self.cut("it did not read the farewell")

    async def closed(self) -> None:
        """Wait until a close of ours is through."""
        if self._closing is not None:
            await asyncio.wait((self._closing,))


class WebSocketClients:
    """The WebSocket side of a gate."""

    def __init__(self, gate: Gate, limits: ConnectionLimits) -> None:
        self.newcomers = Newcomers(MOST_NEW, limits.per_address or MOST_NEW)
        self._gate = gate
        self._bad_tokens = BadTickets()
        self._connected = AtOnce("connections", each=limits.per_address)
        self._proxies: tuple[Network, ...] = tuple(limits.proxies)

    def routes(self) -> list[Route]:
        return [
            Route("GET", path, self.enter, "Log a client in, over a WebSocket", upgrades=True)
            for path in PATHS
        ]

    async def enter(self, request: Request) -> web.StreamResponse:
        address = network_of(client_ip(request.http, self._proxies))
        with self._connected.one_more(address):
            return await self._enter(request.open, address)

    async def _enter(self, http: web.Request, address: str) -> web.StreamResponse:
        self._bad_tokens.check(address)
        ws = web.WebSocketResponse(
            heartbeat=HEARTBEAT_S,
            timeout=CLOSE_S,
            compress=False,
            max_msg_size=self._gate.settings.message_bytes + 1,
            autoping=False,
        )
        if not ws.can_prepare(http):
            raise UpgradeRequired(
                hint="connect with a WebSocket client, then send the login as the first message"
            )
        transport = http.transport
        if transport is None:
            return web.Response(status=503)
        port = WebSocketPort(ws, transport, address, self._gate.settings.unread_bytes)
        try:
            session = await self._login(http, ws, port, transport)
        except OSError:
            return ws
        if session is not None:
            await self._stay(ws, port, session)
            asyncio.get_running_loop().call_later(LINGER_S, transport.abort)
        await port.closed()
        return ws

    async def _login(
        self, http: web.Request, ws: web.WebSocketResponse, port: WebSocketPort, transport: asyncio.Transport
    ) -> Session | None:
        """A session, or None: they were told why not, or are gone."""
        codec: Codec = JSON
        try:
            with self.newcomers.one_more(port.address, transport):
                await ws.prepare(http)
                codec, first = await _first_message(ws)
            port.speaks(codec)
            session = await self._gate.login(port, codec, first)
        except RoostError as error:
            if isinstance(error, TokenRefused):
                self._bad_tokens.note(port.address)
            log.info("login refused", extra={"code": error.code, "reason": error.message})
            told = refusal_of(error)
            port.close(codec.bye(told), told.code)
            return None
        if not port.is_open:
            session.gone("dropped")
        return session

    async def _stay(self, ws: web.WebSocketResponse, port: WebSocketPort, session: Session) -> None:
        reason = "dropped"
        try:
            reason = await _listen(ws, session, control_pace())
        finally:
            session.gone("slow" if port.is_slow else reason)


async def _first_message(ws: web.WebSocketResponse) -> tuple[Codec, FromClient]:
    try:
        async with asyncio.timeout(LOGIN_S):
            message = await receive(ws, control_pace())
    except TimeoutError:
        raise RequestTimeout("no login came within the first seconds") from None
    if message is None or message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
        raise InvalidInput("the first message must be a login")
    codec: Codec = JSON if message.type is WSMsgType.TEXT else MSGPACK
    return codec, codec.read(message.data)


async def _listen(ws: web.WebSocketResponse, session: Session, controls: Pace) -> str:
    """Take what the client says until the line ends; how it ended."""
    expected = WSMsgType.BINARY if session.codec.is_binary else WSMsgType.TEXT
    while not session.is_over:
        message = await ws.receive()
        if message.type is expected:
            session.received(message.data)
            continue
        if message.type in (WSMsgType.PING, WSMsgType.PONG):
            if not await _control(ws, message, controls):
                return "flood"
            continue
        if message.type is WSMsgType.CLOSE:
            return "dropped" if message.data == WSCloseCode.GOING_AWAY else "closed"
        if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
            session.end(
                Refusal("BAD_REQUEST", "a session stays with the kind of its first message"), "closed"
            )
        return "dropped"  # CLOSING by us; CLOSED without a close frame; ERROR: no pong, or a broken frame
    return "dropped"


async def _control(ws: web.WebSocketResponse, message: WSMessage, controls: Pace) -> bool:
    """A ping is answered; False: there are too many that are no messages."""
    judged = controls.judge(time.monotonic())
    if judged == "take" and message.type is WSMsgType.PING:
        await ws.pong(message.data)
    return judged != "end"


def refusal_of(error: RoostError) -> Refusal:
    """What a client is told: of a token only that it is refused, of a store away that it shall come again."""
    if isinstance(error, TokenRefused):
        return Refusal(error.code, "the token is not good here")
    code = Unavailable.code if isinstance(error, StoreError) else error.code
    retry_after_s = error.retry_after_s or (1.0 if code == Unavailable.code else 0.0)
    message = error.message + (f" ({error.hint})" if error.hint else "")
    return Refusal(code or "REFUSED", message, int(retry_after_s * 1000))
