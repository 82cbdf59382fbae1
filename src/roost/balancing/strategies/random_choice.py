"""Any server, by weight; or the better of two, which is nearly as good as the best and needs no order."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from heapq import nsmallest
from typing import Self

from roost.balancing.server import Fleet, Refusal, Server
from roost.balancing.strategies import Strategy
from roost.balancing.strategies.least_connections import Counting


class Random(Strategy):
    name = "random"

    def __init__(self, rng: random.Random | None = None) -> None:
        super().__init__()
        self._rng = rng or random.Random()

    def choose(self, key: str, fleet: Fleet) -> Server | Refusal:
        return _any(self._rng, fleet.accepting) if fleet.accepting else fleet.refusal()

    def candidates(self, key: str, fleet: Fleet, n: int) -> list[Server]:
        """Drawn one after the other, each by weight among those that are left."""
        return nsmallest(n, fleet.accepting, key=lambda server: self._rng.expovariate(server.weight))

    def rehearsal(self) -> Self:
        rehearsal = super().rehearsal()
        rehearsal._rng = _copied(self._rng)
        return rehearsal


class TwoChoices(Counting):
    """Two at random, the less burdened of them: balancers with old figures do not pile onto one server."""

    name = "two_choices"

    def __init__(self, rng: random.Random | None = None) -> None:
        super().__init__()
        self._rng = rng or random.Random()

    def choose(self, key: str, fleet: Fleet) -> Server | Refusal:
        servers = fleet.accepting
        if not servers:
            return fleet.refusal()
        with self._lock:
            chosen = min(_any(self._rng, servers), _any(self._rng, servers), key=self.picks.burden)
            self.picks.note(chosen.server_id)
        return chosen

    def rehearsal(self) -> Self:
        rehearsal = super().rehearsal()
        rehearsal._rng = _copied(self._rng)
        return rehearsal


def _any(rng: random.Random, servers: Sequence[Server]) -> Server:
    return rng.choices(servers, [server.weight for server in servers])[0]


def _copied(rng: random.Random) -> random.Random:
    try:
        return copy.copy(rng)
    except NotImplementedError:  # SystemRandom: it has no state that a choice could use up
        return rng
