"""The loop that keeps a partition: one look a second, by its leader.

It brings the servers from discovery, lets lease time pass, places the users of servers that ended at a
bounded rate, and releases bindings that nobody used for long. Without it nobody is lost: whoever asks is
placed by `resolve`, which also lets lease time pass; new servers take nobody meanwhile. The lease keeps
managers from doing the same work, and its grant fences a sleeper.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time

from roost.binding.fleet import Fleet
from roost.binding.partition import DRAW_BITS, Partition
from roost.binding.scripts import Deposed, NewsLost, Ticked
from roost.core.lease import MAX_STEP_MS, Tenure
from roost.core.loops import END, Loops

log = logging.getLogger("roost.binding.keeper")

TICK_S = 1.0
NEWS_PAUSE_S = 0.02
"""Changes of discovery that come this soon after each other are one write."""
IDLE_BATCH = 200
REPLACE_BATCH = 50
"""Users placed in one call: the store does nothing else meanwhile."""


class Keeper:
    """Keeps one partition while this process leads it."""

    def __init__(
        self,
        partition: Partition,
        fleets: list[Fleet],
        changed: asyncio.Event,
        loops: Loops | None = None,
        tick_s: float = TICK_S,
    ) -> None:
        """`changed` is the one that the fleets set."""
        self.partition = partition
        self._fleets = fleets
        self._following: dict[str, asyncio.Task[None]] = {}
        self._changed = changed
        self._loops = loops or Loops()
        self._tick_s = tick_s
        self.leading = False
        self.replaced = 0
        """Users of ended servers that this process placed."""
        self.idle = 0
        """Bindings that it released because nobody used them."""

    async def run(self, tenure: Tenure) -> None:
        """The leader's work, until another leads. A round that fails is tried again after a backoff."""

        async def turn() -> object:
            began = time.monotonic()
            goes_on = await self.round(tenure) and await self._tell_news(tenure, began)
            return None if goes_on else END

        self.leading = True
        for fleet in self._fleets:
            self._follow(fleet)
        try:
            await self._loops.keep_running(f"bindings {self.partition.scope}", turn)
        finally:
            self.leading = False
            following, self._following = self._following, {}
            for task in following.values():
                task.cancel()
            await asyncio.gather(*following.values(), return_exceptions=True)

    def add(self, fleet: Fleet) -> None:
        """Look after the servers of one more type, from now on."""
        self._fleets.append(fleet)
        if self.leading:
            self._follow(fleet)

    def remove(self, type_: str) -> None:
        """Look after the servers of a type no more."""
        self._fleets[:] = [fleet for fleet in self._fleets if fleet.type != type_]
        if (task := self._following.pop(type_, None)) is not None:
            task.cancel()

    def _follow(self, fleet: Fleet) -> None:
        fleet.begin()
        self._following[fleet.type] = asyncio.create_task(fleet.follow())

    async def round(self, tenure: Tenure) -> bool:
        """One look at every type; False: deposed."""
        if not await self._write(tenure):
            return False
        orphans: dict[str, None] = {}
        for fleet in tuple(self._fleets):
            if fleet.news:  # else which servers there are is not known yet
                ticked = await self._tick(fleet, tenure)
                if isinstance(ticked, Deposed):
                    log.warning("another leads, or nobody", extra={"partition": self.partition.number})
                    return False
                if isinstance(ticked, NewsLost):
                    fleet.forget_written()
                    continue
                self.idle += ticked.idle
                orphans |= dict.fromkeys(ticked.orphans)
        return await self._replace(tenure, list(orphans))

    async def _write(self, tenure: Tenure) -> bool:
        self._changed.clear()
        for fleet in tuple(self._fleets):
            if not await fleet.write(tenure):
                return False
        return True

    async def _tell_news(self, tenure: Tenure, began: float) -> bool:
        """What is left of the tick after a round: write what discovery says as soon as it says it."""
        until = began + self._tick_s
        while (left := until - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(left):
                    await self._changed.wait()
            except TimeoutError:
                break
            await asyncio.sleep(NEWS_PAUSE_S)
            if not await self._write(tenure):
                return False
        return True

    async def _tick(self, fleet: Fleet, tenure: Tenure) -> Ticked | NewsLost | Deposed:
        return await self.partition.scripts.tick(
            holder=tenure.holder,
            epoch=str(tenure.epoch),
            type=fleet.type,
            news=fleet.news,
            idle_ms=self.partition.settings.idle_seconds * 1000,
            count=IDLE_BATCH,
            max_step_ms=MAX_STEP_MS,
        )

    async def _replace(self, tenure: Tenure, orphans: list[str]) -> bool:
        """Place users of ended lives, as many in this tick as the settings allow; False: deposed."""
        budget = self.partition.settings.replace_per_second
        for orphan in orphans:
            type_, server_id, life = orphan.split(":")
            remaining, placed = 1, 1
            while remaining and placed and budget > 0:
                answer = await self.partition.scripts.replace(
                    holder=tenure.holder,
                    epoch=str(tenure.epoch),
                    type=type_,
                    server=server_id,
                    life=life,
                    version=self.partition.version_of(type_),
                    count=min(budget, REPLACE_BATCH),
                    draw=random.getrandbits(DRAW_BITS),
                    slow_ms=self.partition.settings.slow_start_seconds * 1000,
                    max_step_ms=MAX_STEP_MS,
                )
                if isinstance(answer, Deposed):
                    return False
                remaining, placed = answer.remaining, answer.placed
                budget -= placed
                self.replaced += placed
            if not remaining:
                log.info("users placed anew", extra={"serverId": server_id, "life": life})
        return True
