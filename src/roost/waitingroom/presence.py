"""People whom this process answered without asking the store: it is told later that they are there."""

from __future__ import annotations

from roost.core.errors import StoreError
from roost.core.loops import Loops
from roost.waitingroom.service import WaitingRoom

FLUSH_S = 0.5
BATCH_LIMIT = 500
MAX_KEPT = 200_000


class Presence:
    """Marks of one world, sent twice a second, each person once."""

    def __init__(self, room: WaitingRoom, loops: Loops | None = None) -> None:
        self._room = room
        self._loops = loops or Loops()
        self._marks: dict[str, int] = {}
        self.unknown_to_store: set[str] = set()
        """People with a receipt and without a place: what the board says is not for them."""

    def mark(self, user: str, poll_ms: int) -> None:
        if len(self._marks) < MAX_KEPT or user in self._marks:
            self._marks[user] = poll_ms

    async def run(self) -> None:
        """For ever. Requests depend on it: people who are answered and never marked lose their place."""
        name = f"presence {self._room.world}"
        await self._loops.keep_running(name, self._turn, pause_s=FLUSH_S, essential=True)

    async def _turn(self) -> None:
        error = await self.flush()
        if error is not None:
            raise error

    async def flush(self) -> StoreError | None:
        """Send what there is. What the store could not take is kept for the next time, and why is returned.

        People whose marks fail for any other reason are left out, lest they hold up all others for ever:
        they are marked again when they next ask.
        """
        marks, self._marks = self._marks, {}
        people = list(marks.items())
        for at in range(0, len(people), BATCH_LIMIT):
            try:
                await self._tell(people[at : at + BATCH_LIMIT])
            except StoreError as error:
                self._marks = dict(people[at:]) | self._marks
                return error
            except Exception:
                self._marks = dict(people[at + BATCH_LIMIT :]) | self._marks
                raise
        return None

    async def _tell(self, people: list[tuple[str, int]]) -> None:
        """Send marks; where the store does not know everybody, find out whom by halves."""
        known = await self._room.touch(people)
        if known == len(people):
            return
        if known == 0:
            if len(self.unknown_to_store) >= MAX_KEPT:
                self.unknown_to_store.clear()
            self.unknown_to_store.update(user for user, _ in people)
            return
        half = len(people) // 2
        await self._tell(people[:half])
        await self._tell(people[half:])
