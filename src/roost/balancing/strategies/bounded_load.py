"""Consistent hash for new users with a cap: nobody gets more than (1 + ε) of the mean load."""

from __future__ import annotations

import math

from roost.balancing.server import Fleet, Refusal, Server
from roost.balancing.strategies.consistent_hash import ConsistentHashing, Hash

EPSILON = 0.25


class BoundedLoad(ConsistentHashing):
    """The key's first candidate that is below the cap. Only for users without a place: it may choose
    differently the next time."""

    name = "bounded_load"

    def __init__(self, epsilon: float = EPSILON, hash: Hash | None = None) -> None:  # noqa: A002
        super().__init__(hash)
        if epsilon <= 0:
            raise ValueError("epsilon must be above 0")
        self._epsilon = epsilon

    def choose(self, key: str, fleet: Fleet) -> Server | Refusal:
        accepting = fleet.accepting
        if not accepting:
            return fleet.refusal()
        users = sum(server.load for server in accepting) + 1
        total_weight = sum(server.weight for server in accepting)
        for node in self.hash.get_nodes(key, self.hash.node_count):
            server = fleet.servers.get(node)
            if server is None or not server.accepting:
                continue
            cap = math.ceil((1 + self._epsilon) * users * server.weight / total_weight)
            if server.load < cap:
                return server
        return min(accepting, key=lambda server: server.load)
