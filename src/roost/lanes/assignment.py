"""Which order server should own which shard: even, stable, and the same for whoever computes it."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from roost.lanes.ids import SHARDS
from roost.lanes.selector import fmix32, fnv1a32


def assign(servers: Collection[str], shards: Collection[int] = range(SHARDS)) -> dict[int, str]:
    """A server for each shard, none with more than its even share.

    A server that comes or goes moves little else: each shard ranks the servers by a hash of both and takes
    the first with room, lower shards first.
    """
    if not servers:
        return {}
    share = -(-len(shards) // len(servers))
    room = dict.fromkeys(servers, share)
    assigned: dict[int, str] = {}
    for shard in sorted(shards):
        chosen = rank(shard, (server for server in room if room[server]))[0]
        room[chosen] -= 1
        assigned[shard] = chosen
    return assigned


def rank(shard: int, servers: Iterable[str]) -> list[str]:
    """The servers in the order in which they should own the shard."""
    return sorted(servers, key=lambda server: (_score(shard, server), server), reverse=True)


def _score(shard: int, server: str) -> int:
    return fmix32(fnv1a32(f"{shard}:{server}".encode()))
