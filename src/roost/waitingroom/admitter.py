"""The loop that lets people in: one tick a second, by the leader of the world.

A tick that is lost, doubled or run by two leaders cannot over-admit: the script computes the budget where it
spends it. The lease only keeps managers from doing the same work, and its grant fences a sleeper. Before a
tick, and whenever discovery has news, the leader writes into the ledger which servers take people (`Fleet`).
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid

from roost.core.lease import MAX_STEP_MS, Tenure
from roost.core.loops import END, Loops
from roost.core.tracing import Tracer, ticket_span
from roost.waitingroom.fleet import Fleet
from roost.waitingroom.scripts import Deposed, NewsLost, Ticked
from roost.waitingroom.service import WaitingRoom

log = logging.getLogger("roost.waitingroom.admitter")

EXPIRE_LIMIT = 256
SCAN_LIMIT = 1000
"""People scanned in one line in one tick; where all of them are away, the next tick follows at once."""
MAX_TICKS_IN_A_ROW = 200
NEWS_PAUSE_S = 0.02
"""Changes of discovery that come this soon after each other are one write."""


class Admitter:
    """Ticks one world."""

    def __init__(
        self, room: WaitingRoom, fleet: Fleet, loops: Loops | None = None, tracer: Tracer | None = None
    ) -> None:
        self._room = room
        self._fleet = fleet
        self._loops = loops or Loops()
        self._tracer = tracer
        self.ticks = 0
        self.tenures = 0
        self.leading = False

    async def run(self, tenure: Tenure) -> None:
        """The leader's work, until another leads. A round that fails is tried again after a backoff."""

        async def turn() -> object:
            began = time.monotonic()
            goes_on = await self._round(tenure) and await self._tell_news(tenure, began)
            return None if goes_on else END

        self.tenures += 1
        self.leading = True
        self._fleet.begin()
        following = asyncio.create_task(self._fleet.follow())
        try:
            await self._loops.keep_running(f"admit {self._room.world}", turn)
        finally:
            self.leading = False
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    async def _tell_news(self, tenure: Tenure, began: float) -> bool:
        """What is left of the tick after a round: write what discovery says as soon as it says it."""
        until = began + self._room.policy.tick_ms / 1000
        while (left := until - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(left):
                    await self._fleet.changed.wait()
            except TimeoutError:
                break
            await asyncio.sleep(NEWS_PAUSE_S)
            if not await self._fleet.write(tenure):
                return False
        return True

    async def _round(self, tenure: Tenure) -> bool:
        """A tick, and more at once while people who are away hide those who are there. False: deposed."""
        left = self._room.policy.batch
        for _ in range(MAX_TICKS_IN_A_ROW):
            if not await self._fleet.write(tenure):
                return False
            if not self._fleet.news:
                return True  # which servers there are is not known yet
            ticked = await self.tick(tenure, left)
            if isinstance(ticked, Deposed):
                log.warning("another leads, or nobody", extra={"world": self._room.world})
                return False
            if isinstance(ticked, NewsLost):
                self._fleet.forget_written()
                break  # all of it is written at once, and the next tick comes in its time
            left -= ticked.issued
            if not ticked.more or left <= 0:
                break
        return True

    def _log_tickets(self, tickets: list[str]) -> None:
        """One line for each, with as much of its id as finds it and cannot be used."""
        for rank, (user, tid) in enumerate(zip(tickets[::2], tickets[1::2], strict=True), start=1):
            log.info(
                "ticket",
                extra={"world": self._room.world, "userId": user, "ticketId": tid[:8], "rank": rank},
            )

    def _tell_spans(self, traces: list[str], began_ns: int) -> None:
        if self._tracer is None:
            return
        for tid, entry in zip(traces[::2], traces[1::2], strict=True):
            span = self._tracer.begin(
                "admit", entry, span_id=ticket_span(tid), began_ns=began_ns, world=self._room.world
            )
            span.end(outcome="in turn")

    async def tick(self, tenure: Tenure, batch: int) -> Ticked | NewsLost | Deposed:
        policy, began_ns = self._room.policy, time.time_ns()
        answer = await self._room.scripts.admit(
            holder=tenure.holder,
            epoch=str(tenure.epoch),
            news=self._fleet.news,
            max_step_ms=MAX_STEP_MS,
            ticket_ms=policy.ticket_ms,
            late_ms=policy.late_ms,
            gone_ms=policy.gone_ms,
            forfeit=policy.forfeit,
            expire_limit=EXPIRE_LIMIT,
            scan_limit=SCAN_LIMIT,
            lines=policy.weights,
            tids=[str(uuid.uuid4()) for _ in range(batch)],
        )
        self.ticks += 1
        if isinstance(answer, Ticked) and (answer.issued or answer.expired):
            log.info(
                "tickets",
                extra={
                    "world": self._room.world,
                    "issued": answer.issued,
                    "expired": answer.expired,
                    "waiting": answer.waiting,
                },
            )
            self._log_tickets(answer.tickets)
            self._tell_spans(answer.traces, began_ns)
        return answer
