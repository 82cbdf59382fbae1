"""One account that trades one symbol without pause, by wire, and writes down everything."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from roost.core.errors import NotSent, OutcomeUnknown
from roost.drills.trader_book import Sent, TraderBook
from roost.lanes.commands import SERVICE, Cancel, Method, New, Side, decode_outcome, encode
from roost.wire.answer import Answer
from roost.wire.client import Peer
from roost.wire.codes import Code

BUDGET_MS = 3000
RETRY_S = 0.2
KEPT = 256
"""Answers that the shard is asked to keep, so that the last commands can be asked for again."""
PRICE, SPREAD = 10_000, 5

FINAL = frozenset({Code.BAD_REQUEST, Code.UNKNOWN_METHOD, Code.UNAUTHENTICATED, Code.TOO_LARGE})
FINAL |= {Code.REFUSED, Code.HALTED, Code.FAILED}
"""Refusals that sending again would not change."""


class Trader:
    """`peers` lead to the order servers; a command goes to the first, after a failure to the next."""

    def __init__(self, book: TraderBook, peers: Sequence[Peer], side: Side) -> None:
        self.book = book
        self._peers = peers
        self._at = 0
        self._side = side
        self._number = 0
        self._price = 0

    async def run(self, until: float, burst_s: float, give_up: float) -> None:
        """Bursts until then, by the monotonic clock; after `give_up` what is open stays open."""
        resting = 0
        while time.monotonic() < until:
            began = time.monotonic()
            burst = [self._new(), self._new()]
            if resting:
                burst.append(self._cancel(resting))
            await self._settle(burst, give_up)
            last = burst[0].outcome
            resting = last.order_id if last is not None and burst[0].is_accepted else 0
            await asyncio.sleep(max(0.0, burst_s - (time.monotonic() - began)))

    async def ask_again(self) -> None:
        """Send the last accepted commands once more: the answers must be those of the first time."""
        for one in [one for one in self.book.commands if one.is_accepted][-KEPT // 4 :]:
            for _ in range(50):
                answer = await self._send(one)
                if isinstance(answer, Answer) and answer.code is Code.OK:
                    break
                await self._wait(answer)
            else:
                self.book.again.append(f"{self.book.account}: command {one.number} is not answered again")
                return
            self.book.asked_again += 1
            if decode_outcome(answer.payload) != one.outcome:
                self.book.again.append(f"{self.book.account}: another answer to command {one.number}")

    def _new(self) -> Sent:
        self._number += 1
        self._price = (self._price + 1) % SPREAD
        book = self.book
        acked = max(0, self._number - KEPT)
        order = New(book.account, self._number, acked, book.symbol, self._side, PRICE + self._price, 1)
        return self._noted(Sent(self._number, int(Method.NEW), book.symbol, encode(order)))

    def _cancel(self, order_id: int) -> Sent:
        self._number += 1
        symbol = self.book.symbol if self._number % 2 else ""  # half of them by nothing but the id
        acked = max(0, self._number - KEPT)
        cancel = Cancel(self.book.account, self._number, acked, order_id, symbol)
        return self._noted(
            Sent(self._number, int(Method.CANCEL), self.book.symbol, encode(cancel), cancels=order_id)
        )

    def _noted(self, one: Sent) -> Sent:
        self.book.commands.append(one)
        return one

    async def _settle(self, burst: Sequence[Sent], give_up: float) -> None:
        """All at once; what got no outcome goes again, one after the other."""
        began = time.monotonic()
        for one, answer in zip(burst, await asyncio.gather(*map(self._first, burst)), strict=True):
            self._take(one, answer)
        for one in burst:
            while one.is_open and time.monotonic() < give_up:
                one.tries += 1
                answer = await self._send(one)
                self._take(one, answer)
                if one.is_open:
                    await self._wait(answer)
        self.book.slowest_s = max(self.book.slowest_s, time.monotonic() - began)

    async def _first(self, one: Sent) -> Answer | Exception:
        one.tries = 1
        return await self._send(one)

    async def _send(self, one: Sent) -> Answer | Exception:
        peer = self._peers[self._at % len(self._peers)]
        try:
            return await peer.call(SERVICE, one.method, one.payload, budget_ms=BUDGET_MS)
        except (NotSent, OutcomeUnknown) as error:
            return error

    def _take(self, one: Sent, answer: Answer | Exception) -> None:
        if not isinstance(answer, Answer):
            self.book.delays[type(answer).__name__] += 1
        elif answer.code is Code.OK:
            one.outcome = decode_outcome(answer.payload)
        elif answer.code in FINAL:
            one.refused = answer.code.name
        else:
            self.book.delays[answer.code.name] += 1

    async def _wait(self, answer: Answer | Exception) -> None:
        if not isinstance(answer, Answer) or answer.code is Code.NOT_OWNER:
            self._at += 1
        wait_ms = answer.retry_after_ms if isinstance(answer, Answer) else 0
        await asyncio.sleep(max(RETRY_S, wait_ms / 1000))
