"""One after the other, by weight, without bursts (smooth weighted round robin)."""

from __future__ import annotations

from heapq import nlargest
from typing import Self

from roost.balancing.server import Fleet, Refusal, Server
from roost.balancing.strategies import ServerEvent, Strategy


class RoundRobin(Strategy):
    """Each turn everybody gains its weight; the richest is chosen and pays the total."""

    name = "round_robin"

    def __init__(self) -> None:
        super().__init__()
        self._credit: dict[str, int] = {}

    def choose(self, key: str, fleet: Fleet) -> Server | Refusal:
        servers = fleet.accepting
        if not servers:
            return fleet.refusal()
        with self._lock:
            for server in servers:
                self._credit[server.server_id] = self._credit.get(server.server_id, 0) + server.weight
            chosen = max(servers, key=lambda server: self._credit[server.server_id])
            self._credit[chosen.server_id] -= sum(server.weight for server in servers)
        return chosen

    def candidates(self, key: str, fleet: Fleet, n: int) -> list[Server]:
        """Those whose turn is next."""
        with self._lock:
            credit = dict(self._credit)
        return nlargest(n, fleet.accepting, key=lambda s: credit.get(s.server_id, 0) + s.weight)

    def on_server_event(self, server: Server, event: ServerEvent) -> None:
        if event == "removed":
            with self._lock:
                self._credit.pop(server.server_id, None)
        super().on_server_event(server, event)

    def rehearsal(self) -> Self:
        rehearsal = super().rehearsal()
        with self._lock:
            rehearsal._credit = dict(self._credit)
        return rehearsal
