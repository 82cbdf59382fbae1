"""Handing events on: one list for all, a bounded queue for each viewer. No I/O.

A viewer that does not take its events in time is told of a gap and goes on from now: it costs the others
nothing, and never more memory than its queue.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import msgspec

from roost.api.events import Happening, StreamGap
from roost.web.stream import Event

KEPT = 1000
"""Events that a viewer who comes back can go on from."""
RECENT = 50
QUEUE_LIMIT = 256

_encode = msgspec.json.Encoder().encode


class Sent(NamedTuple):
    number: int
    scope: str
    kind: str
    data: bytes


class Viewer:
    """One stream: what waits to be written to it."""

    def __init__(self, scopes: Collection[str], missed: Iterable[Sent] = ()) -> None:
        """`missed`: what a viewer who comes back has not heard yet, before all that happens from now on."""
        self._scopes = frozenset(scopes)
        self._missed = deque(sent for sent in missed if sent.scope in self._scopes or not sent.scope)
        self._waiting: deque[Sent] = deque()
        self._overview: Sent | None = None
        self._news = asyncio.Event()
        if self._missed:
            self._news.set()
        self.gaps = 0
        """How often it was too slow."""

    def wants(self, scope: str) -> bool:
        return scope in self._scopes

    def put(self, sent: Sent, gap: Callable[[], Sent]) -> None:
        """`gap`: what it gets instead of all that waits, once it is too far behind."""
        if sent.scope == "overview":
            self._overview = sent  # only the newest counts
        elif len(self._waiting) >= QUEUE_LIMIT:
            self.gaps += 1
            self._waiting.clear()
            self._waiting.append(gap())
        else:
            self._waiting.append(sent)
        self._news.set()

    async def next(self) -> Sent:
        await self._news.wait()
        if self._missed:
            sent = self._missed.popleft()
        elif self._waiting:
            sent = self._waiting.popleft()
        else:
            assert self._overview is not None
            sent, self._overview = self._overview, None
        if not (self._missed or self._waiting) and self._overview is None:
            self._news.clear()
        return sent


class Viewers:
    """Everybody who looks, and what they have been told lately."""

    def __init__(self) -> None:
        self.history = secrets.token_hex(4)
        """Names the numbers of this list: those of another process are another list."""
        self._number = 0
        self._kept: deque[Sent] = deque(maxlen=KEPT)
        self._recent: deque[Happening] = deque(maxlen=RECENT)
        self._viewers: set[Viewer] = set()

    def __len__(self) -> int:
        return len(self._viewers)

    def anybody_wants(self, scope: str) -> bool:
        return any(viewer.wants(scope) for viewer in self._viewers)

    @property
    def recent(self) -> list[Happening]:
        """Newest first."""
        return list(reversed(self._recent))

    def remember(self, happenings: list[Happening]) -> None:
        """What happened before anybody looked, oldest first; some of it may have been told by now."""
        since = [told for told in self._recent if told not in happenings]
        self._recent.clear()
        self._recent.extend([*happenings, *since])

    def start_anew(self) -> None:
        """Nobody follows any more: what is told later does not join what was told."""
        self.history, self._number = secrets.token_hex(4), 0
        self._kept.clear()

    @contextmanager
    def joined(self, scopes: Collection[str], after: str, now: str) -> Iterator[Viewer]:
        """A viewer of these scopes, from the event `after` on where that is still known."""
        missed = self._since(after)
        viewer = Viewer(scopes, [self._gap("", now)] if missed is None else missed)
        self._viewers.add(viewer)
        try:
            yield viewer
        finally:
            self._viewers.discard(viewer)

    def _since(self, after: str) -> list[Sent] | None:
        """What came after an id; None: continuity cannot be proved."""
        if not after:
            return []
        history, _, number = after.rpartition("-")
        if history != self.history or not number.isdecimal() or len(number) > 15:
            return None
        seen = int(number)
        oldest = self._kept[0].number if self._kept else self._number + 1
        if not oldest - 1 <= seen <= self._number:
            return None
        return [sent for sent in self._kept if sent.number > seen]

    def tell(self, kind: str, happening: Happening) -> None:
        self._recent.append(happening)
        self._number += 1
        sent = Sent(self._number, happening.scope, kind, _encode(happening))
        self._kept.append(sent)
        self._hand(sent, happening.at)

    def show(self, overview: bytes, now: str, only: Viewer | None = None) -> None:
        """How things are: no event, so it has the number of the last one."""
        sent = Sent(self._number, "overview", "overview", overview)
        if only is not None:
            only.put(sent, partial(self._gap, "", now))
        else:
            self._hand(sent, now)

    def miss(self, scope: str, now: str) -> None:
        """Something of a scope may have been missed by everybody."""
        self._number += 1
        sent = self._gap(scope, now)
        self._kept.append(sent)
        self._hand(sent, now)

    def _gap(self, scope: str, now: str) -> Sent:
        return Sent(self._number, scope, "gap", _encode(StreamGap(scope, now)))

    def _hand(self, sent: Sent, now: str) -> None:
        gap = partial(self._gap, "", now)
        for viewer in self._viewers:
            if viewer.wants(sent.scope):
                viewer.put(sent, gap)

    @property
    def last_id(self) -> str:
        return f"{self.history}-{self._number}"

    def event_of(self, sent: Sent) -> Event:
        return Event(f"{self.history}-{sent.number}", sent.kind, sent.data)
