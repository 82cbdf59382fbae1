"""How a server is chosen: one small module each.

Each strategy also stands alone, with the interface of document 001: `on_server_event` tells it of servers,
`available` and `get_server_id(key)` ask it. A `LoadBalancer` has its own fleet and calls `choose`.
"""

from __future__ import annotations

import copy
import threading
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, Self

from roost.balancing.server import Fleet, Refusal, Server

ServerEvent = Literal["added", "removed", "changed"]


class Strategy(ABC):
    """Chooses among the accepting, and remembers every server that it is told of. Safe for threads."""

    name: str
    looks_at_all = True
    """Whether a choice takes longer where there are more servers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._servers: dict[str, Server] = {}
        self._fleet: Fleet | None = None
        """Made of the servers when somebody asks; in a `LoadBalancer` nobody does, so events stay cheap."""

    @abstractmethod
    def choose(self, key: str, fleet: Fleet) -> Server | Refusal:
        """Without I/O; never a server that does not accept, unless the key already lives there."""

    def candidates(self, key: str, fleet: Fleet, n: int) -> list[Server]:
        """Up to `n` that accept, best first: who could take this key, if those before could not.

        The first need not be what `choose` returns where that depends on more than the key.
        """
        return list(fleet.accepting[:n])

    def many_events(self) -> AbstractContextManager[None]:
        """Around many calls of `on_server_event`: a strategy may take them together at the end."""
        return nullcontext()

    def rehearsal(self) -> Self:
        """A copy to try one choice with: whatever it chooses leaves no trace here."""
        return copy.copy(self)

    # -- document 001's interface

    def on_server_event(self, server: Server, event: ServerEvent) -> None:
        """A server came, left or changed. A strategy that keeps more about servers extends this."""
        with self._lock:
            if event == "removed":
                self._servers.pop(server.server_id, None)
            else:
                self._servers[server.server_id] = server
            self._fleet = None

    @property
    def available(self) -> list[str]:
        """Ids of the servers that take new users."""
        return [server.server_id for server in self._known().accepting]

    def get_server_id(self, key: str) -> str | None:
        """The server of a key; None where no server takes it."""
        chosen = self.choose(key, self._known())
        return chosen.server_id if isinstance(chosen, Server) else None

    def _known(self) -> Fleet:
        with self._lock:
            if self._fleet is None:
                self._fleet = Fleet(self._servers.values())
            return self._fleet
