"""One job while this process leads: step by step, from what the store holds.

A step hears what came of the moves under way, decides the next ones, saves, and only then sends them. So
what a controller has sent is in the store before it is sent: the next controller looks in the map what
became of it. The save is fenced: a controller that was deposed sends nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time

from roost.api.drain import JobState
from roost.binding.drain.ending import Sources, Witnesses
from roost.binding.drain.homeward import Homeward
from roost.binding.drain.movers import EntityServers
from roost.binding.drain.moving import Moving
from roost.binding.drain.outward import GONE, Outward
from roost.binding.drain.records import SAVE_LIMIT, JobRecords, Kept, Saved, Turn
from roost.binding.drain.view import Shift, View
from roost.core.errors import RoostError
from roost.core.lease import Tenure
from roost.core.loops import END

log = logging.getLogger("roost.drain")

TICK_S = 0.05
IDLE_S = 0.2
"""Between two saves of a job of which nothing is new: they also bring what operators ordered."""
BLOCKED_AFTER = 20
"""Moves in a row that came to nothing."""
BLOCKED = "blocked: "
CANARY = "canary"
PROBE_S = 2.0
CANARY_ABORTS = 5
CANARY_RATIO = 0.1
LEAVE_S = 2.0


class Runner:
    """Carries out one job. `step` until it answers `END`."""

    def __init__(
        self, kept: Kept, tenure: Tenure, records: JobRecords, view: View, servers: EntityServers
    ) -> None:
        self.order, self.progress = kept.order, kept.progress
        self.order.lives |= self.progress.lives
        self.state: JobState = kept.state
        self.why = kept.why
        self._made_us = kept.made_us
        self._tenure = tenure
        self._records = records
        self._view = view
        now = time.monotonic()
        self._outward = Outward(self.order, self.progress, view, servers, now)
        self._homeward = Homeward(self.order, self.progress, view, records)
        self._moving = Moving(self.order, self.progress, view, servers, self._outward, self._homeward)
        self._outward.adopt(self._moving.adopted)
        self._sources = Sources(self.order, self.progress, view, servers)
        self._witnesses = Witnesses(self.order, self.progress, view, records)
        self._heed_canary()
        self._probe_at = now
        self._saved_at = float("-inf")
        self._is_closed = False
        self._is_reopened = False
        self._is_counted_again = False

    async def step(self) -> object:
        now = time.monotonic()
        moving = self._moving
        moving.news.clear()
        moving.hear(now)
        if await self._view.refresh(now):
            self._outward.refreshed()
        await moving.resolve_doubts(now)
        shifts, turn = await self._decide(now)
        if shifts or moving.log or turn != self._stay() or now - self._saved_at >= IDLE_S:
            if not await self._save(shifts, turn, now):
                return END
            if turn.ended and self.state == turn.to:
                return END
        await moving.note_moves()
        await self._wait()
        return None

    async def leave(self) -> None:
        """This process leads no more, or ends: what is under way is heard, and saved if that is allowed."""
        await self._moving.finish(LEAVE_S)
        try:
            await self._save([], self._stay(), time.monotonic())
            await self._moving.note_moves()
        except RoostError as error:
            log.info("drain: the end of a tenure was not saved", extra={"reason": error.message})

    # -- deciding

    def _stay(self) -> Turn:
        return Turn(self.state, self.state, self.why)

    async def _decide(self, now: float) -> tuple[list[Shift], Turn]:
        match self.state:
            case "running":
                return await self._run(now)
            case "paused":
                return await self._probe(now)
            case "rolling-back":
                return await self._roll_back(now)
            case "cancelled":
                return [], await self._wind_down(now)
            case "reconciling":
                return [], await self._reconcile(self.progress.outcome, self.progress.outcome_why, now)
            case _:
                return [], Turn(self.state, self.state, self.why, free=True, ended=True)

    async def _run(self, now: float) -> tuple[list[Shift], Turn]:
        if not await self._is_prepared(now):
            return [], self._stay()
        self._witnesses.seen()
        if why := self._canary_verdict():
            return [], self._turn("paused", why)
        if self._moving.failures >= BLOCKED_AFTER and not self._outward.is_over:
            self._probe_at = now + PROBE_S
            return [], self._turn("paused", BLOCKED + self._moving.last_failure)
        shifts = await self._outward.next(now)
        if self._outward.is_over and not self._moving.is_busy and not self._moving.ask_again(now):
            return [], self._finish()
        return shifts, self._stay()

    async def _is_prepared(self, now: float) -> bool:
        """Sources are closed; before the first move the gates count."""
        if not self._is_closed:
            await self._sources.close()
            self._is_closed = True
        if self.progress.started_at:
            return True
        self._witnesses.seen()
        if not await self._witnesses.are_counting(now):
            return False
        self.progress.started_at = time.time()
        return True

    def _canary_verdict(self) -> str:
        """Why the canary ends now; empty: it does not."""
        if not self.order.canary or self.progress.canary_done:
            return ""
        tries, aborts = self._moving.tries, self._moving.aborts
        if aborts >= CANARY_ABORTS and aborts > tries * CANARY_RATIO:
            return f"{CANARY}: {aborts} of {tries} moves came back ({self._moving.last_failure})"
        is_over = self._outward.canary_is_over() and not self._moving.is_busy
        return CANARY if is_over else ""

    def _heed_canary(self) -> None:
        """Done when the store says that the job paused for it: an operator may have been first."""
        if self.state == "paused" and self.why.startswith(CANARY):
            self.progress.canary_done = True

    def _finish(self) -> Turn:
        over = self.progress.over
        gone = sorted(server for server, how in over.items() if how == GONE)
        if gone:
            self.progress.outcome_why = f"{', '.join(gone)} ended: failover has its users"
        self.progress.outcome = "failed" if gone and len(gone) == len(over) else "done"
        return Turn("running", "reconciling", free=True)

    async def _probe(self, now: float) -> tuple[list[Shift], Turn]:
        """A job that has paused by itself because nothing moved tries one user now and then."""
        if not self.why.startswith(BLOCKED):
            self._moving.failures = 0
            return [], self._stay()
        if not self._moving.failures or self._outward.is_over:
            return [], self._turn("running")
        if now < self._probe_at or self._moving.is_busy:
            return [], self._stay()
        self._probe_at = now + PROBE_S
        return await self._outward.next(now, most=1), self._stay()

    async def _roll_back(self, now: float) -> tuple[list[Shift], Turn]:
        if not await self._reopen(now) or not await self._is_counted(now):
            return [], self._stay()
        self._witnesses.seen()
        self._moving.ask_again(now)
        more = self._moving.is_busy or bool(self._moving.log)
        shifts = await self._homeward.next(now, more=more)
        self._moving.log += self._homeward.settled
        self._homeward.settled = []
        if not self._homeward.is_over or self._moving.is_busy:
            return shifts, self._stay()
        back, stayed = self.progress.counts["back"], self._homeward.stayed
        self.progress.outcome = "cancelled"
        self.progress.outcome_why = f"rolled back: {back} users are back" + (
            f", {len(stayed)} stayed" if stayed else ""
        )
        return [], Turn("rolling-back", "reconciling", free=True)

    async def _is_counted(self, now: float) -> bool:
        """Whether the gates count the way back, if anybody was moved at all."""
        if not self._is_counted_again and self.progress.started_at:
            self._is_counted_again = await self._witnesses.are_counting_again(now)
            return self._is_counted_again
        return True

    async def _wind_down(self, now: float) -> Turn:
        """No new moves; those under way end, while the gates count, then the sources are open as before."""
        if self._moving.is_busy or not self._moving.is_settled(now) or not await self._reopen(now):
            return self._stay()
        self.progress.outcome, self.progress.outcome_why = "cancelled", self.why
        return Turn("cancelled", "reconciling", free=True)

    async def _reopen(self, now: float) -> bool:
        self._is_reopened = self._is_reopened or await self._sources.reopen(now)
        return self._is_reopened

    async def _reconcile(self, outcome: JobState, why: str, now: float) -> Turn:
        job = Kept(self.order, self.progress, self.state, why, self._made_us, 0).job
        self.progress.certificate = await self._witnesses.certificate(job, now)
        if self.progress.certificate is None:
            return self._stay()._replace(free=True)
        return Turn(self.state, outcome, why, free=True, ended=True)

    def _turn(self, to: JobState, why: str = "") -> Turn:
        log.info("drain: turned", extra={"job": self.order.id, "state": to, "reason": why})
        return Turn(self.state, to, why)

    # -- saving and sending

    async def _save(self, shifts: list[Shift], turn: Turn, now: float) -> bool:
        """False: another leads, or the job is forgotten. Moves are sent if the state still allows it."""
        moving = self._moving
        moving.expect(shifts)
        part, rest = moving.log[:SAVE_LIMIT], moving.log[SAVE_LIMIT:]
        try:
            saved = await self._records.save(self._tenure, self.order.id, self.progress, turn, part)
        except BaseException:
            for shift in shifts:
                moving.take_back(shift, now)
            raise
        if not isinstance(saved, Saved):
            return False
        moving.log, self._saved_at = rest, now
        self._outward.saved()
        if saved.state != self.state:
            self._is_reopened = self._is_counted_again = False
            self._witnesses.wait_anew()
        self.state, self.why = saved.state, saved.why
        self._heed_canary()
        for shift in shifts:
            if saved.state == turn.to:
                moving.send(shift)
            else:
                moving.take_back(shift, now)
        return True

    async def _wait(self) -> None:
        pause_s = TICK_S if self.state in ("running", "rolling-back") else IDLE_S
        try:
            async with asyncio.timeout(pause_s):
                await self._moving.news.wait()
        except TimeoutError:
            return
