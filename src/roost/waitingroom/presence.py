"""People whom this process answered without asking the store: it is told later that they are there.

The same call is the sign of a gateway: the world's clock runs only while one comes, so that nobody's place
runs out while no gateway can be reached.
"""

from __future__ import annotations

import time

from roost.core.errors import StoreError
from roost.core.loops import Loops
from roost.waitingroom.keyring import KeyRing
from roost.waitingroom.service import WaitingRoom

FLUSH_S = 0.5
SIGN_S = 0.9
"""At least so often the store is told that this gateway is there, also if nobody waits."""
BATCH_LIMIT = 500
MAX_KEPT = 200_000


class Presence:
    """Marks of one world, sent twice a second, each person once."""

    def __init__(self, room: WaitingRoom, loops: Loops | None = None, keyring: KeyRing | None = None) -> None:
        """With a `keyring` the sign says which key signs tickets here."""
        self._room = room
        self._keyring = keyring
        self._loops = loops or Loops()
        self._marks: dict[str, int] = {}
        self._confirmed: dict[str, float] = {}
        self._signed_at = float("-inf")
        self.unknown_to_store: set[str] = set()
        """People with a receipt and without a place: what the board says is not for them."""

    def mark(self, user: str, poll_ms: int) -> None:
        if len(self._marks) < MAX_KEPT or user in self._marks:
            self._marks[user] = poll_ms

    def confirmed_at(self, user: str) -> float:
        """Unix seconds at which the store last took a mark of theirs from here; 0: not that we know."""
        return self._confirmed.get(user, 0.0)

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
        known = await self._touch(people)
        if known == len(people):
            self._confirm(people)
            return
        if known == 0:
            if len(self.unknown_to_store) >= MAX_KEPT:
                self.unknown_to_store.clear()
            self.unknown_to_store.update(user for user, _ in people)
            return
        half = len(people) // 2
        await self._tell(people[:half])
        await self._tell(people[half:])

    async def _touch(self, people: list[tuple[str, int]]) -> int:
        ticket_key = self._keyring.ticket_digests[:1] if self._keyring is not None else ()
        known = await self._room.touch(people, *ticket_key)
        self._signed_at = time.monotonic()
        return known

    def _confirm(self, people: list[tuple[str, int]]) -> None:
        now = time.time()
        if len(self._confirmed) + len(people) > MAX_KEPT:
            self._confirmed.clear()  # then receipts are no younger than they show
        self._confirmed.update((user, now) for user, _ in people)
