"""Highest random weight over the accepting: no state at all, and a ranked list for free."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xxhash import xxh3_64_intdigest

from roost.balancing.server import Fleet, Refusal, Server
from roost.balancing.strategies import Strategy


class Rendezvous(Strategy):
    name = "rendezvous"

    def choose(self, key: str, fleet: Fleet) -> Server | Refusal:
        return rank(key, fleet.accepting)[0] if fleet.accepting else fleet.refusal()


def rank(key: str, servers: Sequence[Server]) -> list[Server]:
    """Best first. Each server's rank depends on the key and itself alone."""
    return sorted(servers, key=lambda server: (_distance(key, server), server.server_id))


def _distance(key: str, server: Server) -> float:
    share = (xxh3_64_intdigest(f"{server.server_id}\0{key}".encode()) + 0.5) / 2.0**64
    return -math.log(share) / server.weight
