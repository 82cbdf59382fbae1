"""Which servers a world may send people to: what its leader hears of discovery, and writes into the ledger.

News is ordered by the leader's epoch and a counter that lives as long as the process; discovery's own
revision says nothing here, because a wiped discovery begins again. One write is under way at a time. After
one that was not answered, after a gap and in every tenure all of it is written anew.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from roost.api.discovery import Change, Instance, Watcher
from roost.core.lease import Tenure
from roost.core.loops import Loops
from roost.waitingroom.scripts import Deposed, Stale, Synced
from roost.waitingroom.service import DROP_BATCH_LIMIT, WaitingRoom

log = logging.getLogger("roost.waitingroom.fleet")

ABSENT_S = 30.0
"""How long a server may be missing in discovery before its life is over, if nobody said that it ended: a
discovery that was emptied throws nobody out, its servers register again within a beat."""
RETRY_S = 0.5

Life = tuple[str, str]
"""Server id and life."""


@dataclass(frozen=True, slots=True)
class Server:
    """One server as discovery shows it."""

    life: str
    willing: bool
    """Whether it may take a new user, were it not for its seats: the ledger counts those itself."""
    group: str = field(default="", compare=False)
    version: str = field(default="", compare=False)


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
        self._clock = clock
        self._numbers = itertools.count(1)
        self._servers: dict[str, Server] | None = None
        self._written: dict[str, Server] | None = None
        """What the ledger holds; None: that is not known, everything must be written."""
        self._ending: dict[Life, None] = {}
        """Lives that are over and whose people may not all be let out yet."""
        self._absent: dict[Life, float] = {}
        """Lives in the ledger that discovery does not show, since when."""
        self.changed = asyncio.Event()
        """Set when there is something to write."""
        self.news = ""
        """Epoch and number of the last news that the ledger took; every tick names it."""

    def begin(self) -> None:
        """A new tenure: nothing that was heard or written before counts."""
        self._servers = self._written = None
        self._ending, self._absent = {}, {}
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
            self._servers = {
                instance.server_id or instance.instance_id: _server(instance)
                for instance in change.instances or ()
            }
            self._written = None
        elif self._servers is not None:
            if change.event == "removed":
                known = self._servers.get(change.server_id)
                if known is not None and known.life == change.life:
                    del self._servers[change.server_id]
                self._ending[change.server_id, change.life] = None
            elif change.instance is not None:
                self._servers[change.server_id] = _server(change.instance)
        self.changed.set()

    @property
    def region(self) -> str:
        """The group that most of its servers are in; empty while none is known."""
        return _most_common(server.group for server in (self._servers or {}).values())

    @property
    def version(self) -> str:
        """Of the game, as most of its servers registered it."""
        return _most_common(server.version for server in (self._servers or {}).values())

    def forget_written(self) -> None:
        """The ledger lost what was written: all of it is written anew."""
        self._written = None
        self.changed.set()

    async def write(self, tenure: Tenure) -> bool:
        """Bring the ledger up to date; False: this tenure is over.

        Nothing is written before discovery was heard: then `news` is empty, and there is nothing to tick by.
        """
        self.changed.clear()
        self._end_absent()
        if self._servers is None:
            return True
        heard = self._servers  # a snapshot that comes meanwhile is another one
        servers, full = dict(heard), self._written is None
        ending, opened = list(self._ending), self._changed_since(self._written or {})
        if not (full or ending or opened):
            return True
        number = next(self._numbers)
        self._written = None  # until the store has answered
        answer = await self._room.scripts.sync(
            holder=tenure.holder,
            epoch=str(tenure.epoch),
            number=number,
            full=int(full),
            count=DROP_BATCH_LIMIT,
            rows=_rows(ending, opened),
        )
        match answer:
            case Synced(remaining, absent):
                self._written = servers if self._servers is heard else None
                self.news = f"{tenure.epoch}:{number}"
                self._note(ending if remaining == 0 else [], absent if full else None)
            case Stale():
                self.changed.set()
            case Deposed():
                return False
        return True

    def _changed_since(self, written: dict[str, Server]) -> dict[str, Server]:
        assert self._servers is not None
        return {id_: server for id_, server in self._servers.items() if written.get(id_) != server}

    def _note(self, ended: list[Life], absent: list[str] | None) -> None:
        for life in ended:
            self._ending.pop(life, None)
        if self._ending:
            self.changed.set()
        if absent is not None:
            now = self._clock()
            self._absent = {
                life: self._absent.get(life, now) for life in zip(absent[::2], absent[1::2], strict=True)
            }

    def _end_absent(self) -> None:
        """Lives that discovery has not shown for too long are over, though nobody said so."""
        now = self._clock()
        for life, since in list(self._absent.items()):
            if self._shows(life):
                del self._absent[life]
            elif now - since > ABSENT_S:
                log.warning(
                    "a server's end was missed", extra={"world": self._room.world, "serverId": life[0]}
                )
                del self._absent[life]
                self._ending[life] = None

    def _shows(self, life: Life) -> bool:
        shown = (self._servers or {}).get(life[0])
        return shown is not None and shown.life == life[1]


def _server(instance: Instance) -> Server:
    return Server(instance.life, instance.willing, instance.group, instance.version)


def _most_common(texts: Iterable[str]) -> str:
    common = Counter(filter(None, texts)).most_common(1)
    return common[0][0] if common else ""


def _rows(ending: list[Life], servers: dict[str, Server]) -> list[str]:
    """As `sync.lua` reads them; ends first, lest a new life be ended for the old one."""
    rows: list[str] = []
    for server_id, life in ending:
        rows += (server_id, life, "-")
    for server_id, server in servers.items():
        rows += (server_id, server.life, "1" if server.willing else "0")
    return rows
