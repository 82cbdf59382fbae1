"""The moves of one job that are under way, and what became of each user.

Nobody is counted twice: a user whose move was sent stays in `pending`, which is saved before it is sent,
until the server has told what became of them, or the map says it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import NamedTuple, Protocol

from roost.binding.drain.model import MoveNote, Order, Progress
from roost.binding.drain.movers import EntityServers, Moved, MoveTerms
from roost.binding.drain.view import Shift, View
from roost.core.errors import RoostError
from roost.core.ids import new_ulid
from roost.core.owner import Owner

log = logging.getLogger("roost.drain")

SETTLE_S = 10.0
"""How long a mark in the map is waited for before it is taken for what it says."""


class Feed(Protocol):
    """Who decides whom to move next."""

    def heard(self, shift: Shift, moved: Moved, now: float) -> None:
        """What became of one user."""

    def unsent(self, shift: Shift, user: str, now: float, *, tried: bool) -> None:
        """They are where they were, and were not moved; `tried`: though their server was asked."""


class _Doubt(NamedTuple):
    """A user of whom it is not known whether they moved."""

    shift: Shift
    since: float
    is_last: bool = False
    """Nobody is moved any more: where they are now they stay."""


class Moving:
    def __init__(
        self, order: Order, progress: Progress, view: View, servers: EntityServers, there: Feed, back: Feed
    ) -> None:
        """`there` hears of moves away from the sources, `back` of those to them."""
        self._order = order
        self._progress = progress
        self._view = view
        self._servers = servers
        self._there = there
        self._back = back
        self._tasks: set[asyncio.Task[None]] = set()
        self._answers: list[tuple[Shift, list[Moved] | RoostError]] = []
        self._doubts: dict[str, _Doubt] = {}
        self._counted: set[str] = set()
        self._notes: list[tuple[str, MoveNote]] = []
        self.news = asyncio.Event()
        self.log: list[str] = []
        """`+user<tab>source` of those who moved, to be saved."""
        self.failures = 0
        """Moves in a row that came to nothing."""
        self.last_failure = ""
        self.tries = self.aborts = 0
        self._unheard_at = time.monotonic()
        """When it was last found of somebody that they have not moved yet."""
        self._adopt()

    def _adopt(self) -> None:
        """What a controller before this one has sent."""
        now = time.monotonic()
        for user, (source, at, at_life, to, to_life) in self._progress.pending.items():
            self._doubts[user] = _Doubt(Shift(source, (user,), Owner(at, at_life), Owner(to, to_life)), now)

    @property
    def is_busy(self) -> bool:
        """Whether it is not known of somebody what became of them."""
        return bool(self._tasks or self._answers or self._doubts)

    @property
    def adopted(self) -> list[Shift]:
        return [doubt.shift for doubt in self._doubts.values()]

    def expect(self, shifts: list[Shift]) -> None:
        """These are about to be sent; saved before that."""
        for shift in shifts:
            for user in shift.users:
                self._progress.pending[user] = [shift.source, *shift.at, *shift.to]

    def send(self, shift: Shift) -> None:
        task = asyncio.create_task(self._move(shift), name="roost drain moves")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def take_back(self, shift: Shift, now: float) -> None:
        """It is not sent after all."""
        for user in shift.users:
            self._progress.pending.pop(user, None)
            self._feed(shift).unsent(shift, user, now, tried=False)

    async def finish(self, within_s: float) -> None:
        """Wait for what is under way, then hear no more."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=within_s)
        for task in self._tasks:
            task.cancel()
        self.hear(time.monotonic())

    async def _move(self, shift: Shift) -> None:
        settings, order = self._view.bindings.settings, self._order
        # a gate that waits for the user ends a mark whose time is over
        mark_ms = max(settings.move_mark_ms, order.max_block_ms)
        terms = MoveTerms(order.max_block_ms, settings.move_quiesce_ms, mark_ms, shift.force)
        at, to = self._view.alive(shift.at), self._view.alive(shift.to)
        answer: list[Moved] | RoostError
        try:
            if at is None or to is None:
                raise RoostError(f"{(shift.to if at else shift.at).server_id} has ended")
            answer = await self._servers.move(at, order.type, new_ulid(), shift.users, to, terms)
        except RoostError as error:
            answer = error
        self._answers.append((shift, answer))
        self.news.set()

    def hear(self, now: float) -> None:
        """Take up what the servers have answered."""
        answers, self._answers = self._answers, []
        for shift, answer in answers:
            told: set[str] = set()
            if isinstance(answer, RoostError):
                self._failed(answer.message)
            else:
                told = {moved.user for moved in answer if moved.outcome != "gone"}
                for moved in answer:
                    if moved.user in told:
                        self._take(shift, moved, now)
            for user in shift.users:
                if user not in told:
                    self._doubts[user] = _Doubt(shift, now)

    async def resolve_doubts(self, now: float) -> None:
        """The map says what became of those of whom no server has told."""
        doubts = list(self._doubts.items())
        records = await asyncio.gather(
            *(self._view.bindings.read(self._order.type, user) for user, _ in doubts)
        )
        for (user, doubt), record in zip(doubts, records, strict=True):
            shift = doubt.shift
            if record is not None and record.state == "M" and now < doubt.since + SETTLE_S:
                continue
            del self._doubts[user]
            owner = record.owner if record is not None else None
            if owner == shift.to or owner in self._unheard_of(shift, user):
                self._take(shift, Moved(user, "moved", "as the map says"), now)
            elif owner == shift.at:
                self._did_not_move(user, doubt, now)
            else:
                self._take(shift, Moved(user, "gone", "left by themselves"), now)

    def ask_again(self, now: float) -> bool:
        """Nobody is moved any more: what became of those whose move nobody told of. False: there are none."""
        for user, (source, *owners) in self._progress.unheard.items():
            at, *to = _pairs(owners)
            if user not in self._doubts:
                self._doubts[user] = _Doubt(Shift(source, (user,), at, to[-1]), now, is_last=True)
        return bool(self._progress.unheard)

    def is_settled(self, now: float) -> bool:
        """Whether nobody may still move of whom nobody told; the map is asked when that time is over."""
        if self._progress.unheard and now >= self._unheard_at + SETTLE_S:
            self.ask_again(now)
        return not self._progress.unheard

    def _did_not_move(self, user: str, doubt: _Doubt, now: float) -> None:
        """Not yet: their server may still be about to."""
        shift, unheard = doubt.shift, self._progress.unheard
        self._progress.pending.pop(user, None)
        if doubt.is_last:
            unheard.pop(user, None)
        elif shift.to.server_id != shift.source and shift.to not in self._unheard_of(shift, user):
            unheard[user] = [*unheard.get(user, (shift.source, *shift.at)), *shift.to]
            self._unheard_at = now
        self._feed(shift).unsent(shift, user, now, tried=True)

    def _unheard_of(self, shift: Shift, user: str) -> list[Owner]:
        """Where else than said a move away from the source may have led."""
        if shift.to.server_id == shift.source:
            return []
        return _pairs(self._progress.unheard.get(user, [])[1:])[1:]

    def _take(self, shift: Shift, moved: Moved, now: float) -> None:
        """One user's outcome is known."""
        self._progress.pending.pop(moved.user, None)
        if moved.outcome == "moved":
            self.tries += 1
            self.failures = 0
            if "total" in moved.phases:
                self._progress.pauses.observe(moved.phases["total"])
        elif moved.outcome == "returned":
            self.tries += 1
            self.aborts += 1
            self._progress.counts["returned"] += 1
            self._failed(moved.why)
        if shift.to.server_id != shift.source and moved.outcome in ("moved", "released", "gone"):
            self._progress.unheard.pop(moved.user, None)  # also of one who had come back and left again
            if moved.user not in self._counted:
                self._count(shift, moved)
        self._feed(shift).heard(shift, moved, now)
        self._note(shift, moved)

    def _count(self, shift: Shift, moved: Moved) -> None:
        self._counted.add(moved.user)
        counts = self._progress.counts
        counts[moved.outcome] += 1
        if moved.outcome == "moved":
            counts["forced"] += shift.force
            self.log.append(f"+{moved.user}\t{shift.source}")

    def _failed(self, why: str) -> None:
        self.failures += 1
        self.last_failure = why

    def _feed(self, shift: Shift) -> Feed:
        return self._back if shift.to.server_id == shift.source else self._there

    def _note(self, shift: Shift, moved: Moved) -> None:
        note = MoveNote(
            at=time.time(),
            job=self._order.id,
            source=shift.at.server_id,
            target=shift.to.server_id,
            outcome=moved.outcome,
            why=moved.why,
            phases=moved.phases,
            epoch=moved.epoch,
        )
        self._notes.append((moved.user, note))

    async def note_moves(self) -> None:
        """For `roost bindings explain`; what cannot be noted is not missed by any rule."""
        notes, self._notes = self._notes, []
        if not notes:
            return
        try:
            await self._view.bindings.note_moves(self._order.type, notes)
        except RoostError as error:
            log.info("drain: moves not noted", extra={"count": len(notes), "reason": error.message})


def _pairs(flat: list[str]) -> list[Owner]:
    return [Owner(*pair) for pair in zip(flat[::2], flat[1::2], strict=True)]
