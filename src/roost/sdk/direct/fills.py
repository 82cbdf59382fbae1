"""The fills of an account, each once and in order for each shard, over any number of connections and owners.

A server pushes what happens; what was missed it sends after FOLLOW with a cursor. Numbers are dense: a fill
that comes twice is dropped, and one that comes too early makes the trader ask again from where it stands.
Where some are not to be had any more, a gap is handed out, and the trader asks for those after it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque

from roost.core.errors import RoostError
from roost.core.loops import Loops
from roost.lanes.commands import SERVICE, Method, decode_event
from roost.lanes.fill_cursor import FillCursor, decode_followed
from roost.sdk.direct.shard_owners import Owners
from roost.sdk.direct.trade_words import fill_of
from roost.sdk.trade import Fill, FillGap
from roost.wire.codes import Code
from roost.wire.frame import Frame

log = logging.getLogger("roost.sdk.trading")

LOOK_S = 1.0
"""Between two looks at who owns what: a new owner's fills are late by so much at most."""
FOLLOW_MS = 2000
MAX_UNREAD = 10_000
"""Fills that nobody has taken; those that come then are asked for again later."""


class Fills:
    """`cursor`: by shard the number of the last fill that was handed out; who keeps it can go on there."""

    def __init__(self, account: str, owners: Owners, loops: Loops, cursor: dict[int, int]) -> None:
        self.cursor = dict(cursor)
        self._account = account
        self._owners = owners
        self._loops = loops
        self._heard = FillCursor(cursor)
        self._unread: deque[Fill | FillGap] = deque()
        self._followed: dict[str, frozenset[int]] = {}
        self._arrived = asyncio.Event()
        self._look = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._is_closed = False

    async def next(self) -> Fill | FillGap | None:
        """The next one; None: the trader was closed."""
        if self._running is None and not self._is_closed:
            following = self._loops.keep_running("sdk-fills", self._step)
            self._running = asyncio.get_running_loop().create_task(following, name="roost fills")
        while not self._unread:
            if self._is_closed:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        told = self._unread.popleft()
        self.cursor[told.shard] = told.number if isinstance(told, Fill) else told.until
        return told

    async def close(self) -> None:
        self._is_closed = True
        self._arrived.set()
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    # -- what the connections say

    def pushed(self, frame: Frame) -> None:
        if frame.service != SERVICE or frame.method != Method.FOLLOW:
            return
        event = decode_event(frame.payload)
        if event.account != self._account:
            return
        is_next = self._heard.takes(event, has_room=len(self._unread) < MAX_UNREAD)
        if is_next is None:
            self._ask_again(event.shard)
        elif is_next:
            self._hand_out(fill_of(event))

    def lost(self, address: str) -> None:
        """The connection is gone, and nobody follows there any more."""
        if self._followed.pop(address, None) is not None:
            self._look.set()

    # -- who follows where

    async def _step(self) -> None:
        await self._owners.look_up()
        owners = self._owners.shards_by_address()
        for address in self._followed.keys() - owners:  # one that comes back may have missed something
            del self._followed[address]
        for address, shards in owners.items():
            if self._followed.get(address) != shards and len(self._unread) < MAX_UNREAD:
                await self._follow(address)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_S):
                await self._look.wait()
        self._look.clear()

    async def _follow(self, address: str) -> None:
        """From now on, and what was missed: that comes as pushes before the answer."""
        payload, missed = self._heard.follow(self._account), self._heard.missed
        try:
            peer = self._owners.peer_of(address)
            answer = await peer.call(SERVICE, Method.FOLLOW, payload, budget_ms=FOLLOW_MS)
        except RoostError as error:
            log.info("an order server cannot be followed", extra={"reason": error.message})
            return
        if answer.code is not Code.OK:
            log.warning("an order server lets nobody follow", extra={"reason": answer.message})
            return
        shards, gaps = decode_followed(answer.payload)
        for shard, after in gaps.items():
            self._hand_out(FillGap(shard, self._heard.skip(shard, after), after))
        if gaps:
            self._look.set()  # for what is kept after them
        elif self._heard.missed == missed:
            self._followed[address] = frozenset(shards)

    def _ask_again(self, shard: int) -> None:
        address = self._owners.by_shard.get(shard, "")
        self._followed.pop(address, None)
        self._look.set()

    def _hand_out(self, told: Fill | FillGap) -> None:
        self._unread.append(told)
        self._arrived.set()
