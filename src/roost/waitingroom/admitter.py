"""The loop that lets people in: one tick a second, by the leader of the world.

A tick that is lost, doubled or run by two leaders cannot over-admit: the script computes the budget where it
spends it. The lease only keeps managers from doing the same work, and its epoch fences a sleeper.
"""

from __future__ import annotations

import logging
import time
import uuid

from roost.core.lease import MAX_STEP_MS, Tenure
from roost.core.loops import END, Loops
from roost.waitingroom.scripts import Deposed, Ticked
from roost.waitingroom.service import WaitingRoom

log = logging.getLogger("roost.waitingroom.admitter")

EXPIRE_LIMIT = 256
SCAN_LIMIT = 1000
"""People scanned in one line in one tick; where all of them are away, the next tick follows at once."""
MAX_TICKS_IN_A_ROW = 200


class Admitter:
    """Ticks one world."""

    def __init__(self, room: WaitingRoom, loops: Loops | None = None) -> None:
        self._room = room
        self._loops = loops or Loops()
        self._began = 0.0
        self.ticks = 0
        self.tenures = 0
        self.leading = False

    async def run(self, tenure: Tenure) -> None:
        """The leader's work, until another leads. A round that fails is tried again after a backoff."""

        async def turn() -> object:
            self._began = time.monotonic()
            return None if await self._round(tenure.epoch) else END

        self.tenures += 1
        self.leading = True
        try:
            await self._loops.keep_running(f"admit {self._room.world}", turn, pause_s=self._pause_s)
        finally:
            self.leading = False

    def _pause_s(self) -> float:
        """What is left of the tick after a round."""
        return max(0.01, self._room.policy.tick_ms / 1000 - (time.monotonic() - self._began))

    async def _round(self, epoch: int) -> bool:
        """A tick, and more at once while people who are away hide those who are there."""
        left = self._room.policy.batch
        for _ in range(MAX_TICKS_IN_A_ROW):
            ticked = await self.tick(epoch, left)
            if isinstance(ticked, Deposed):
                log.warning("another leader has ticked", extra={"world": self._room.world})
                return False
            left -= ticked.issued
            if not ticked.more or left <= 0:
                break
        return True

    async def tick(self, epoch: int, batch: int) -> Ticked | Deposed:
        policy = self._room.policy
        answer = await self._room.scripts.admit(
            epoch=epoch,
            max_step_ms=MAX_STEP_MS,
            ticket_ms=policy.ticket_ms,
            late_ms=policy.late_ms,
            gone_ms=policy.gone_ms,
            forfeit=policy.forfeit,
            expire_limit=EXPIRE_LIMIT,
            scan_limit=SCAN_LIMIT,
            lines=policy.weights,
            tids=[str(uuid.uuid4()) for _ in range(batch)],
        )
        self.ticks += 1
        if isinstance(answer, Ticked) and (answer.issued or answer.expired):
            log.info(
                "tickets",
                extra={
                    "world": self._room.world,
                    "issued": answer.issued,
                    "expired": answer.expired,
                    "waiting": answer.waiting,
                },
            )
        return answer
