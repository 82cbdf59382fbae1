"""Highest random weight over the accepting: no state at all, and a ranked list for free."""

from __future__ import annotations

import math

from xxhash import xxh3_64_intdigest

from roost.balancing.server import Fleet, Refusal, Server
from roost.balancing.strategies import ServerEvent


class Rendezvous:
    name = "rendezvous"

    def choose(self, key: str, fleet: Fleet) -> Server | Refusal:
        ranked = rank(key, [server for server in fleet.accepting if server.weight])
        return ranked[0] if ranked else fleet.refusal()

    def on_server_event(self, server: Server, event: ServerEvent) -> None:
        """Nothing is kept."""


def rank(key: str, servers: list[Server]) -> list[Server]:
    """Best first. Each server's rank depends on the key and itself alone."""
    return sorted(servers, key=lambda server: (-_score(key, server), server.server_id))


def _score(key: str, server: Server) -> float:
    share = (xxh3_64_intdigest(f"{server.server_id}\0{key}".encode()) + 0.5) / 2.0**64
    return -server.weight / math.log(share)
