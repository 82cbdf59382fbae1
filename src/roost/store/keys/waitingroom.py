"""The keys of a world's waiting room."""

from __future__ import annotations

from collections.abc import Mapping

from roost.store.keys import Key, KeyFamily, KeyGroup, Keys, PlainKey
from roost.store.scopes import Scope

GROUP = KeyGroup(
    "waitingroom",
    "queue:",
    "world",
    (
        KeyFamily(
            "world",
            "hash",
            "Numbers, mode, message and lease clock; the last place issued; signs of leader and gateways",
        ),
        KeyFamily(
            "servers",
            "hash",
            "The ledger: server id → life, capacity, reported, counted, consumed, number, doubt, open, url",
            "`server:status`, which is exported for others to read",
        ),
        KeyFamily(
            "known",
            "hash",
            "Server id → the life that the leader wrote, and whether it takes new users",
        ),
        KeyFamily(
            "pending",
            "hash",
            "Reports of lives that the leader has not written, packed as in the ledger; at most 256",
        ),
        KeyFamily(
            "pending_at",
            "zset",
            "Server id → lease time of the last report that waits; it ends after a minute",
        ),
        KeyFamily("offers", "zset", "userId → lease time at which the ticket ends"),
        KeyFamily("grace", "zset", "userId → lease time until which a place inside is held"),
        KeyFamily(
            "waiting",
            "zset",
            "userId → place in the order, a number that the store issues; the base class has no suffix",
            "`queue:waiting`",
            each="<:class>",
        ),
        KeyFamily(
            "away",
            "zset",
            "userId → place, of those who do not call just now; they keep it and block nobody",
            each="<:class>",
        ),
        KeyFamily(
            "people",
            "hash",
            "State, place, ticket, nickname, region, when the next call is due; expires after they left",
            "`queue:waiting:meta:<userId>`, `queue:user-status:<userId>`",
            each=":<userId>",
            ttl_s=600,
        ),
        KeyFamily(
            "granted",
            "string",
            "Who a ticket is for, JSON, for looking: only consume admits; expires with the ticket",
            "`queue:granted:<ticketId>`",
            each=":<tid>",
        ),
        KeyFamily(
            "inside",
            "set",
            "userIds that this life of the server let in",
            each=":<serverId>:<life>",
        ),
        KeyFamily(
            "ended",
            "zset",
            "Lives of the server that are over → when that was known, µs; the last hundred",
            each=":<serverId>",
            ttl_s=3600,
        ),
        KeyFamily(
            "asking",
            "set",
            "Who is inside and asks to come in, until the server says whether that is still so",
            each=":<serverId>:<life>",
            ttl_s=600,
        ),
        KeyFamily(
            "parties",
            "hash",
            "The place that the members of a party share; forgotten after the last of them came",
            each=":<party>",
            ttl_s=600,
        ),
    ),
)

STATUS = PlainKey(
    "server:status",
    "hash",
    "max_cap, current_users, region, version: written every 5 s for others, never read by us; of the first "
    "world, and of each as `server:status:<world>`",
    "`server:status`",
)


def status_keys(keys: Keys, world: str, *, is_first: bool) -> list[Key]:
    """Where a world's numbers are exported to."""
    own = Key(keys.plain(STATUS) + f":{world}".encode())
    return [keys.plain(STATUS), own] if is_first else [own]


def world_keys(keys: Keys, world: Scope) -> Mapping[str, Key]:
    return keys.of(GROUP, world)
