"""The waiting room over HTTP, for players."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
import zlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from aiohttp import hdrs, web
from multidict import istr

from roost.api import Message
from roost.api.queue import RECEIPT_HEADER, SIGNATURE_HEADER, WORLD, EntryInput, PlaceReply
from roost.app import Platform
from roost.core import errors as e
from roost.core.passes import BASE, EntryPass, Receipt, Ticket
from roost.gateway.auth import Tokens, token_in
from roost.gateway.limits import Limiter, network_of
from roost.gateway.peer import client_ip
from roost.gateway.route import Request, Route, WithHeaders
from roost.gateway.stream import Event, stream
from roost.settings import parse_networks
from roost.waitingroom import rules
from roost.waitingroom import scripts as answers
from roost.waitingroom.board import WorldBoard
from roost.worlds import World

log = logging.getLogger("roost.gateway.queue")

_RECEIPT, _SIGNATURE = istr(RECEIPT_HEADER), istr(SIGNATURE_HEADER)
"""As aiohttp looks them up without folding their case each time."""
NEAR = 2000
"""Up to this rank a place is asked for; beyond it, it is told from the board."""
MAX_STREAMS = 50_000
MAX_STREAMS_EACH = 3
AWAY = "the line stands still for a moment; you keep your place"
NO_LINE = "-"
"""In the receipt of whoever holds a ticket: they stand in no line, so the store is asked about them."""
SMALL_LINE = 20_000
"""In a line up to this length everybody is near."""


class StatusQuery(Message):
    user_id: str
    world: str = WORLD


def queue_routes(platform: Platform, tokens: Tokens) -> list[Route]:
    handlers = _Handlers(platform, tokens)
    return _for_players(handlers)


def _for_players(handlers: _Handlers) -> list[Route]:
    refusals = (e.UnknownWorld, e.TooManyRequests, e.TokenRefused)
    return [
        Route(
            "POST",
            "/api/queue/entry",
            handlers.enter,
            "Take a place in the line, or get a ticket at once",
            body=EntryInput,
            reply=PlaceReply,
            errors=(*refusals, e.WorldClosed),
        ),
        Route(
            "GET",
            "/api/queue/status",
            handlers.status,
            "What a person has: a place, a ticket, or nothing",
            query=StatusQuery,
            reply=PlaceReply,
            errors=refusals,
        ),
        Route(
            "GET",
            "/api/queue/events",
            handlers.events,
            "The place as it changes, as server-sent events; an open stream counts as being there",
            query=StatusQuery,
            errors=refusals,
            content_type="text/event-stream",
        ),
        Route(
            "DELETE",
            "/api/queue/entry",
            handlers.leave,
            "Give up a place or a ticket",
            query=StatusQuery,
            errors=refusals,
            status=204,
        ),
    ]


class _Handlers:
    def __init__(self, platform: Platform, tokens: Tokens) -> None:
        self._platform = platform
        self._tokens = tokens
        self._worlds = platform.worlds
        queue = platform.settings.queue
        self._by_ip = Limiter(queue.ip_per_second, 2 * queue.ip_per_second)
        self._by_user = Limiter(queue.user_per_second, queue.user_burst)
        self._proxies = parse_networks(platform.settings.gateway.trusted_proxies)
        self._secure = "" if platform.settings.is_dev() else "; Secure"

    # -- players

    async def enter(self, request: Request) -> WithHeaders:
        given: EntryInput = request.body
        await self._limit(request)
        world = self._worlds.of(given.world)
        entry = self._vouched(given)
        receipt = self._receipt(request, given.world, given.user_id, needed=False)
        answer = await world.room.enter(
            given.user_id,
            given.nickname,
            given.region,
            entry.class_,
            receipt,
            party=entry.party,
            size=entry.size,
        )
        match answer:
            case answers.Closed():
                raise e.WorldClosed(f"the world {given.world} takes nobody new")
            case answers.Full(waiting):
                raise e.WorldClosed(f"{waiting} people wait already", hint="try again in a few minutes")
        reply = await self._told(world, given.user_id, answer, receipt)
        world.entries += 1
        log.info(
            "entry",
            extra={"userId": given.user_id, "world": given.world, "status": reply.status, "rank": reply.rank},
        )
        return WithHeaders(reply, self._cookie_with(reply))

    async def status(self, request: Request) -> PlaceReply | WithHeaders:
        asked: StatusQuery = request.query
        await self._limit(request)
        world = self._worlds.of(asked.world)
        reply = await self._place(world, asked.user_id, self._proof(request, asked))
        # A turn of the loop before it is written: so the answers of one turn are worked out without a system
        # call between them. Measured with 64 callers: 102 → 80 µs for a far poll, 108 → 96 µs for a near one.
        await asyncio.sleep(0)
        if _has_cookie(request.http, asked.world):
            return WithHeaders(reply, self._cookie_with(reply))
        return reply

    async def events(self, request: Request) -> web.StreamResponse:
        asked: StatusQuery = request.query
        await self._limit(request)
        world = self._worlds.of(asked.world)
        receipt = self._proof(request, asked)
        if world.push.open_for(asked.user_id) >= MAX_STREAMS_EACH:
            raise e.TooManyRequests("this person has streams open already", retry_after_s=5.0)
        if world.push.open >= MAX_STREAMS:
            raise e.TooManyRequests("as many streams are open here as may be", retry_after_s=5.0)
        return await stream(request.http, self._changes(world, asked.user_id, receipt), request.request_id)

    async def _changes(self, world: World, user: str, receipt: Receipt | None) -> AsyncIterator[Event]:
        """The place at once, whenever they would ask, and the moment that something happens to them."""
        with world.push.listening(user) as waiter:
            for count in itertools.count(1):
                try:
                    reply = await self._place(world, user, receipt)
                except e.TooManyRequests as error:
                    await asyncio.sleep(error.retry_after_s)
                    continue
                except e.StoreError:
                    reply = PlaceReply("WAITING", world=world.name, next_poll_ms=2000, message=AWAY)
                yield Event(str(count), "place", msgspec.json.encode(reply))
                if reply.status == "NONE":
                    return
                if reply.receipt:
                    receipt = self._worlds.passes.receipt(reply.receipt, world.name, user)
                await waiter.wait(reply.next_poll_ms / 1000)

    async def _place(self, world: World, user: str, receipt: Receipt | None) -> PlaceReply:
        if receipt is not None and user not in world.presence.strangers:
            board = world.room.board.fresh() or await world.room.board.get()
            far = self._from_afar(world, receipt, board)
            if far is not None:
                return far
        found = await world.room.status(user)
        if isinstance(found, answers.Waiting):
            world.presence.strangers.discard(user)
            kept = world.room.board.fresh()
            if kept is not None and kept.born:  # the common case, without two more coroutines
                return self._waiting(world, user, found, kept, receipt)
        return await self._told(world, user, found, receipt)

    async def leave(self, request: Request) -> None:
        asked: StatusQuery = request.query
        await self._limit(request)
        world = self._worlds.of(asked.world)
        self._proof(request, asked)
        if isinstance(await world.room.leave(asked.user_id), answers.Inside):
            raise e.InvalidInput("whoever is in the game leaves by leaving the game")

    def _cookie_with(self, reply: PlaceReply) -> dict[str, str]:
        """The receipt for a browser: with the rank shown last, so that none of its ranks ever rises."""
        if not reply.receipt:
            return {}
        name = _cookie(reply.world)
        cookie = f"{name}={reply.receipt}; Path=/api/queue; HttpOnly; SameSite=Lax{self._secure}"
        return {"Set-Cookie": cookie}

    async def _limit(self, request: Request) -> None:
        """By address; a backend that asks for its players shows a token instead."""
        if token_in(request.http.headers):
            await self._tokens.check(request.http.headers, "gameserver")
            return
        self._by_ip.check(network_of(client_ip(request.http, self._proxies)))

    def _vouched(self, given: EntryInput) -> EntryPass:
        """What the login service signed; what they say themselves where nobody signs, in profile dev only."""
        if self._worlds.takes_unsigned and not given.signature:
            return EntryPass(given.world, given.user_id, BASE, 0.0, given.party, given.party_size)
        if not given.signature:
            raise e.TokenRefused(
                "an entry needs the signature of the login service", hint="see roost.sign_entry"
            )
        return self._worlds.passes.entry(given.signature, given.world, given.user_id, time.time())

    def _receipt(self, request: Request, world: str, user: str, *, needed: bool) -> Receipt | None:
        token = request.http.headers.get(_RECEIPT) or request.http.cookies.get(_cookie(world), "")
        if not token:
            return None
        try:
            return self._worlds.passes.receipt(token, world, user)
        except e.TokenRefused:
            if needed:
                raise
            return None  # a browser may still hold the cookie of another account

    def _proof(self, request: Request, asked: StatusQuery) -> Receipt | None:
        """That they may ask about this place: its receipt, or the login service's signature."""
        signature = request.http.headers.get(_SIGNATURE, "")
        if signature:
            self._worlds.passes.entry(signature, asked.world, asked.user_id, time.time())
            return self._receipt(request, asked.world, asked.user_id, needed=False)
        receipt = self._receipt(request, asked.world, asked.user_id, needed=True)
        if receipt is None:
            raise e.TokenRefused(
                "a place is shown to whoever holds its receipt",
                hint=f"send the receipt that entry gave as {RECEIPT_HEADER}, or its cookie",
            )
        return receipt

    def _from_afar(self, world: World, receipt: Receipt, board: WorldBoard) -> PlaceReply | None:
        """The answer for somebody far back, from receipt and board alone; None if they are near."""
        line = board.lines.get(receipt.line)
        if board.born != receipt.born or line is None or line.waiting <= SMALL_LINE:
            return None
        rank = line.rank_of(receipt.seq)
        if rank <= NEAR or receipt.seq <= line.marks[min(1, len(line.marks) - 1)]:
            return None  # before the second mark the board cannot tell the first from a 64th of the line
        self._by_user.check(receipt.user)
        poll_ms = rules.poll_ms(rank, line.fast)
        opens_ms = max(0, (board.opens_at_us - int(time.time() * 1e6)) // 1000)
        if opens_ms:
            rank, poll_ms = line.waiting, min(30_000, max(2000, opens_ms))
        world.presence.mark(receipt.user, poll_ms)
        waiting = answers.Waiting(
            receipt.seq, rank, line.away, 0, poll_ms, line.fast, line.slow, receipt.line, opens_ms
        )
        return self._waiting(world, receipt.user, waiting, board, receipt)

    async def _told(self, world: World, user: str, answer: Any, receipt: Receipt | None) -> PlaceReply:
        match answer:
            case answers.Limited(retry_ms):
                raise e.TooManyRequests(retry_after_s=retry_ms / 1000)
            case answers.Waiting():
                board = await self._board(world)
                return self._waiting(world, user, answer, board, receipt)
            case answers.Offered(seq, tid, left_ms):
                board = await self._board(world)
                return PlaceReply(
                    "PROMOTED",
                    world=world.name,
                    next_poll_ms=2000,
                    ticket_id=self._worlds.passes.sign_ticket(Ticket(world.name, user, tid, seq)),
                    receipt=self._signed(world, user, board, seq, NO_LINE, 0),
                    expires_in_ms=left_ms,
                    server_url=board.server_url(),
                    message=board.message,
                )
            case answers.Inside():
                return PlaceReply("ENTERED", world=world.name, next_poll_ms=30_000)
            case answers.Held(left_ms):
                return PlaceReply(
                    "ENTERED",
                    world=world.name,
                    next_poll_ms=2000,
                    expires_in_ms=left_ms,
                    message="your place is held: enter again to come back in",
                )
            case answers.Nobody():
                return PlaceReply("NONE", world=world.name, next_poll_ms=30_000)
        raise AssertionError(answer)

    def _waiting(
        self,
        world: World,
        user: str,
        found: answers.Waiting,
        board: WorldBoard,
        receipt: Receipt | None,
    ) -> PlaceReply:
        shown = found.rank
        if (
            not found.opens_ms
            and receipt is not None
            and receipt.seq == found.seq
            and receipt.born == board.born
            and receipt.shown
        ):
            shown = min(shown, receipt.shown)
        moves = board.mode != "hold" and not found.opens_ms
        eta = rules.eta_seconds(shown, found.fast, found.slow) if moves else None
        return PlaceReply(
            "WAITING",
            rank=shown,
            world=world.name,
            ahead=shown - 1,
            away_ahead=found.away_ahead,
            next_poll_ms=_jittered(user, found.poll_ms),
            opens_in_ms=found.opens_ms,
            was_away=bool(found.was_away),
            eta_seconds=eta[0] if eta else None,
            eta_high_seconds=eta[1] if eta else None,
            receipt=self._signed(world, user, board, found.seq, found.line, 0 if found.opens_ms else shown),
            message=board.message,
        )

    async def _board(self, world: World) -> WorldBoard:
        """The board of a world in which somebody has a place: so one from before its birth is too old."""
        board = world.room.board.fresh() or await world.room.board.get()
        if board.born:
            return board
        world.room.board.forget()
        return await world.room.board.get()

    def _signed(self, world: World, user: str, board: WorldBoard, seq: int, line: str, shown: int) -> str:
        return self._worlds.passes.sign_receipt(
            Receipt(world.name, user, board.born, seq, line, shown, time.time())
        )


def _cookie(world: str) -> str:
    return f"roost_receipt_{world}"


def _has_cookie(http: web.Request, world: str) -> bool:
    """Cookies are parsed only where some came: that costs as much as half of an answer."""
    return hdrs.COOKIE in http.headers and _cookie(world) in http.cookies


def _jittered(user: str, poll_ms: int) -> int:
    """Up to 15 % sooner, the same for the same person: people spread, and nobody comes late by it."""
    return poll_ms - poll_ms * (zlib.crc32(user.encode()) & 0xFFFF) * 15 // 6_553_500
