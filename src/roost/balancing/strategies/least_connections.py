"""The server with the fewest users for its weight, counting whom this balancer has just sent there."""

from __future__ import annotations

import time
from collections.abc import Callable
from heapq import nsmallest
from typing import Self

from roost.balancing.server import Fleet, Refusal, Server
from roost.balancing.strategies import ServerEvent, Strategy

PICK_S = 30.0
"""How long a pick counts if no report comes: a load that moves by less than a step is not reported."""


class Picks:
    """Whom this balancer has sent to each server since the last report of its load."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._count: dict[str, tuple[int, float]] = {}
        """How many, and when they are forgotten."""

    def of(self, server_id: str) -> int:
        count, until = self._count.get(server_id, (0, 0.0))
        return count if until > self._clock() else 0

    def note(self, server_id: str) -> None:
        self._count[server_id] = (self.of(server_id) + 1, self._clock() + PICK_S)

    def forget(self, server_id: str) -> None:
        self._count.pop(server_id, None)

    def copy(self) -> Picks:
        copied = Picks(self._clock)
        copied._count = dict(self._count)
        return copied

    def burden(self, server: Server) -> tuple[bool, float, str]:
        """Users per weight, those that must be full by now last. On a tie the id decides: balancers with the
        same figures agree."""
        users = server.load + (self.of(server.server_id) if server.server_id in self._count else 0)
        is_full = bool(server.capacity) and users >= server.capacity
        return is_full, (users + 1) / server.weight, server.server_id


class Counting(Strategy):
    """A strategy that goes by load, and knows that its own picks are not in the reports yet."""

    def __init__(self) -> None:
        super().__init__()
        self.picks = Picks()

    def on_server_event(self, server: Server, event: ServerEvent) -> None:
        known = self._servers.get(server.server_id)
        if event == "removed" or known is None or known.load != server.load or known.life != server.life:
            self.picks.forget(server.server_id)
        super().on_server_event(server, event)

    def rehearsal(self) -> Self:
        rehearsal = super().rehearsal()
        rehearsal.picks = self.picks.copy()
        return rehearsal

    def candidates(self, key: str, fleet: Fleet, n: int) -> list[Server]:
        return nsmallest(n, fleet.accepting, key=self.picks.burden)


class LeastConnections(Counting):
    name = "least_connections"

    def choose(self, key: str, fleet: Fleet) -> Server | Refusal:
        if not fleet.accepting:
            return fleet.refusal()
        with self._lock:  # two threads must not both see the same server empty
            chosen = min(fleet.accepting, key=self.picks.burden)
            self.picks.note(chosen.server_id)
        return chosen
