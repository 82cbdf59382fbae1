"""The reference game server: WebSocket chat behind a waiting room, as document 002 describes it.

    GET /gameserver?ticketId=…    the ticket may also come as X-Queue-Ticket; or, after ?ticket=message,
                                  as the first message {"ticketId": "…"}
    GET /gameserver/clients       {"count": n}

A ticket is consumed before the upgrade is answered, so a refusal is plain HTTP: 401 or 409, and 503 where it
is no fault of the player.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterator

import msgspec
from aiohttp import WSCloseCode, WSMsgType, web
from prometheus_client.core import Metric

from roost.api.queue import TICKET_HEADER, How
from roost.core import errors as e
from roost.core.networks import network_of
from roost.core.passes import peek_user, short_ticket_id
from roost.core.ratelimit import AtOnce
from roost.sdk.door import AlreadyConnected, Door
from roost.sdk.guests import Guest
from roost.servers.chat import FLOOD, NOT_TEXT, Member, Pace, Room
from roost.servers.newcomers import BadTickets, Newcomers, control_pace, receive
from roost.servers.settings import GameServerSettings
from roost.web.connections import ConnectionLimits
from roost.web.errors import status_of
from roost.web.metrics import counter, gauge, labelled
from roost.web.peer import client_ip
from roost.web.route import Header, Request, Route

log = logging.getLogger("roost.gameserver")

PATH = "/gameserver"
MESSAGE_BYTES = 4096
HEARTBEAT_S = 20.0
CLOSE_S = 2.0
"""How long a goodbye may take before the line is cut."""
LINGER_S = 5.0
"""After the end of a connection: how long what was written may still be on its way."""
FIRST_MESSAGE_S = 5.0
"""From the upgrade to the ticket, whatever else comes before it."""


class FirstMessage(msgspec.Struct, rename="camel"):
    ticket_id: str


class WebSocketLine:
    """A member's connection, as the room uses it."""

    def __init__(self, ws: web.WebSocketResponse, transport: asyncio.Transport | None) -> None:
        self._ws = ws
        self._transport = transport

    async def send(self, text: bytes) -> None:
        await self._ws.send_frame(text, WSMsgType.TEXT)

    async def close(self, code: int, reason: str) -> None:
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._ws.close(code=code, message=reason.encode())
        except TimeoutError:
            if self._transport is not None:  # it does not read: what waits for it would wait for ever
                self._transport.abort()


PLAYERS_MATTER = (e.TicketRefused, AlreadyConnected, e.ServerFull, e.StoreUnavailable, e.OutcomeUnknown)
"""What a player is told as it is; whatever else goes wrong at the door is no fault of theirs."""


def for_player(error: e.RoostError) -> e.RoostError:
    """What a player is told of a fault between us and the waiting room: not that our token is bad."""
    if isinstance(error, PLAYERS_MATTER):
        return error
    log.error("cannot let people in", extra={"code": error.code, "reason": error.message})
    return e.Unavailable("this server cannot let people in just now")


class GameServer:
    """The players' side: lets people in through the door and into the room."""

    def __init__(
        self, settings: GameServerSettings, door: Door, limits: ConnectionLimits | None = None
    ) -> None:
        limits = limits or ConnectionLimits()
        self.door = door
        self.room = Room(settings.idle_seconds, settings.idle_warning_seconds)
        self.refused: Counter[str] = Counter()
        self.left: Counter[str] = Counter()
        self.newcomers = Newcomers()
        self._bad_tickets = BadTickets()
        self._connected = AtOnce("connections", each=limits.per_address)
        self._proxies = limits.proxies

    def routes(self) -> list[Route]:
        return [
            Route(
                "GET",
                PATH,
                self.enter,
                "Let a player with a ticket in, over a WebSocket",
                upgrades=True,
                errors=(e.UpgradeRequired, e.TooManyRequests, *PLAYERS_MATTER),
                headers=(Header(TICKET_HEADER, "The ticket, where it is not in the query."),),
            ),
            Route(
                "GET",
                f"{PATH}/clients",
                self.count_clients,
                "How many players are connected",
                scope="read",
                open_in_dev=True,
            ),
        ]

    async def count_clients(self, request: Request) -> web.Response:
        return web.json_response({"count": len(self.room.members)})

    async def enter(self, request: Request) -> web.StreamResponse:
        address = network_of(client_ip(request.http, self._proxies))
        with self._connected.one_more(address):
            return await self._enter(request.open, address)

    async def _enter(self, http: web.Request, address: str) -> web.StreamResponse:
        ws = web.WebSocketResponse(
            heartbeat=HEARTBEAT_S,
            timeout=CLOSE_S,
            compress=False,
            max_msg_size=MESSAGE_BYTES + 1,
            autoping=False,
        )
        ticket = http.query.get("ticketId", "") or http.headers.get(TICKET_HEADER, "")
        by_message = not ticket and http.query.get("ticket") == "message"
        try:
            self._bad_tickets.check(address)
            if not by_message:
                _check_shape(ticket)
            if not ws.can_prepare(http):
                raise e.UpgradeRequired
            if by_message:
                return await self._enter_by_message(http, ws, address)
            guest = await self._admit(ticket)
        except e.RoostError as error:
            self._note_refusal(error, ticket, address)
            raise
        try:
            await ws.prepare(http)
        except BaseException as error:
            await self._hand_back(guest, ticket, error)
            if isinstance(error, (OSError, RuntimeError)):  # they are gone; nobody reads the answer
                return web.Response(status=503)
            raise
        await self._stay(http, ws, guest, ticket)
        return ws

    async def _enter_by_message(
        self, http: web.Request, ws: web.WebSocketResponse, address: str
    ) -> web.StreamResponse:
        """For who can set neither query nor header: refusals are close codes, 4000 above the status."""
        ticket, transport = "", http.transport
        try:
            if transport is None:
                raise ConnectionResetError
            with self.newcomers.one_more(address, transport):
                await ws.prepare(http)
                ticket = await _first_message(ws)
            guest = await self._admit(ticket)
        except e.RoostError as error:
            self._note_refusal(error, ticket, address)
            await WebSocketLine(ws, transport).close(4000 + status_of(type(error)), error.code)
            return ws
        except OSError:
            return ws
        if ws.closed:
            await self._hand_back(guest, ticket, ConnectionResetError("closed meanwhile"))
        else:
            await self._stay(http, ws, guest, ticket)
        return ws

    async def _admit(self, ticket: str) -> Guest:
        _check_shape(ticket)
        try:
            return await self.door.consume(ticket)
        except e.RoostError as error:
            raise for_player(error) from error

    def _note_refusal(self, error: e.RoostError, ticket: str, address: str) -> None:
        self.refused[error.code] += 1
        if ticket and isinstance(error, e.TicketRefused):
            self._bad_tickets.note(address)
        fields = {"code": error.code, "ticketId": short_ticket_id(ticket), "reason": error.message}
        log.info("connect refused", extra=fields)

    async def _hand_back(self, guest: Guest, ticket: str, error: BaseException) -> None:
        """The hand-off failed after the ticket was consumed: they stand where they stood."""
        reason = str(error) or type(error).__name__
        fields = {"userId": guest.user_id, "ticketId": short_ticket_id(ticket), "reason": reason}
        log.info("connect failed", extra=fields)
        self.left["failed"] += 1
        await asyncio.shield(self.door.leave(guest, "failed"))

    async def _stay(self, http: web.Request, ws: web.WebSocketResponse, guest: Guest, ticket: str) -> None:
        """From the first word to the last."""
        started, transport = time.monotonic(), http.transport
        member = self.room.join(guest.user_id, guest.nickname, WebSocketLine(ws, transport))
        who = {"userId": guest.user_id, "ticketId": short_ticket_id(ticket)}
        log.info("connected", extra={**who, "clients": len(self.room.members)})
        how: How = "dropped"
        try:
            how = await _listen(ws, self.room, member, control_pace())
        finally:
            how = member.ending.how if member.ending is not None else how
            self.left[how] += 1
            lasted_s = round(time.monotonic() - started, 3)
            why = member.ending.reason if member.ending is not None else ""
            log.info(
                "closed",
                extra={**who, "how": how, "code": ws.close_code, "reason": why, "seconds": lasted_s},
            )
            if transport is not None:
                asyncio.get_running_loop().call_later(LINGER_S, transport.abort)
            await asyncio.shield(self._goodbye(guest, member, how))

    async def _goodbye(self, guest: Guest, member: Member, how: How) -> None:
        await asyncio.gather(self.room.leave(member), self.door.leave(guest, how))

    def collect(self) -> Iterator[Metric]:
        counts = self.room.counts
        yield gauge("gameserver_client_count", "Players connected", len(self.room.members))
        yield counter("roost_gameserver_messages", "Messages that players sent to all", counts.messages)
        yield counter(
            "roost_gameserver_dropped_messages", "Messages over the rate limit of a player", counts.dropped
        )
        yield counter("roost_gameserver_idle_disconnects", "Players closed for silence", counts.idle)
        yield counter("roost_gameserver_slow_readers", "Players cut for not reading", counts.slow)
        yield counter("roost_gameserver_flooders", "Players closed for too many messages", counts.flooding)
        yield counter(
            "roost_gameserver_failed_broadcasts", "Players whom a message did not reach", counts.failed_sends
        )
        yield labelled("roost_gameserver_refused_connects", "Connects refused", "reason", dict(self.refused))
        yield labelled("roost_gameserver_closed", "Connections that ended", "how", dict(self.left))


async def _listen(ws: web.WebSocketResponse, room: Room, member: Member, controls: Pace) -> How:
    """Take what the player says until the line ends, or must end; how it ended."""
    while member.ending is not FLOOD:
        message = await receive(ws, controls)
        if message is None:
            room.end_flooder(member)
            continue
        match message.type:
            case WSMsgType.TEXT:
                room.say(member, message.data)
            case WSMsgType.BINARY:
                member.end(NOT_TEXT)
            case WSMsgType.CLOSE:
                return "dropped" if message.data == WSCloseCode.GOING_AWAY else "clean"
            case _:  # CLOSING by us; CLOSED without a close frame; ERROR: no pong, or a broken frame
                return "dropped"
    return "dropped"


async def _first_message(ws: web.WebSocketResponse) -> str:
    try:
        async with asyncio.timeout(FIRST_MESSAGE_S):
            message = await receive(ws, control_pace())
    except TimeoutError:
        raise e.TicketRefused("no ticket came within the first seconds") from None
    if message is None or message.type is not WSMsgType.TEXT:
        raise e.TicketRefused("the first message must be a ticket")
    try:
        return msgspec.json.decode(message.data, type=FirstMessage).ticket_id
    except msgspec.DecodeError:
        raise e.TicketRefused('the first message must be {"ticketId": "…"}') from None


def _check_shape(ticket: str) -> None:
    """What cannot be a ticket is not asked for."""
    if not ticket:
        raise e.TicketRefused(
            "no ticket came along",
            hint=f"connect to {PATH}?ticketId=…, or send the ticket as {TICKET_HEADER}",
        )
    if not peek_user(ticket):
        raise e.TicketRefused
