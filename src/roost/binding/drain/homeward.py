"""Whom a rollback moves back next: those whom the job has moved, from wherever they are now, at full rate."""

from __future__ import annotations

import asyncio
from collections import Counter

from roost.binding.drain.model import MAX_PINNED, Order, Progress
from roost.binding.drain.movers import Moved
from roost.binding.drain.records import JobRecords
from roost.binding.drain.view import Shift, View
from roost.core.owner import Owner

AT_ONCE = 128
PAGE = 200
TRIES = 5
FORCED_TRIES = 2
"""After so many in vain `can_move` does not count any more."""
AGAIN_S = 0.5


class Homeward:
    def __init__(self, order: Order, progress: Progress, view: View, records: JobRecords) -> None:
        self._order = order
        self._progress = progress
        self._view = view
        self._records = records
        self._under_way: set[str] = set()
        self._tries = Counter[str]()
        self._not_before: dict[str, float] = {}
        self._settled: set[str] = set()
        """Also those that the store still lists: what was settled is saved later."""
        self._cursor = ""
        self._left = False
        """Whether somebody of this pass is to be tried again."""
        self.settled: list[str] = []
        """`-user<tab>source`: their way back is over, to be taken out of the job's list."""
        self.stayed: dict[str, str] = {}
        """User → why they were not brought back."""
        self.is_over = False

    async def next(self, now: float, *, more: bool) -> list[Shift]:
        """`more`: whether the store's list may still grow, by those who are on their way or not saved yet."""
        if self.is_over or len(self._under_way) >= AT_ONCE:
            return []
        self._progress.pinned = dict(list(self.stayed.items())[:MAX_PINNED])
        page = await self._records.moved(self._order.id, self._cursor, PAGE)
        if not page:
            self.is_over = not (more or self._left or self._under_way)
            self._cursor, self._left = "", False
            return []
        due = [one for one in page if self._is_due(one[0], now)]
        records = await asyncio.gather(*(self._view.bindings.read(self._order.type, user) for user, _ in due))
        self._cursor = page[-1][0]  # not before: a page of which the map did not tell is read again
        found = (
            self._shift(user, source, record.owner if record else None)
            for (user, source), record in zip(due, records, strict=True)
        )
        shifts = [one for one in found if one is not None]
        for shift in shifts:
            self._under_way.update(shift.users)
        return shifts

    def heard(self, shift: Shift, moved: Moved, now: float) -> None:
        user = moved.user
        self._under_way.discard(user)
        if moved.outcome in ("moved", "released"):
            self._settle(user, shift.source, is_back=True)
        elif moved.outcome == "gone":
            self._again(user, now)
        else:
            self._stays(user, moved.why, now)

    def unsent(self, shift: Shift, user: str, now: float, *, tried: bool) -> None:
        self._under_way.discard(user)
        if tried:
            self._stays(user, "its server cannot be reached", now)
        else:
            self._again(user, now)

    # -- inside

    def _is_due(self, user: str, now: float) -> bool:
        if user in self._under_way or self._not_before.get(user, 0.0) > now:
            self._left = True
            return False
        return self._tries[user] < TRIES and user not in self._settled

    def _shift(self, user: str, source: str, owner: Owner | None) -> Shift | None:
        home = self._view.alive(Owner(source, self._order.lives[source]))
        if home is None:  # it has ended: there is nothing to go back to
            self._tries[user] = TRIES
            self.stayed[user] = f"{source} has ended"
        elif owner is None:
            self._settle(user, source, is_back=False)
        elif owner == home.owner:
            self._settle(user, source, is_back=True)
        elif self._view.alive(owner) is None:
            self._left = True
        else:
            return Shift(source, (user,), owner, home.owner, self._tries[user] >= FORCED_TRIES)
        return None

    def _settle(self, user: str, source: str, *, is_back: bool) -> None:
        self._settled.add(user)
        self.settled.append(f"-{user}\t{source}")
        self._progress.counts["back"] += is_back
        self.stayed.pop(user, None)

    def _again(self, user: str, now: float) -> None:
        self._left = True
        self._not_before[user] = now + AGAIN_S

    def _stays(self, user: str, why: str, now: float) -> None:
        self._tries[user] += 1
        self._again(user, now)
        self.stayed[user] = why
