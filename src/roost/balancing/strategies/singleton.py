"""Everybody on one server: the same one until it does not accept any more."""

from __future__ import annotations

from roost.balancing.server import Fleet, Refusal, Server
from roost.balancing.strategies import Strategy


class Singleton(Strategy):
    name = "singleton"

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
