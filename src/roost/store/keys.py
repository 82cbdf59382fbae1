"""Every key of Roost is born here, and nowhere else.

A key is: namespace, stem, tag. The tag in braces is the scope; all keys of a scope share a cluster
slot, so one script may touch all of them. `docs/keys.md` is made from `CATALOGUE`
(`python -m roost.store.keys > docs/keys.md`), and a test keeps it fresh.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NewType

from roost.core.ids import Scope, check_name, check_scope

Key = NewType("Key", bytes)
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
)


class Keys:
    """Makes the keys of one namespace."""

    def __init__(self, namespace: str = "") -> None:
        self._prefix = f"{check_name(namespace, 'namespace')}:" if namespace else ""

    def format(self) -> Key:
        return self._key("roost:format")

    def leader(self, scope: Scope) -> Key:
        return self._key(f"roost:leader:{_tag(scope)}")

    def feed(self, scope: Scope) -> Key:
        return self._key(f"roost:feed:{_tag(scope)}")

    def bell(self, scope: Scope) -> Key:
        return self._key(f"roost:bell:{_tag(scope)}")

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
