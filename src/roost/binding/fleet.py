"""Which servers may hold users: what a partition's leader hears of discovery and writes there."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from roost.api.discovery import Change, Instance, Watcher
from roost.binding.partition import Partition
from roost.binding.scripts import Deposed, Stale, Synced
from roost.core.lease import MAX_STEP_MS, Tenure
from roost.core.lives import Lives, Server
from roost.core.loops import Loops

log = logging.getLogger("roost.binding.fleet")

RETRY_S = 0.5


class Fleet:
    """The servers of one type in one partition. `begin` a tenure, `follow` beside it, `write` to tick."""

    def __init__(
        self,
        partition: Partition,
        discovery: Watcher,
        type_: str,
        changed: asyncio.Event,
        loops: Loops | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`changed` is set when there is something to write."""
        self.type = type_
        self._partition = partition
        self._discovery = discovery
        self._loop = (loops or Loops()).loop(f"fleet {type_} {partition.scope}")
        self._lives = Lives(clock)
        self._changed = changed
        self.news = ""
        """Epoch and number of the last news that the partition took; every tick names it."""

    def begin(self) -> None:
        """A new tenure: nothing that was heard or written before counts."""
        self._lives.begin()
        self.news = ""

    async def follow(self) -> None:
        """For ever: hear what discovery says."""
        await self._loop.keep_running(self._hear_all, pause_s=RETRY_S)

    async def _hear_all(self) -> None:
        async for change in self._discovery.watch(self.type, "*"):
            self.hear(change)
            self._loop.good()

    def hear(self, change: Change) -> None:
        """Take over a snapshot or a change; nothing counts before the first snapshot."""
        if change.event == "snapshot":
            self._lives.hear_all({i.server_id or i.instance_id: _server(i) for i in change.instances or ()})
        elif change.event == "removed":
            self._lives.hear_end(change.server_id, change.life)
        elif change.instance is not None:
            self._lives.hear(change.server_id, _server(change.instance))
        self._changed.set()

    def forget_written(self) -> None:
        """The partition lost what was written: all of it is written anew."""
        self._lives.forget_written()
        self._changed.set()

    async def write(self, tenure: Tenure) -> bool:
        """Bring the partition up to date; False: this tenure is over.

        Nothing is written before discovery was heard: then `news` is empty, and there is nothing to tick by.
        """
        for server_id, life in self._lives.end_absent():
            log.warning("a server's end was missed", extra={"serverId": server_id, "life": life})
        news = self._lives.next_news()
        if news is None:
            return True
        answer = await self._partition.scripts.sync(
            holder=tenure.holder,
            epoch=str(tenure.epoch),
            type=self.type,
            number=news.number,
            full=int(news.full),
            max_step_ms=MAX_STEP_MS,
            rows=news.rows(),
        )
        match answer:
            case Synced(remaining, absent):
                self.news = f"{tenure.epoch}:{news.number}"
                for server_id, life in news.ending:
                    log.info("server ended", extra={"serverId": server_id, "life": life, "users": remaining})
                self._lives.taken(news, is_done=True, absent=absent)  # the orphans are in the store's hand
            case Stale():
                self._changed.set()
            case Deposed():
                return False
        return True


def _server(instance: Instance) -> Server:
    return Server(instance.life, instance.willing)
