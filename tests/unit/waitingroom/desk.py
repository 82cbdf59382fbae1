"""A world on paper: a room that answers as the test says, and the desk in front of it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from roost.core.events import Entry
from roost.core.loops import Loops
from roost.core.passes import Receipt
from roost.store.feed import Feed
from roost.waitingroom.board import BoardCache
from roost.waitingroom.desk import Desk
from roost.waitingroom.keyring import KeyRing
from roost.waitingroom.model import Line, WorldBoard
from roost.waitingroom.presence import Presence
from roost.waitingroom.push import Push
from roost.waitingroom.scripts import Entered, Found, NoPlace
from roost.waitingroom.service import WaitingRoom

BORN = 1_700_000_000_000_000
KEY = "k1:" + base64.b64encode(b"a-key-of-the-tests-with-32-bytes").decode()


def board_of(line: Line, **numbers: str) -> WorldBoard:
    return WorldBoard(BORN, {"born": str(BORN), **numbers}, {"": line}, (), (), 0, 0)


def long_line(count: int = 65_000, *, fast: int = 100_000) -> Line:
    """Places BORN, BORN + 1, …; it moves by `fast` thousandths of a person in a second."""
    marks = tuple(BORN + (count - 1) * part // 64 for part in range(65))
    return Line(count, 7, marks, fast, fast)


class Room:
    """Answers in turn, the last answer for ever; errors are raised."""

    def __init__(self, board: WorldBoard, *answers: Found | Entered | Exception) -> None:
        self.world = "main"
        self.asked: list[str] = []
        self.there: set[str] = set()
        self.place_of: dict[str, int] = {}
        """Where somebody stands, if not where their receipt says."""
        self.board = BoardCache(self._read)
        self.on_paper = board
        """The board as it is when it is read next."""
        self._answers = list(answers) or [NoPlace("")]

    async def _read(self) -> WorldBoard:
        return self.on_paper

    async def status(self, user: str) -> Any:
        self.asked.append(user)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def enter(self, user: str, *given: Any, **more: Any) -> Any:
        return await self.status(user)

    async def leave(self, user: str, receipt: Receipt | None = None) -> Any:
        return await self.status(user)

    async def touch(self, people: Sequence[tuple[str, int, int]], ticket_key: str = "") -> int:
        there = [user for user, seq, _ in people if self.place_of.get(user, seq) == seq]
        self.there.update(there)
        return len(there)


class SilentFeed:
    """A feed that nothing happens on."""

    async def head(self) -> int:
        return 0

    async def follow(self, after: int) -> AsyncIterator[Entry]:
        await asyncio.Event().wait()
        yield Entry(1, 0, 0, {})


@dataclass
class Place:
    room: Room
    limited: list[str] = field(default_factory=list)
    """Whom the desk answered without the store."""

    def __post_init__(self) -> None:
        room = cast(WaitingRoom, self.room)
        self.keyring = KeyRing(KEY, KEY)
        self.presence = Presence(room)
        self.push = Push(cast(Feed, SilentFeed()), "main", Loops())
        self.desk = Desk(room, self.presence, self.push, self.keyring)

    def receipt(self, at: int, shown: int = 0, line: str = "", born: int = BORN) -> Receipt:
        """Of whoever has the place with this number from the front, counted from 0."""
        return Receipt("main", "ann", born, BORN + at, line, shown)

    async def status(self, receipt: Receipt | None) -> Any:
        return await self.desk.status("ann", receipt, self.limited.append)
