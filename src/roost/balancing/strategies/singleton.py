"""Everybody on one server: the same one until it does not accept any more."""

from __future__ import annotations

from roost.balancing.server import Fleet, Refusal, Server
from roost.balancing.strategies import Strategy


class Singleton(Strategy):
    name = "singleton"
    looks_at_all = False

    def __init__(self) -> None:
        super().__init__()
        self._current = ""

    def choose(self, key: str, fleet: Fleet) -> Server | Refusal:
        current = fleet.servers.get(self._current)
        if current is not None and current.accepting:
            return current
        if not fleet.accepting:
            return fleet.refusal()
        self._current = fleet.accepting[0].server_id
        return fleet.accepting[0]

    def candidates(self, key: str, fleet: Fleet, n: int) -> list[Server]:
        """The one that has everybody, then those that would follow it."""
        return sorted(fleet.accepting, key=lambda s: (s.server_id != self._current, s.server_id))[:n]
