"""The keys of one partition of bindings: which server holds a user."""

from __future__ import annotations

from collections.abc import Mapping

from roost.store.keys import Key, KeyFamily, KeyGroup, Keys
from roost.store.scopes import Scope

GROUP = KeyGroup(
    "binding",
    "bind:",
    "partition",
    (
        KeyFamily(
            "partition",
            "hash",
            "Lease clock; by type the leader's last news, grants by cause and refusals",
        ),
        KeyFamily(
            "users",
            "hash",
            "s l owner (server id, life), e epoch, p the one before, st A held, M moving, R released, since, "
            "why; of a move d dl ne m dt. Only a released one expires",
            "`binders`, the map of one server's users",
            each=":<type>:<userId>",
            ttl_s=86_400,
        ),
        KeyFamily(
            "servers",
            "hash",
            "`<type>:<serverId>` → life, open, capacity, lease end, first seen, version",
            "`availableEntities`",
        ),
        KeyFamily(
            "ranking",
            "zset",
            "Server id → users; 10^12 more if it is full, 2 × 10^12 if it takes no new users",
            each=":<type>",
        ),
        KeyFamily(
            "binders",
            "zset",
            "The users that this life of the server holds, with seats taken for a move; score 0",
            "`binders`",
            each=":<type>:<serverId>:<life>",
        ),
        KeyFamily("seen", "zset", "userId → lease time at which the binding was last used", each=":<type>"),
        KeyFamily(
            "buried",
            "zset",
            "Lives of the server that are over → when that was known, µs; the last hundred",
            each=":<type>:<serverId>",
            ttl_s=86_400,
        ),
        KeyFamily("orphans", "set", "`<type>:<serverId>:<life>` that ended and may still hold users"),
        KeyFamily(
            "journal",
            "stream",
            "Acknowledged messages that the database may lack; id `<sequence>-0`, e epoch, p payload; "
            "expires once the database has all of it",
            each=":<type>:<userId>",
            ttl_s=86_400,
        ),
        KeyFamily(
            "moves",
            "list",
            "What became of the last twenty attempts to move the user (JSON), newest first",
            each=":<type>:<userId>",
            ttl_s=604_800,
        ),
    ),
)


def partition_keys(keys: Keys, partition: Scope) -> Mapping[str, Key]:
    return keys.of(GROUP, partition)
