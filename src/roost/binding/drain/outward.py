"""Whom a drain or rebalance moves next: each source at its own pace, to the emptiest target."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter, deque

from roost.binding.drain.line import Line, is_canary
from roost.binding.drain.model import MAX_PINNED, Order, Progress
from roost.binding.drain.movers import EntityServers, Moved
from roost.binding.drain.pace import Bucket, Pace, Window, p95
from roost.binding.drain.plan import targets_for
from roost.binding.drain.standing import Standing
from roost.binding.drain.view import Shift, View
from roost.core.errors import RoostError
from roost.core.owner import Owner

log = logging.getLogger("roost.drain")

AT_SOURCE = 64
AT_TARGET = 128
"""Moves under way at once."""
LOOK_S = 1.0
"""Between two surveys of a server on which nobody can move just now."""
SOON_S = 0.25
LEFT_OUT_S = 5.0
GONE_S = 10.0
"""How long a source whose life is over is waited for: one that was frozen registers again by itself."""
STRIKES = 3
"""A target to which so many moves in a row failed is left out for a while."""
RETIRE_QUIET_MS = 0
"""As its own settings say."""
BINDERS_PAGE = 1000
EMPTY, GONE, GIVEN = "empty", "gone", "given"


class Source:
    """One server that is being emptied."""

    def __init__(self, owner: Owner, pace: Pace, now: float) -> None:
        self.owner = owner
        self.line = Line()
        self.pace = pace
        self.window = Window()
        self.bucket = Bucket(now)
        self.under_way: set[str] = set()
        self.look_at = now
        self.is_surveyed = False
        self.is_stuck = False
        """Whether the last step found a place for nobody of the line."""
        self._gone_at: float | None = None

    def is_gone(self, here: Standing | None, now: float) -> bool:
        """Whether its life has been over for so long that it will not register again."""
        if here is not None:
            self._gone_at = None
        elif self._gone_at is None:
            self._gone_at = now
        return self._gone_at is not None and now - self._gone_at >= GONE_S

    def judge(self, now: float) -> None:
        if not self.pace.is_due(now):
            return
        window, self.window = self.window, Window()
        self.pace.judge(p95(window.freeze_ms), p95(window.database_ms), window.abort_ratio, now)


class Targets:
    """Where users may go, and how many are on their way."""

    def __init__(self, order: Order, view: View) -> None:
        self._order = order
        self._view = view
        self._to = Counter[str]()
        """Moves under way by target."""
        self._added = Counter[str]()
        """Users who came to a target since the view was read."""
        self._strikes = Counter[str]()
        self._left_out: dict[str, float] = {}

    def refreshed(self) -> None:
        self._added.clear()

    def adopt(self, target: str, users: int) -> None:
        self._to[target] += users

    def sent(self, target: str, users: int) -> None:
        self._to[target] += users
        self._added[target] += users

    def released(self, target: str) -> None:
        self._to[target] -= 1

    def worked(self, target: str) -> None:
        self._strikes[target] = 0

    def failed(self, target: str, now: float) -> None:
        self._strikes[target] += 1
        if self._strikes[target] >= STRIKES:
            self._strikes[target] = 0
            self._left_out[target] = now + LEFT_OUT_S

    def of(self, here: Standing, now: float) -> list[Standing]:
        """Those to which users of this source may go now."""
        order, view = self._order, self._view
        found = targets_for(order.to, order.version, order.sources, view.standings, view.busy)
        return [
            one
            for one in found
            if one.can_read(here.min_reader)
            and self._left_out.get(one.server_id, 0.0) <= now
            and (order.kind == "drain" or one.version == here.version)
        ]

    def choose(self, targets: list[Standing], users: int) -> Standing | None:
        """The emptiest that has room, with those on their way counted."""
        fit = [
            one
            for one in self._counted(targets)
            if (one.room is None or one.room >= users) and self._to[one.server_id] + users <= AT_TARGET
        ]
        return min(fit, key=lambda one: (one.crowding, one.server_id), default=None)

    def most_room(self, targets: list[Standing]) -> float:
        rooms = (one.room for one in self._counted(targets))
        return max((math.inf if room is None else room for room in rooms), default=0)

    def _counted(self, targets: list[Standing]) -> list[Standing]:
        return [one._replace(users=one.users + self._added[one.server_id]) for one in targets]


class Outward:
    def __init__(
        self, order: Order, progress: Progress, view: View, servers: EntityServers, now: float
    ) -> None:
        self._order = order
        self._progress = progress
        self._view = view
        self._servers = servers
        owners = [Owner(one, order.lives[one]) for one in order.sources if one not in progress.over]
        rate = progress.rate_now / len(owners) if progress.started_at and owners else None
        self.sources = {
            one.server_id: Source(one, Pace(order.rate, order.max_block_ms, rate=rate), now) for one in owners
        }
        self._targets = Targets(order, view)
        self._saved_retired = set(progress.retired)
        self.waits_for = ""
        """Why nobody goes who could."""

    @property
    def is_over(self) -> bool:
        return not self.sources

    @property
    def _is_drain(self) -> bool:
        return self._order.kind == "drain"

    @property
    def force(self) -> bool:
        """The deadline of `can_move` is over."""
        return time.time() > self._progress.started_at + self._order.deadline_s

    def adopt(self, shifts: list[Shift]) -> None:
        """These are under way since before our time."""
        for shift in shifts:
            if shift.source in self.sources and shift.to.server_id != shift.source:
                self.sources[shift.source].under_way.update(shift.users)
                self._targets.adopt(shift.to.server_id, len(shift.users))

    def refreshed(self) -> None:
        self._targets.refreshed()

    def saved(self) -> None:
        """The progress is in the store: whoever is to be retired may be told."""
        self._saved_retired = set(self._progress.retired)

    async def next(self, now: float, most: int = AT_SOURCE) -> list[Shift]:
        """The moves that are due. Servers that are empty, or gone, are over with."""
        looked: list[tuple[Source, Standing]] = []
        self.waits_for = ""
        for source in list(self.sources.values()):
            here = self._here(source)
            if source.is_gone(here, now):
                self._end(source, EMPTY if source.owner.server_id in self._saved_retired else GONE)
            if here is None:
                continue
            if self._quota_is_met(source):
                if not source.under_way:
                    self._end(source, GIVEN)
                continue
            await self._look(source, here, now)
            if source.owner.server_id in self.sources:
                looked.append((source, here))
        shifts: list[Shift] = []
        for source, here in looked:  # nothing fails any more: who is under way now is in the answer
            source.judge(now)
            shifts += self._due(source, here, now, most)
        self._tell()
        return shifts

    def heard(self, shift: Shift, moved: Moved, now: float) -> None:
        source = self.sources.get(shift.source)
        target = shift.to.server_id
        if moved.outcome in ("moved", "released"):
            given = self._progress.given
            given[shift.source] = given.get(shift.source, 0) + 1
        self._release(shift, moved.user)
        if moved.outcome == "moved":
            self._targets.worked(target)
        elif moved.outcome == "returned":
            self._targets.failed(target, now)
        if source is None:
            return
        if moved.outcome == "moved" and moved.phases:
            source.window.moved(moved.phases)
        elif moved.outcome == "returned":
            source.window.returned()
        if moved.outcome in ("returned", "later", "pinned"):
            source.line.came_back(moved.user, now, moved.retry_ms)

    def unsent(self, shift: Shift, user: str, now: float, *, tried: bool) -> None:
        """They are where they were: asked again soon, if their server lives."""
        self._release(shift, user)
        if source := self.sources.get(shift.source):
            source.line.unsent(user, now)

    def _release(self, shift: Shift, user: str) -> None:
        source = self.sources.get(shift.source)
        if source is not None and user in source.under_way:
            source.under_way.discard(user)
            self._targets.released(shift.to.server_id)

    def canary_is_over(self) -> bool:
        """Whoever of the canary could be moved has been tried."""
        return all(
            one.is_surveyed and not one.under_way and not one.line.owes(self._wanted)
            for one in self.sources.values()
        )

    # -- inside

    def _here(self, source: Source) -> Standing | None:
        """The source as it is now; under its next life, if it is the same process."""
        here, server = self._view.alive(source.owner), source.owner.server_id
        other = self._view.standings.get(server)
        if here is None and other is not None and other.is_drained_alone:
            log.info("drain: a source is back", extra={"serverId": server, "life": other.owner.life})
            here, source.owner = other, other.owner
            self._order.lives[server] = self._progress.lives[server] = other.owner.life
        return here

    async def _look(self, source: Source, here: Standing, now: float) -> None:
        if now < source.look_at or (source.line.wants(self._wanted) and not source.is_stuck):
            return
        source.look_at = now + LOOK_S
        try:
            surveyed = await self._servers.survey(here, self._order.type)
        except RoostError as error:
            self.waits_for = error.message
            return
        bound = await self._bound(source.owner)
        source.line.fill(surveyed, bound, now, force=self.force, without=source.under_way)
        source.is_surveyed, source.is_stuck = True, False
        if source.line.wants(self._wanted):
            source.look_at = now
        elif not source.line.left:
            source.look_at = now + SOON_S
        self._count(source)
        if not source.line.left and not source.under_way and (here.is_closed or not self._is_drain):
            await self._empty(source, here)

    async def _bound(self, owner: Owner) -> list[str]:
        """Everybody whom the map gives to this life."""
        bindings, found = self._view.bindings, list[str]()
        for partition in range(len(bindings.partitions)):
            page, cursor = [""], ""
            while page:
                page = await bindings.binders(
                    self._order.type, owner, cursor, BINDERS_PAGE, partition=partition
                )
                cursor = page[-1] if page else ""
                found += page
        return found

    async def _empty(self, source: Source, here: Standing) -> None:
        if self._is_drain:
            retired, server = self._progress.retired, source.owner.server_id
            if server not in retired:
                retired.append(server)
            if server not in self._saved_retired:  # it may leave before the next save
                return
            try:
                await self._servers.retire(here, self._order.type, RETIRE_QUIET_MS)
            except RoostError as error:
                self.waits_for = error.message
                return
        self._end(source, EMPTY)

    def _end(self, source: Source, how: str) -> None:
        log.info("drain: a server's part is over", extra={"serverId": source.owner.server_id, "reason": how})
        self._progress.over[source.owner.server_id] = how
        del self.sources[source.owner.server_id]

    def _quota_is_met(self, source: Source) -> bool:
        return not self._is_drain and self._quota_left(source) <= 0

    def _quota_left(self, source: Source) -> int:
        server = source.owner.server_id
        given = self._progress.given.get(server, 0)
        return self._order.quota.get(server, 0) - given - len(source.under_way)

    def _due(self, source: Source, here: Standing, now: float, most: int) -> list[Shift]:
        room = min(most, AT_SOURCE - len(source.under_way))
        if not self._is_drain:
            room = min(room, self._quota_left(source))
        if room <= 0 or not len(source.line):
            return []
        targets, most = self._targets.of(here, now), source.bucket.take(source.pace.rate, now, room)
        shifts, aside = self._place(source, targets, most)
        source.bucket.overdraw(sum(len(shift.users) for shift in shifts) - most)
        source.line.put_back(aside)
        if aside:
            self.waits_for = "no server has room for more users"
        if aside and not shifts and not source.is_stuck:  # what is known of its people gets old
            source.look_at = now + LOOK_S
        source.is_stuck = not shifts and (source.is_stuck or bool(aside))
        return shifts

    def _place(
        self, source: Source, targets: list[Standing], most: int
    ) -> tuple[list[Shift], list[tuple[str, ...]]]:
        """Moves of `most` users of the line, more by whole groups, and the groups that fit nowhere now: they
        hold up nobody."""
        shifts: list[Shift] = []
        aside: list[tuple[str, ...]] = []
        too_large: float = math.inf
        while most > 0 and too_large > 1 and (groups := deque(source.line.take(most, self._wanted))):
            while groups:
                group = groups.popleft()
                to = self._targets.choose(targets, len(group)) if len(group) < too_large else None
                if to is not None:
                    shifts.append(self._shift(source, group, to))
                    most -= len(group)
                elif self.force and 0 < self._targets.most_room(targets) < len(group):
                    groups.extendleft((user,) for user in reversed(group))
                else:
                    aside.append(group)
                    too_large = min(too_large, len(group))
        return shifts, aside

    def _shift(self, source: Source, group: tuple[str, ...], to: Standing) -> Shift:
        source.under_way.update(group)
        self._targets.sent(to.server_id, len(group))
        return Shift(source.owner.server_id, group, source.owner, to.owner, self.force)

    def _wanted(self, user: str) -> bool:
        order = self._order
        if not order.canary or self._progress.canary_done:
            return True
        return is_canary(user, order.id, order.canary)

    def _tell(self) -> None:
        """Into the progress: the rate, and who cannot move."""
        progress, sources = self._progress, list(self.sources.values())
        progress.rate_now = sum(one.pace.rate for one in sources)
        slowed = [one.pace for one in sources if one.pace.rate < one.pace.cap]
        progress.rate_why = self.waits_for or (slowed[0].why if slowed else "as asked for")
        pinned = [one for source in sources for one in source.line.pinned.items()]
        progress.pinned = dict(pinned[:MAX_PINNED])
        counts = progress.counts
        counts["pinned"], counts["later"] = len(pinned), sum(one.line.later for one in sources)

    def _count(self, source: Source) -> None:
        """How many there are to move, as known at a survey."""
        progress, server = self._progress, source.owner.server_id
        there = progress.given.get(server, 0) + len(source.under_way) + source.line.left
        wanted = there if self._is_drain else self._order.quota[server]
        progress.totals[server] = max(progress.totals.get(server, 0), wanted)
        progress.counts["users"] = sum(progress.totals.values())
