"""The keys of one shard of ordered work: its log, its snapshot, and the index of orders by their ids."""

from __future__ import annotations

from collections.abc import Mapping

from roost.store.keys import Key, KeyFamily, KeyGroup, Keys
from roost.store.scopes import Scope

GROUP = KeyGroup(
    "lanes",
    "orders:",
    "shard",
    (
        KeyFamily(
            "log",
            "stream",
            "The commands of the shard in their order; id `<epoch>-<seq>`, so the store refuses a former "
            "owner; the newest entry is never trimmed",
        ),
        KeyFamily(
            "tail", "string", "Where the log ends, `<epoch>-<seq>:<last seq>`: what the next entry follows"
        ),
        KeyFamily(
            "snapshot",
            "hash",
            "Part → its bytes; `@epoch @seq` of the last command in it, `@digest` of the state, `@ids` of "
            "the id clock",
        ),
        KeyFamily(
            "staged",
            "hash",
            "Parts of a snapshot that is still being sent; an empty one is gone; `@at` says of which",
            ttl_s=3600,
        ),
        KeyFamily(
            "index",
            "string",
            "`<shard>:<lane>:<symbol>` of an order; in the scope that bits 18 to 21 of its id name",
            "`orderIndex`",
            each=":<orderId>",
            ttl_s=604_800,
        ),
    ),
)


def shard_keys(keys: Keys, shard: Scope) -> Mapping[str, Key]:
    return keys.of(GROUP, shard)
