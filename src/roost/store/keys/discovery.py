"""The keys of discovery."""

from __future__ import annotations

from collections.abc import Mapping

from roost.store.keys import Key, KeyFamily, KeyGroup, Keys
from roost.store.scopes import discovery

GROUP = KeyGroup(
    "discovery",
    "service:",
    "sd",
    (
        KeyFamily(
            "meta",
            "hash",
            "Lease clock of discovery, the last life given, and how many ended in each of the last seconds",
        ),
        KeyFamily(
            "index",
            "hash",
            "instanceId → service, life, nonce, name, ttl, capacity; an id that is not here does not exist",
            "`pvp:servers`",
        ),
        KeyFamily(
            "leases",
            "zset",
            "instanceId → lease time at which its silence makes it suspect, or, if it is, dead",
            "the TTL of `service:instance:{instanceId}` and `pvp:server:{server_id}`",
        ),
        KeyFamily("names", "hash", "type:serverId → instanceId of the live instance that has it"),
        KeyFamily(
            "gone", "hash", "instanceId → tombstone: cause, life, time, service, lease time; kept for an hour"
        ),
        KeyFamily("services", "set", "Services (type:group) with live instances"),
        KeyFamily(
            "overrides", "hash", "type:serverId or instanceId → the override that an operator set, JSON"
        ),
        KeyFamily("panics", "set", "Services (type:group) of which more than half are suspect"),
        KeyFamily("checkers", "zset", "Health checker → lease time until which it counts"),
        KeyFamily("votes", "hash", "instanceId → life, and what each health checker that spoke finds of it"),
        KeyFamily(
            "records",
            "hash",
            "instanceId → what it registered, JSON",
            "`service:instance:{instanceId}`, `service:group:{type}:{group}`, `pvp:server:{server_id}`",
            each=":<type>:<group>",
        ),
        KeyFamily(
            "beats",
            "hash",
            "instanceId → its last beat, packed by `beat_pack.lua`: status, load, time, performance",
            "`lastHeartbeat` and `performance` of `service:instance:{instanceId}`",
            each=":<type>:<group>",
        ),
        KeyFamily("suspects", "set", "instanceIds of the service that are suspect", each=":<type>:<group>"),
        KeyFamily(
            "history",
            "list",
            "The last 32 things that happened to it; expires after its end",
            each=":<instanceId>",
            ttl_s=86_400,
        ),
    ),
)


def discovery_keys(keys: Keys) -> Mapping[str, Key]:
    return keys.of(GROUP, discovery())
