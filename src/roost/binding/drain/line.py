"""The users of one source server in the order in which they are moved. Pure.

Who is not in memory costs nobody anything and goes first, then the idle and clean, the busiest last. Whoever
came back or cannot move now waits, and is asked again.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Literal, NamedTuple

from roost.binding.party import MOST_IN_PARTY

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 10.0


class Surveyed(NamedTuple):
    """A user in memory, as the server says."""

    user: str
    online: bool
    idle_ms: int
    dirty: bool
    verdict: Literal["now", "later", "pinned"]
    note: str = ""
    """Why not now; of one who can move the party."""
    retry_ms: int = 0

    @property
    def rank(self) -> tuple[bool, bool, int]:
        return (self.online, self.dirty, -self.idle_ms)


def is_canary(user: str, job_id: str, percent: int) -> bool:
    """Whether the user is among those who move first; the same for every controller."""
    return zlib.crc32(f"{job_id}:{user}".encode()) % 100 < percent


class Line:
    def __init__(self) -> None:
        self._ready: deque[tuple[str, ...]] = deque()
        self._waits: dict[str, tuple[float, int]] = {}
        """User → until when, and how often they came back."""
        self._unsent: set[str] = set()
        """Of those who wait: their last move was not sent, or nobody knows that it was."""
        self.later = 0
        self.pinned: dict[str, str] = {}
        self.left = 0
        """Users that were there at the last survey."""

    def __len__(self) -> int:
        return len(self._ready)

    def fill(
        self,
        surveyed: Collection[Surveyed],
        bound: Iterable[str],
        now: float,
        *,
        force: bool = False,
        without: Collection[str] = (),
    ) -> None:
        """Begin anew with who is there now. `bound`: the map's users; `without`: those on their way."""
        known = {one.user for one in surveyed}
        away = [user for user in bound if user not in known and user not in without]
        here = [one for one in surveyed if one.user not in without]
        self.later = sum(one.verdict == "later" for one in here)
        self.pinned = {one.user: one.note for one in here if one.verdict == "pinned"}
        self.left = len(away) + len(here)
        fit = [one for one in here if force or one.verdict == "now"]
        self._ready = deque((user,) for user in away if self._may(user, now))
        for group in _groups(fit):
            if len(group) <= MOST_IN_PARTY:
                parts = [group]
            elif force:
                parts = [(user,) for user in group]
            else:
                parts = []
                self.pinned |= dict.fromkeys(group, f"a party of {len(group)}, more than {MOST_IN_PARTY}")
            self._ready.extend(part for part in parts if all(self._may(user, now) for user in part))
        self._waits = {user: wait for user, wait in self._waits.items() if user in known or user in away}
        self._unsent &= self._waits.keys()

    def take(self, most: int, wanted: Callable[[str], bool] = lambda _: True) -> list[tuple[str, ...]]:
        """The next groups, `most` users in all, but always a whole group; others keep their place."""
        taken: list[tuple[str, ...]] = []
        kept: list[tuple[str, ...]] = []
        while self._ready and most > 0:
            group = self._ready.popleft()
            if not any(wanted(user) for user in group):
                kept.append(group)
                continue
            taken.append(group)
            self._unsent.difference_update(group)
            most -= len(group)
        self._ready.extendleft(reversed(kept))
        return taken

    def wants(self, wanted: Callable[[str], bool]) -> bool:
        """Whether somebody of these is ready."""
        return any(wanted(user) for group in self._ready for user in group)

    def owes(self, wanted: Callable[[str], bool]) -> bool:
        """Whether somebody of these is still to be tried: ready, or taken before and not sent."""
        return self.wants(wanted) or any(wanted(user) for user in self._unsent)

    def came_back(self, user: str, now: float, retry_ms: int = 0) -> None:
        """Asked again after `retry_ms`, or after a time that doubles."""
        tries = self._waits.get(user, (0.0, 0))[1]
        wait_s = retry_ms / 1000 if retry_ms else min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(tries, 10))
        self._waits[user] = (now + min(wait_s, LONGEST_WAIT_S), tries + (not retry_ms))

    def unsent(self, user: str, now: float) -> None:
        """Like one who came back; but they are not counted as tried."""
        self.came_back(user, now)
        self._unsent.add(user)

    def put_back(self, groups: Sequence[tuple[str, ...]]) -> None:
        """They were not tried: they are the next, as they stood."""
        self._ready.extendleft(reversed(groups))

    def _may(self, user: str, now: float) -> bool:
        return self._waits.get(user, (0.0, 0))[0] <= now


def _groups(surveyed: Iterable[Surveyed]) -> list[tuple[str, ...]]:
    """Parties together; a party goes when its busiest member would."""
    parties: dict[str, list[Surveyed]] = {}
    for one in surveyed:
        name = f"party {one.note}" if one.note and one.verdict == "now" else f"user {one.user}"
        parties.setdefault(name, []).append(one)
    ordered = sorted(parties.values(), key=lambda members: max(one.rank for one in members))
    return [tuple(one.user for one in members) for members in ordered]
