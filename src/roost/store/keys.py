"""Every key of Roost is born here, and nowhere else.

A key is: namespace, stem, tag. The tag in braces is the scope; all keys of a scope share a cluster
slot, so one script may touch all of them. `docs/keys.md` is made from `CATALOGUE`
(`python -m roost.store.keys > docs/keys.md`), and a test keeps it fresh.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NewType

from roost.core.ids import Scope, check_id, check_name, check_scope

Key = NewType("Key", bytes)
SdPart = Literal[
    "meta",
    "index",
    "leases",
    "names",
    "gone",
    "services",
    "overrides",
    "checkers",
    "votes",
    "ill",
    "records",
    "beats",
    "history",
]
QueuePart = Literal[
    "world", "servers", "offers", "grace", "waiting", "away", "people", "granted", "inside", "parties"
]
QUEUE_PREFIXES = ("people", "granted", "inside", "parties")
SD_PREFIXES = ("records", "beats", "history")
KeyType = Literal["string", "hash", "set", "zset", "stream", "list", "channel"]


@dataclass(frozen=True, slots=True)
class KeyFamily:
    """One row of the key glossary."""

    pattern: str
    type: KeyType
    tag: str
    """Which scope the braces hold; empty for the keys that stand alone."""
    meaning: str
    stands_for: str = ""
    """The name in the design documents that it takes the place of."""


CATALOGUE = (
    KeyFamily("roost:tokens", "hash", "", "id → name, scopes, digest and time of an API token, JSON"),
    KeyFamily(
        "roost:format", "string", "", "Number of the data format; checked before anything else is read"
    ),
    KeyFamily(
        "roost:leader:{scope}",
        "hash",
        "scope",
        "Who leads the scope: holder, epoch, until, and its lease clock",
    ),
    KeyFamily(
        "roost:feed:{scope}",
        "stream",
        "scope",
        "Every change of the scope; entry id `<rev>-0`, fields at, prevAt, …",
    ),
    KeyFamily(
        "roost:bell:{scope}",
        "channel",
        "scope",
        "Shard channel that rings when the feed has grown",
        "`pvp:server:events`; the Kafka/SQS/BullMQ brokers",
    ),
    KeyFamily(
        "service:meta:{sd}",
        "hash",
        "sd",
        "Lease clock of discovery, the last life given, and how many ended in this window",
    ),
    KeyFamily(
        "service:index:{sd}",
        "hash",
        "sd",
        "instanceId → place, life, nonce, name, ttl, capacity; an id that is not here does not exist",
        "`pvp:servers`",
    ),
    KeyFamily(
        "service:leases:{sd}",
        "zset",
        "sd",
        "instanceId → lease time at which its silence makes it suspect, or, if it is, dead",
        "the TTL of `service:instance:{instanceId}` and `pvp:server:{server_id}`",
    ),
    KeyFamily(
        "service:names:{sd}", "hash", "sd", "type:serverId → instanceId of the live instance that bears it"
    ),
    KeyFamily(
        "service:gone:{sd}",
        "hash",
        "sd",
        "instanceId → tombstone: cause, life, time, place; kept for an hour",
    ),
    KeyFamily("service:services:{sd}", "set", "sd", "Places (type:group) with live instances"),
    KeyFamily(
        "service:overrides:{sd}",
        "hash",
        "sd",
        "type:serverId or instanceId → what the operator ordered, JSON",
    ),
    KeyFamily("service:checkers:{sd}", "zset", "sd", "Health checker → lease time until which it counts"),
    KeyFamily("service:votes:{sd}", "hash", "sd", "Health checker → whom it finds unhealthy: id and life"),
    KeyFamily(
        "service:ill:{sd}", "hash", "sd", "instanceId → the life in which most checkers found it unhealthy"
    ),
    KeyFamily(
        "service:records:{sd}:<type>:<group>",
        "hash",
        "sd",
        "instanceId → what it registered, JSON",
        "`service:instance:{instanceId}`, `service:group:{type}:{group}`, `pvp:server:{server_id}`",
    ),
    KeyFamily(
        "service:beats:{sd}:<type>:<group>",
        "hash",
        "sd",
        "instanceId → its last beat: status, load, time, performance, JSON",
        "`lastHeartbeat` and `performance` of `service:instance:{instanceId}`",
    ),
    KeyFamily(
        "service:history:{sd}:<instanceId>",
        "list",
        "sd",
        "The last 32 things that happened to it; kept a day after its end",
    ),
    KeyFamily(
        "queue:world:{world}",
        "hash",
        "world",
        "Numbers, mode, message and lease clock of a waiting room; the last place issued; the leader's fence",
    ),
    KeyFamily(
        "queue:servers:{world}",
        "hash",
        "world",
        "The ledger: server id → life, capacity, people reported, consumes, report, doubt, url",
        "`server:status`, which is exported for others to read",
    ),
    KeyFamily(
        "queue:waiting:{world}<:class>",
        "zset",
        "world",
        "userId → place in the order, a number that the store issues; the base class has no suffix",
        "`queue:waiting`",
    ),
    KeyFamily(
        "queue:away:{world}<:class>",
        "zset",
        "world",
        "userId → place, of those who do not call just now; they keep it and block nobody",
    ),
    KeyFamily("queue:offers:{world}", "zset", "world", "userId → lease time at which the ticket ends"),
    KeyFamily(
        "queue:grace:{world}", "zset", "world", "userId → lease time until which a place inside is held"
    ),
    KeyFamily(
        "queue:people:{world}:<userId>",
        "hash",
        "world",
        "State, place, ticket, nickname, region, when the next call is due; expires 10 min after they left",
        "`queue:waiting:meta:<userId>`, `queue:user-status:<userId>`",
    ),
    KeyFamily(
        "queue:granted:{world}:<tid>",
        "string",
        "world",
        "Who a ticket is for, JSON, for looking: only consume admits",
        "`queue:granted:<ticketId>`",
    ),
    KeyFamily(
        "queue:inside:{world}:<serverId>:<life>",
        "set",
        "world",
        "userIds that this life of the server let in; `…:ended` holds lives that were dropped, for an hour; "
        "`…:<life>:asking` who is inside and asks to come in, until the server says whether that is still so",
    ),
    KeyFamily(
        "queue:parties:{world}:<party>",
        "hash",
        "world",
        "The place that the members of a party share; forgotten a day after the last of them came",
    ),
    KeyFamily(
        "server:status",
        "hash",
        "",
        "max_cap, current_users, region, version: written every 5 s for others, never read by us",
        "`server:status`",
    ),
)


DISCOVERY = Scope("sd")
"""Discovery is one scope: one revision, one feed for all types and groups."""

_SD = "{sd}"


class Keys:
    """Makes the keys of one namespace. `sd_prefix` is discovery's own, for stores that others use too."""

    def __init__(self, namespace: str = "", sd_prefix: str = "service:") -> None:
        self._prefix = f"{check_name(namespace, 'namespace')}:" if namespace else ""
        self._sd_prefix = check_id(sd_prefix, "key prefix")

    def format(self) -> Key:
        return self._key("roost:format")

    def tokens(self) -> Key:
        return self._key("roost:tokens")

    def leader(self, scope: Scope) -> Key:
        return self._key(f"roost:leader:{_tag(scope)}")

    def feed(self, scope: Scope) -> Key:
        return self._key(f"roost:feed:{_tag(scope)}")

    def bell(self, scope: Scope) -> Key:
        return self._key(f"roost:bell:{_tag(scope)}")

    def sd(self, part: SdPart) -> Key:
        """A key of discovery; those that end in a colon are prefixes."""
        return self._key(f"{self._sd_prefix}{part}:{_SD}{':' if part in SD_PREFIXES else ''}")

    def queue(self, world: Scope, part: QueuePart) -> Key:
        """A key of a world's waiting room; people, granted and inside are prefixes, so are the lines."""
        return self._key(f"queue:{part}:{_tag(world)}{':' if part in QUEUE_PREFIXES else ''}")

    def server_status(self) -> Key:
        return self._key("server:status")

    def _key(self, rest: str) -> Key:
        return Key((self._prefix + rest).encode())


def _tag(scope: Scope) -> str:
    return "{" + check_scope(scope) + "}"


def glossary() -> str:
    """The text of docs/keys.md."""
    lines = [
        "# Keys",
        "",
        "Every key that Roost writes. `ROOST_NAMESPACE`, where it is set, stands before all of them.",
        "The braces are literal: they are the cluster hash tag, and what they hold is the scope.",
        "",
        "Made from `src/roost/store/keys.py` by `python -m roost.store.keys > docs/keys.md`.",
        "",
        "| Key | Type | Meaning | In the design documents |",
        "|---|---|---|---|",
    ]
    lines += [f"| `{k.pattern}` | {k.type} | {k.meaning} | {k.stands_for} |" for k in CATALOGUE]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(glossary(), end="")
