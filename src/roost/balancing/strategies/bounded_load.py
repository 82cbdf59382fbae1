"""Consistent hash for new users with a cap: nobody gets more than (1 + ε) of the mean load."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

from roost.balancing.server import Fleet, Refusal, Server
from roost.balancing.strategies.consistent_hash import ConsistentHashing, Hash

EPSILON = 0.25


class BoundedLoad(ConsistentHashing):
    """The key's first candidate that is below the cap. Only for users without a place: it may choose
    differently the next time."""

    name = "bounded_load"
    looks_at_all = True

    def __init__(self, epsilon: float = EPSILON, hash: Hash | None = None) -> None:  # noqa: A002
        super().__init__(hash)
        if epsilon <= 0:
            raise ValueError("epsilon must be above 0")
        self._epsilon = epsilon

    def choose(self, key: str, fleet: Fleet) -> Server | Refusal:
        accepting = fleet.accepting
        if not accepting:
            return fleet.refusal()
        for server in self._below_cap(key, fleet):
            return server
        return min(accepting, key=lambda server: server.load)

    def candidates(self, key: str, fleet: Fleet, n: int) -> list[Server]:
        return list(islice(self._below_cap(key, fleet), n))

    def _below_cap(self, key: str, fleet: Fleet) -> Iterator[Server]:
        accepting = fleet.accepting
        users = sum(server.load for server in accepting) + 1
        total_weight = sum(server.weight for server in accepting)
        for server in self._in_order(key, fleet):
            cap = math.ceil((1 + self._epsilon) * users * server.weight / total_weight)
            if server.load < cap:
                yield server
