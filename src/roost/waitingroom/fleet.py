"""Which servers a world may send people to: what its leader hears of discovery and writes into the ledger."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable

from roost.api.discovery import Change, Instance, Watcher
from roost.core.lease import Tenure
from roost.core.lives import ABSENT_S, Lives, Server
from roost.core.loops import Loops
from roost.waitingroom.scripts import Deposed, Stale, Synced
from roost.waitingroom.service import DROP_BATCH_LIMIT, WaitingRoom

__all__ = ["ABSENT_S", "Fleet"]

log = logging.getLogger("roost.waitingroom.fleet")

RETRY_S = 0.5


class Fleet:
    """The servers of one world's type. `begin` a tenure, `follow` in the background, `write` before ticks."""

    def __init__(
        self,
        room: WaitingRoom,
        discovery: Watcher,
        type_: str,
        loops: Loops | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._room = room
        self._discovery = discovery
        self._type = type_
        self._loop = (loops or Loops()).loop(f"fleet {room.world}")
        self._lives = Lives(clock)
        self.changed = asyncio.Event()
        """Set when there is something to write."""
        self.news = ""
        """Epoch and number of the last news that the ledger took; every tick names it."""

    def begin(self) -> None:
        """A new tenure: nothing that was heard or written before counts."""
        self._lives.begin()
        self.news = ""

    async def follow(self) -> None:
        """For ever: hear what discovery says."""
        await self._loop.keep_running(self._hear_all, pause_s=RETRY_S)

    async def _hear_all(self) -> None:
        async for change in self._discovery.watch(self._type, "*"):
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
        self.changed.set()

    @property
    def region(self) -> str:
        """The group that most of its servers are in; empty while none is known."""
        return _most_common(server.group for server in (self._lives.servers or {}).values())

    @property
    def version(self) -> str:
        """Of the game, as most of its servers registered it."""
        return _most_common(server.version for server in (self._lives.servers or {}).values())

    def forget_written(self) -> None:
        """The ledger lost what was written: all of it is written anew."""
        self._lives.forget_written()
        self.changed.set()

    async def write(self, tenure: Tenure) -> bool:
        """Bring the ledger up to date; False: this tenure is over.

        Nothing is written before discovery was heard: then `news` is empty, and there is nothing to tick by.
        """
        self.changed.clear()
        for server_id, _ in self._lives.end_absent():
            log.warning("a server's end was missed", extra={"world": self._room.world, "serverId": server_id})
        news = self._lives.next_news()
        if news is None:
            return True
        answer = await self._room.scripts.sync(
            holder=tenure.holder,
            epoch=str(tenure.epoch),
            number=news.number,
            full=int(news.full),
            count=DROP_BATCH_LIMIT,
            rows=news.rows(),
        )
        match answer:
            case Synced(remaining, absent):
                self.news = f"{tenure.epoch}:{news.number}"
                if self._lives.taken(news, is_done=remaining == 0, absent=absent):
                    self.changed.set()
            case Stale():
                self.changed.set()
            case Deposed():
                return False
        return True


def _server(instance: Instance) -> Server:
    return Server(instance.life, instance.willing, instance.group, instance.version)


def _most_common(texts: Iterable[str]) -> str:
    common = Counter(filter(None, texts)).most_common(1)
    return common[0][0] if common else ""
