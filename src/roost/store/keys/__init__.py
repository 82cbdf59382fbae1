"""Every key of Roost is born here, and nowhere else: a file for each capability declares its own.

A key is: namespace, stem, name, tag. The tag in braces is the scope's; all keys of a scope share a cluster
slot, so one script may touch all of them. The header of a script names the group whose keys it takes
(`-- KEYS @discovery`), and `docs/keys.md` is made from all groups
(`python -m roost.store.keys.glossary > docs/keys.md`; a test keeps it fresh).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Literal, NewType

from roost.core.ids import check_id, check_name
from roost.store.scopes import Scope

Key = NewType("Key", bytes)
KeyType = Literal["string", "hash", "set", "zset", "stream", "list", "channel"]


@dataclass(frozen=True, slots=True)
class KeyFamily:
    """One row of the key glossary."""

    name: str
    """As scripts call it; the second part of the key."""
    type: KeyType
    meaning: str
    stands_for: str = ""
    """The name in the design documents that it takes the place of."""
    each: str = ""
    """What a script appends, such as `:<userId>`: then the key is a prefix."""
    ttl_s: int | None = None
    """How long it lasts once it may go; None: until a script deletes it. No rule depends on it."""

    @property
    def is_prefix(self) -> bool:
        return bool(self.each)


@dataclass(frozen=True, slots=True)
class KeyGroup:
    """The keys of one capability in one scope."""

    name: str
    stem: str
    tag: str
    """What the braces hold, for the glossary."""
    families: tuple[KeyFamily, ...]

    def family(self, name: str) -> KeyFamily | None:
        return next((family for family in self.families if family.name == name), None)


@dataclass(frozen=True, slots=True)
class PlainKey:
    """A key that stands alone, outside of every scope."""

    name: str
    type: KeyType
    meaning: str
    stands_for: str = ""


SCOPE = KeyGroup(
    "scope",
    "roost:",
    "scope",
    (
        KeyFamily("leader", "hash", "Who leads: holder, epoch, until, and its lease clock; one for each job"),
        KeyFamily("feed", "stream", "Every change of the scope; entry id `<rev>-0`, fields at, prevAt, …"),
        KeyFamily(
            "bell",
            "channel",
            "Shard channel that rings when the feed has grown",
            "`pvp:server:events`; the Kafka/SQS/BullMQ brokers",
        ),
    ),
)
"""What every scope has. The kind of the scope stands before its tag: `roost:feed:world:{main}`."""

FORMAT = PlainKey("roost:format", "string", "Number of the data format; checked before anything else is read")


@cache
def group_of(capability: str) -> KeyGroup:
    """The keys that `roost/store/keys/<capability>.py` declares."""
    found = import_module(f"roost.store.keys.{capability}").GROUP
    assert isinstance(found, KeyGroup)
    return found


class Keys:
    """Makes the keys of one namespace. `sd_prefix` is discovery's own, for stores that others use too."""

    def __init__(self, namespace: str = "", sd_prefix: str = "service:") -> None:
        self._prefix = f"{check_name(namespace, 'namespace')}:" if namespace else ""
        self._stems = {"discovery": check_id(sd_prefix, "key prefix")}

    def plain(self, key: PlainKey) -> Key:
        return self._key(key.name)

    def leader(self, scope: Scope, job: str = "") -> Key:
        """Who leads the scope; where there is more than one thing to lead, in which job."""
        return self._key(f"roost:leader:{scope.kind}:{_tag(scope)}" + (f":{check_name(job)}" if job else ""))

    def feed(self, scope: Scope) -> Key:
        return self._key(f"roost:feed:{scope.kind}:{_tag(scope)}")

    def bell(self, scope: Scope) -> Key:
        return self._key(f"roost:bell:{scope.kind}:{_tag(scope)}")

    def of(self, group: KeyGroup, scope: Scope) -> Mapping[str, Key]:
        """The group's keys in this scope by name; leader, feed and bell of the scope among them."""
        stem = self._stems.get(group.name, group.stem)
        made = {
            family.name: self._key(f"{stem}{family.name}:{_tag(scope)}{family.each.partition('<')[0]}")
            for family in group.families
        }
        shared = {"leader": self.leader(scope), "feed": self.feed(scope), "bell": self.bell(scope)}
        return made | shared

    def _key(self, rest: str) -> Key:
        return Key((self._prefix + rest).encode())


def _tag(scope: Scope) -> str:
    return "{" + check_name(scope.tag, "scope") + "}"
