"""Which order server should own which shard: even, stable, and the same for whoever computes it."""

from __future__ import annotations

from collections.abc import Collection

from roost.lanes.ids import SHARDS
from roost.lanes.selector import fmix32, fnv1a32


def assign(servers: Collection[str], shards: int = SHARDS) -> dict[int, str]:
    """A server for each shard, none with more than its even share.

    A server that comes or goes moves little else: each shard ranks the servers by a hash of both and takes
    the first with room, lower shards first.
    """
    if not servers:
        return {}
    share = -(-shards // len(servers))
    room = dict.fromkeys(servers, share)
    assigned: dict[int, str] = {}
    for shard in range(shards):
        chosen = max(
            (server for server in room if room[server]), key=lambda server: (_score(shard, server), server)
        )
        room[chosen] -= 1
        assigned[shard] = chosen
    return assigned


def _score(shard: int, server: str) -> int:
    return fmix32(fnv1a32(f"{shard}:{server}".encode()))
