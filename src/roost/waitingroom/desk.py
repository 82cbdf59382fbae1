"""Where people of a world ask: what the store or the board says becomes the reply that they read.

People near the front are answered by the store. In a long line the rest are far: their receipt says which
place they have and the board about where it stands, so the store is not asked about them; that they were
there is told to it later (`Presence`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable
from typing import assert_never

from roost.api.queue import EntryInput, PlaceReply
from roost.core import errors as e
from roost.core.passes import EntryPass, Receipt, Ticket
from roost.waitingroom import rules
from roost.waitingroom import scripts as answers
from roost.waitingroom.keyring import KeyRing
from roost.waitingroom.model import WorldBoard
from roost.waitingroom.presence import Presence
from roost.waitingroom.push import Push
from roost.waitingroom.service import WaitingRoom

log = logging.getLogger("roost.waitingroom.desk")

NEAR = 2000
"""Up to this rank a place is asked for; beyond it, it is told from the board."""
SMALL_LINE = 20_000
"""In a line up to this length everybody is near."""
NO_LINE = "-"
"""In the receipt of a ticket's holder: they stand in no line, so the store is asked about them."""
AWAY = "the line stands still for a moment; you keep your place"

NOWHERE = "no server takes people just now; your ticket stays good, keep this open"

RateLimit = Callable[[str], None]
"""Counts a call of this user, or raises `TooManyRequests`: for calls that the store does not count."""


class Desk:
    """One world's answers to its people. Who asks has proved that they may."""

    def __init__(self, room: WaitingRoom, presence: Presence, push: Push, keyring: KeyRing) -> None:
        self.world = room.world
        self._room = room
        self._presence = presence
        self._push = push
        self._keyring = keyring

    async def enter(self, given: EntryInput, entry: EntryPass, receipt: Receipt | None) -> PlaceReply:
        """A place, or a ticket at once; `WorldClosed` where nobody new is taken."""
        answer = await self._room.enter(
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
                raise e.WorldClosed(f"the world {self.world} takes nobody new")
            case answers.Full(waiting):
                raise e.WorldClosed(f"{waiting} people wait already", hint="try again in a few minutes")
        reply = await self._reply(given.user_id, answer, receipt)
        log.info(
            "entry",
            extra={
                "userId": given.user_id,
                "world": self.world,
                "status": reply.status,
                "rank": reply.rank,
                **({"ticketId": answer.tid[:8]} if isinstance(answer, answers.Offered) else {}),
            },
        )
        return reply

    async def status(self, user: str, receipt: Receipt | None, limit_far: RateLimit) -> PlaceReply:
        """What they have. The store limits how often it is asked, `limit_far` how often we answer for it."""
        board_cache = self._room.board
        if receipt is not None and (user, receipt.seq) not in self._presence.unknown_to_store:
            board = board_cache.fresh() or await board_cache.get()
            far = self._from_afar(receipt, board, limit_far)
            if far is not None:
                return far
        found = await self._room.status(user)
        if isinstance(found, answers.Waiting):
            self._presence.unknown_to_store.discard((user, found.seq))
            kept = board_cache.fresh()
            if kept is not None and kept.born:  # the common case, without two more coroutines
                return self._near(user, found, kept, receipt)
        return await self._reply(user, found, receipt)

    async def knows(self, user: str) -> bool:
        """Whether they have a place, a ticket or a place inside; asks the store: the board has no names."""
        found = await self._room.status(user)
        if isinstance(found, answers.Limited):
            raise e.TooManyRequests(retry_after_s=found.retry_ms / 1000)
        return not isinstance(found, answers.NoPlace)

    async def changes(
        self, user: str, receipt: Receipt | None, limit_far: RateLimit
    ) -> AsyncGenerator[PlaceReply, None]:
        """The place at once, whenever they would ask, and the moment that something happens to them.

        Ends when they have none. While the store is away they are told to keep waiting.
        """
        with self._push.listening(user) as waiter:
            while True:
                try:
                    reply = await self.status(user, receipt, limit_far)
                except e.TooManyRequests as error:
                    await asyncio.sleep(error.retry_after_s)
                    continue
                except e.StoreError:
                    reply = PlaceReply("WAITING", world=self.world, next_poll_ms=2000, message=AWAY)
                yield reply
                if reply.status == "NONE":
                    return
                if reply.receipt:
                    receipt = self._keyring.passes.receipt(reply.receipt, self.world, user)
                await waiter.wait(reply.next_poll_ms / 1000)

    async def leave(self, user: str, receipt: Receipt | None) -> None:
        """Give up the place or ticket that the receipt names, if they still have it."""
        if isinstance(await self._room.leave(user, receipt), answers.Inside):
            raise e.InvalidInput("a person in the game leaves by leaving the game")

    def _from_afar(self, receipt: Receipt, board: WorldBoard, limit_far: RateLimit) -> PlaceReply | None:
        """The answer for somebody far back, from receipt and board alone; None if they are near."""
        line = board.lines.get(receipt.line)
        if board.born != receipt.born or line is None or line.waiting <= SMALL_LINE:
            return None
        rank = line.rank_of(receipt.seq)
        if rank <= NEAR or receipt.seq <= line.marks[min(1, len(line.marks) - 1)]:
            return None  # before the second mark the board cannot tell the first from a 64th of the line
        limit_far(receipt.user)
        poll_ms = rules.poll_ms(rank, line.fast)
        opens_ms = max(0, (board.opens_at_us - int(time.time() * 1e6)) // 1000)
        if opens_ms:
            rank, poll_ms = line.waiting, min(30_000, max(2000, opens_ms))
        self._presence.mark(receipt.user, receipt.seq, poll_ms)
        return self._waiting(
            receipt.user,
            board,
            receipt,
            seq=receipt.seq,
            line=receipt.line,
            rank=rank,
            confirmed_at=max(receipt.at, self._presence.confirmed_at(receipt.user, receipt.seq)),
            away_ahead=line.away,
            was_away=False,
            poll_ms=poll_ms,
            opens_ms=opens_ms,
            fast=line.fast,
            slow=line.slow,
        )

    async def _reply(self, user: str, answer: answers.Found, receipt: Receipt | None) -> PlaceReply:
        match answer:
            case answers.Limited(retry_ms):
                raise e.TooManyRequests(retry_after_s=retry_ms / 1000)
            case answers.Waiting():
                return self._near(user, answer, await self._board(answer.seq, receipt), receipt)
            case answers.Offered(seq, tid, left_ms):
                return self._promoted(user, await self._board(seq, receipt), seq, tid, left_ms)
            case answers.Inside():
                return PlaceReply("ENTERED", world=self.world, next_poll_ms=30_000)
            case answers.Held(left_ms):
                return PlaceReply(
                    "ENTERED",
                    world=self.world,
                    next_poll_ms=2000,
                    expires_in_ms=left_ms,
                    message="your place is held: enter again to come back in",
                )
            case answers.NoPlace():
                return PlaceReply("NONE", world=self.world, next_poll_ms=30_000)
            case _:
                assert_never(answer)

    def _promoted(self, user: str, board: WorldBoard, seq: int, tid: str, left_ms: int) -> PlaceReply:
        server_url = board.server_url()
        return PlaceReply(
            "PROMOTED",
            world=self.world,
            next_poll_ms=2000,
            ticket_id=self._keyring.passes.sign_ticket(Ticket(self.world, user, tid, seq)),
            receipt=self._signed(user, board, seq, NO_LINE, 0, time.time()),
            expires_in_ms=left_ms,
            server_url=server_url,
            message=board.message or ("" if server_url else NOWHERE),
        )

    def _near(
        self, user: str, found: answers.Waiting, board: WorldBoard, receipt: Receipt | None
    ) -> PlaceReply:
        return self._waiting(
            user,
            board,
            receipt,
            seq=found.seq,
            line=found.line,
            rank=found.rank,
            confirmed_at=time.time(),
            away_ahead=found.away_ahead,
            was_away=bool(found.was_away),
            poll_ms=found.poll_ms,
            opens_ms=found.opens_ms,
            fast=found.fast,
            slow=found.slow,
        )

    def _waiting(
        self,
        user: str,
        board: WorldBoard,
        receipt: Receipt | None,
        *,
        seq: int,
        line: str,
        rank: int,
        confirmed_at: float,
        away_ahead: int,
        was_away: bool,
        poll_ms: int,
        opens_ms: int,
        fast: int,
        slow: int,
    ) -> PlaceReply:
        """The reply to somebody in the line. No rank is larger than the one that their receipt shows."""
        if receipt is not None and receipt.names(board.born, seq) and not opens_ms:
            rank = min(rank, receipt.shown or rank)
        moves = board.mode != "hold" and not opens_ms
        eta = rules.eta_seconds(rank, fast, slow) if moves else None
        return PlaceReply(
            "WAITING",
            rank=rank,
            world=self.world,
            ahead=rank - 1,
            away_ahead=away_ahead,
            next_poll_ms=rules.jittered_ms(user, poll_ms),
            opens_in_ms=opens_ms,
            was_away=was_away,
            eta_seconds=eta[0] if eta else None,
            eta_high_seconds=eta[1] if eta else None,
            receipt=self._signed(user, board, seq, line, 0 if opens_ms else rank, confirmed_at),
            message=board.message,
        )

    async def _board(self, seq: int, receipt: Receipt | None) -> WorldBoard:
        """The board of a world in which somebody has this place: one from before its birth is too old."""
        board = self._room.board.fresh() or await self._room.board.get()
        was_wiped = receipt is not None and receipt.born == board.born and receipt.seq > seq == receipt.moved
        if board.born and not was_wiped:
            return board
        self._room.board.forget()
        return await self._room.board.get()

    def _signed(
        self, user: str, board: WorldBoard, seq: int, line: str, shown: int, confirmed_at: float
    ) -> str:
        return self._keyring.passes.sign_receipt(
            Receipt(self.world, user, board.born, seq, line, shown, confirmed_at)
        )
