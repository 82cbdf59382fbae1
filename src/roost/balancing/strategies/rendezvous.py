"""Highest random weight over the accepting: no state at all, and a ranked list for free."""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import nsmallest

from xxhash import xxh3_64_intdigest

from roost.balancing.server import Fleet, Refusal, Server
from roost.balancing.strategies import Strategy

Contenders = list[tuple[int, list[bytes], list[Server]]]
"""By weight: its servers in the order of their ids, and what each is hashed with before the key."""


class Rendezvous(Strategy):
    name = "rendezvous"

    def __init__(self) -> None:
        super().__init__()
        self._prepared: tuple[Fleet | None, Contenders] = (None, [])

    def choose(self, key: str, fleet: Fleet) -> Server | Refusal:
        best = [self._best(key, contenders) for contenders in self._contenders(fleet)]
        return min(best, key=lambda server: _order(key, server)) if best else fleet.refusal()

    def candidates(self, key: str, fleet: Fleet, n: int) -> list[Server]:
        return rank(key, fleet.accepting, n)

    def _contenders(self, fleet: Fleet) -> Contenders:
        """Worked out once for a fleet, not for each key."""
        known, contenders = self._prepared
        if known is not fleet:
            contenders = _by_weight(fleet.accepting)
            self._prepared = (fleet, contenders)
        return contenders

    @staticmethod
    def _best(key: str, contenders: tuple[int, list[bytes], list[Server]]) -> Server:
        """Of equal weights the highest hash wins, without a logarithm for each."""
        _, prefixes, servers = contenders
        suffix = key.encode()
        hashes = [xxh3_64_intdigest(prefix + suffix) for prefix in prefixes]
        return servers[hashes.index(max(hashes))]


def rank(key: str, servers: Sequence[Server], n: int = 0) -> list[Server]:
    """Best first, all or the first `n`. Each server's rank depends on the key and itself alone."""
    return nsmallest(n or len(servers), servers, key=lambda server: _order(key, server))


def _by_weight(servers: Sequence[Server]) -> Contenders:
    groups: dict[int, list[Server]] = {}
    for server in servers:
        groups.setdefault(server.weight, []).append(server)
    return [
        (weight, [f"{server.server_id}\0".encode() for server in group], group)
        for weight, group in groups.items()
    ]


def _order(key: str, server: Server) -> tuple[float, str]:
    share = (xxh3_64_intdigest(f"{server.server_id}\0{key}".encode()) + 0.5) / 2.0**64
    return -math.log(share) / server.weight, server.server_id
