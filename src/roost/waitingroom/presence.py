"""People whom this process answered without asking the store: it is told later that they are there.

The same call is the sign of a gateway: the world's clock runs only while one comes, so that nobody's place
runs out while no gateway can be reached.
"""

from __future__ import annotations

import time

from roost.core.errors import StoreError
from roost.core.loops import Loops
from roost.waitingroom.keyring import KeyRing
from roost.waitingroom.service import Mark, WaitingRoom

FLUSH_S = 0.5
SIGN_S = 0.9
"""At least so often the store is told that this gateway is there, also if nobody waits."""
BATCH_LIMIT = 500
MAX_KEPT = 200_000

Place = tuple[str, int]
"""A user and the number of a place: an old receipt says nothing about the place that they have now."""


class Presence:
    """Marks of one world, sent twice a second, each place once."""

    def __init__(self, room: WaitingRoom, loops: Loops | None = None, keyring: KeyRing | None = None) -> None:
        """With a `keyring` the sign says which key signs tickets here."""
        self._room = room
        self._keyring = keyring
        self._loops = loops or Loops()
        self._marks: dict[Place, int] = {}
        self._confirmed: dict[Place, float] = {}
        self._signed_at = float("-inf")
        self.unknown_to_store: set[Place] = set()
        """Places of receipts that are not in the line: what the board says is not for whoever shows them."""

    def mark(self, user: str, seq: int, poll_ms: int) -> None:
        """Somebody who shows a receipt of the place `seq` is there."""
        place = (user, seq)
        if len(self._marks) < MAX_KEPT or place in self._marks:
            self._marks[place] = poll_ms

    def confirmed_at(self, user: str, seq: int) -> float:
        """Unix seconds at which the store last took a mark of this place from here; 0: not that we know."""
        return self._confirmed.get((user, seq), 0.0)

    async def run(self) -> None:
        """For ever. Requests depend on it: people who are answered and never marked lose their place."""
        name = f"presence {self._room.world}"
        await self._loops.keep_running(name, self._turn, pause_s=FLUSH_S, essential=True)

    async def _turn(self) -> None:
        if not self._marks and time.monotonic() - self._signed_at >= SIGN_S:
            await self._touch([])
        error = await self.flush()
        if error is not None:
            raise error

    async def flush(self) -> StoreError | None:
        """Send what there is. What the store could not take is kept for the next time, and why is returned.

        People whose marks fail for any other reason are left out, lest they hold up all others for ever:
        they are marked again when they next ask.
        """
        marks, self._marks = self._marks, {}
        people = [(user, seq, poll_ms) for (user, seq), poll_ms in marks.items()]
        for at in range(0, len(people), BATCH_LIMIT):
            try:
                await self._tell(people[at : at + BATCH_LIMIT])
            except StoreError as error:
                self._marks = _marks_of(people[at:]) | self._marks
                return error
            except Exception:
                self._marks = _marks_of(people[at + BATCH_LIMIT :]) | self._marks
                raise
        return None

    async def _tell(self, people: list[Mark]) -> None:
        """Send marks; where the store does not know everybody, find out whom by halves."""
        known = await self._touch(people)
        if known == len(people):
            self._confirm(people)
            return
        if known == 0:
            if len(self.unknown_to_store) >= MAX_KEPT:
                self.unknown_to_store.clear()
            self.unknown_to_store.update((user, seq) for user, seq, _ in people)
            return
        half = len(people) // 2
        await self._tell(people[:half])
        await self._tell(people[half:])

    async def _touch(self, people: list[Mark]) -> int:
        ticket_key = self._keyring.ticket_digests[:1] if self._keyring is not None else ()
        known = await self._room.touch(people, *ticket_key)
        self._signed_at = time.monotonic()
        return known

    def _confirm(self, people: list[Mark]) -> None:
        now = time.time()
        if len(self._confirmed) + len(people) > MAX_KEPT:
            self._confirmed.clear()  # then receipts are no younger than they show
        self._confirmed.update(((user, seq), now) for user, seq, _ in people)


def _marks_of(people: list[Mark]) -> dict[Place, int]:
    return {(user, seq): poll_ms for user, seq, poll_ms in people}
