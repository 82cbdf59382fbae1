"""People whom this process answered without asking the store: it is told later that they are there."""

from __future__ import annotations

import asyncio
import logging

from roost.core.errors import StoreError
from roost.waitingroom.service import WaitingRoom

log = logging.getLogger("roost.waitingroom.presence")

FLUSH_S = 0.5
PART = 500
MAX_KEPT = 200_000


class Presence:
    """Marks of one world, sent twice a second, each person once."""

    def __init__(self, room: WaitingRoom) -> None:
        self._room = room
        self._marks: dict[str, int] = {}
        self.strangers: set[str] = set()
        """People with a receipt and without a place: what the board says is not for them."""

    def mark(self, user: str, poll_ms: int) -> None:
        if len(self._marks) < MAX_KEPT or user in self._marks:
            self._marks[user] = poll_ms

    async def run(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_S)
            await self.flush()

    async def flush(self) -> None:
        """Send what there is; what could not be sent is kept for the next time."""
        marks, self._marks = self._marks, {}
        people = list(marks.items())
        for at in range(0, len(people), PART):
            try:
                await self._tell(people[at : at + PART])
            except StoreError as error:
                log.debug("presence not told", extra={"reason": error.message})
                self._marks = dict(people[at:]) | self._marks
                return

    async def _tell(self, people: list[tuple[str, int]]) -> None:
        """Send marks; where the store does not know everybody, find out whom by halves."""
        known = await self._room.touch(people)
        if known == len(people):
            return
        if known == 0:
            if len(self.strangers) >= MAX_KEPT:
                self.strangers.clear()
            self.strangers.update(user for user, _ in people)
            return
        half = len(people) // 2
        await self._tell(people[:half])
        await self._tell(people[half:])
