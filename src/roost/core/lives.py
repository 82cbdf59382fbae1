"""What a leader knows of the servers of one type: what discovery says of them, and what of it was written.

The same for the ledger of a world and for a partition of bindings.

News is ordered by the leader's epoch and a counter that lives as long as the process; discovery's own
revision says nothing here, because a wiped discovery begins again. One write is under way at a time. After
one that was not answered, after a gap and in every tenure all of it is written anew.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

ABSENT_S = 30.0
"""How long a server may be missing in discovery before its life is over, if nobody said that it ended: a
discovery that was emptied throws nobody out, its servers register again within a beat."""

Life = tuple[str, str]
"""Server id and life."""


@dataclass(frozen=True, slots=True)
class Server:
    """One server as discovery shows it."""

    life: str
    willing: bool
    """Whether it may take a new user, were it not for its seats: who counts those decides."""
    group: str = field(default="", compare=False)
    version: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, eq=False)
class News:
    """One write: everything, or what is different since the last one."""

    number: int
    full: bool
    ending: Sequence[Life]
    opened: Mapping[str, Server]
    """Those that are different from what was written."""
    heard: Mapping[str, Server]
    """All of them; a snapshot that comes meanwhile is another mapping."""
    servers: Mapping[str, Server]
    """A copy of them, as they were when the write began."""

    def rows(self) -> list[str]:
        """As the scripts `sync` read them; ends first, lest a new life be ended for the old one."""
        rows: list[str] = []
        for server_id, life in self.ending:
            rows += (server_id, life, "-")
        for server_id, server in self.opened.items():
            rows += (server_id, server.life, "1" if server.willing else "0")
        return rows


class Lives:
    """The lives of one type's servers: heard, written, ending and absent."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._numbers = itertools.count(1)
        self.servers: dict[str, Server] | None = None
        """As discovery shows them; None before the first snapshot: nothing counts until then."""
        self._written: Mapping[str, Server] | None = None
        """What was written; None: that is not known, everything must be."""
        self._ending: dict[Life, None] = {}
        """Lives that are over, and whose users may not all be gone yet."""
        self._absent: dict[Life, float] = {}
        """Lives that were written and that discovery does not show, since when."""

    def begin(self) -> None:
        """A new tenure: nothing that was heard or written before counts."""
        self.servers = self._written = None
        self._ending, self._absent = {}, {}

    # -- what discovery says

    def hear_all(self, servers: dict[str, Server]) -> None:
        self.servers, self._written = servers, None

    def hear(self, server_id: str, server: Server) -> None:
        if self.servers is not None:
            self.servers[server_id] = server

    def hear_end(self, server_id: str, life: str) -> None:
        if self.servers is not None:
            if self._shows((server_id, life)):
                del self.servers[server_id]
            self._ending[server_id, life] = None

    # -- what is written

    def forget_written(self) -> None:
        self._written = None

    def next_news(self) -> News | None:
        """What is to be written now; None: nothing. Until `taken` nothing counts as written."""
        if self.servers is None:
            return None
        full, written = self._written is None, self._written or {}
        opened = {id_: server for id_, server in self.servers.items() if written.get(id_) != server}
        if not (full or self._ending or opened):
            return None
        self._written = None
        return News(next(self._numbers), full, list(self._ending), opened, self.servers, dict(self.servers))

    def taken(self, news: News, *, is_done: bool, absent: Sequence[str]) -> bool:
        """The news was written. `is_done`: nobody is left in the lives that ended; `absent`: those that full
        news did not name, id and life in turn. True: there is more to write."""
        self._written = news.servers if self.servers is news.heard else None
        if is_done:
            for life in news.ending:
                self._ending.pop(life, None)
        if news.full:
            now = self._clock()
            lives = zip(absent[::2], absent[1::2], strict=True)
            self._absent = {life: self._absent.get(life, now) for life in lives}
        return bool(self._ending)

    def end_absent(self) -> list[Life]:
        """Lives that discovery has not shown for too long are over, though nobody said so; returns them."""
        now, ended = self._clock(), list[Life]()
        for life, since in list(self._absent.items()):
            if self._shows(life):
                del self._absent[life]
            elif now - since > ABSENT_S:
                del self._absent[life]
                self._ending[life] = None
                ended.append(life)
        return ended

    def _shows(self, life: Life) -> bool:
        shown = (self.servers or {}).get(life[0])
        return shown is not None and shown.life == life[1]
