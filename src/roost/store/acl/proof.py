"""What each role may and may not do, as questions that a store can be asked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from roost.store.acl.patterns import SCOPES, Patterns
from roost.store.acl.rights import Rights
from roost.store.keys import FORMAT, PlainKey, group_of
from roost.store.keys.tokens import TOKENS
from roost.store.keys.waitingroom import STATUS

Access = Literal["RW", "R", ""]
Command = tuple[str, ...]

ANYTHING = "0" * 40
"""The digest of no script: a store that permits it answers NOSCRIPT."""

SOMEBODY_ELSE = "somebody:else"
"""A key, and a channel, that is none of ours."""

HARMFUL: tuple[Command, ...] = (
    ("FLUSHALL",),
    ("FLUSHDB",),
    ("KEYS", "*"),
    ("SCAN", "0"),
    ("CONFIG", "GET", "requirepass"),
    ("CONFIG", "SET", "maxmemory", "1"),
    ("ACL", "LIST"),
    ("ACL", "SETUSER", "roost-gateway", "+@all"),
    ("CLIENT", "LIST"),
    ("CLIENT", "KILL", "TYPE", "normal"),
    ("SCRIPT", "FLUSH"),
    ("FUNCTION", "LOAD", "x"),
    ("MODULE", "LIST"),
    ("MONITOR",),
    ("DEBUG", "SLEEP", "1"),
    ("SHUTDOWN", "NOSAVE"),
    ("SAVE",),
    ("REPLICAOF", "NO", "ONE"),
    ("CLUSTER", "RESET"),
    ("SWAPDB", "0", "1"),
    ("MIGRATE", "host", "6379", "key", "0", "1"),
)
"""What no role has a use for."""

_SHARED = ("leader", "feed", "bell")
_ONE = re.compile(r"\\(.)|\*")


def all_keys(patterns: Patterns) -> Iterator[tuple[str, str]]:
    """(group, pattern) of every key that Roost has."""
    yield "store", patterns.plain(FORMAT)
    for group in SCOPES:
        names = (*(family.name for family in group_of(group).families), *_SHARED)
        yield from ((group, patterns.of(group, name)) for name in names)
    yield "discovery", patterns.job("discovery", "sweep")
    yield from _alone(patterns)


def _alone(patterns: Patterns) -> Iterator[tuple[str, str]]:
    plain: tuple[tuple[str, PlainKey, str], ...] = (("waitingroom", STATUS, "*"), ("tokens", TOKENS, ""))
    for group, key, each in plain:
        yield group, patterns.plain(key) + each


def access(rights: Rights, pattern: str) -> Access:
    if pattern in rights.writes:
        return "RW"
    return "R" if pattern in rights.reads else ""


def sample(pattern: str) -> str:
    """A key that the pattern fits."""
    return _ONE.sub(lambda found: found[1] or "x", pattern)


def reading(key: str) -> Command:
    return ("EVALSHA_RO", ANYTHING, "1", key)


def writing(key: str) -> Command:
    return ("EVALSHA", ANYTHING, "1", key)


def needed(rights: Rights) -> list[Command]:
    """Commands that a user with these rights may give; each of the rights is in one of them."""
    return [
        *(writing(sample(pattern)) for pattern in sorted(rights.writes)),
        *(reading(sample(pattern)) for pattern in sorted(rights.reads)),
        *(("SSUBSCRIBE", sample(pattern)) for pattern in sorted(rights.channels)),
        *(_complete(command, rights) for command in sorted(rights.commands) if "eval" not in command),
    ]


_ALONE: dict[str, Command] = {
    "client|setname": ("roost",),
    "select": ("0",),
    "wait": ("0", "1"),
    "waitaof": ("0", "0", "1"),
}
_WITHOUT_KEY = frozenset({"ping", "info", "time", "role", "asking", "cluster|slots", "cluster|info", *_ALONE})
_OF_CHANNELS = frozenset({"spublish", "ssubscribe", "sunsubscribe"})
_OF_MANY_KEYS = frozenset({"del", "exists", *_OF_CHANNELS})


def _complete(command: str, rights: Rights) -> Command:
    """The command with all of its words, on a key or channel that is permitted.

    NB: a store may not survive to be asked for one with too few: Valkey 9.1 crashes at SET alone.
    """
    words = tuple(command.upper().split("|"))
    if command in _WITHOUT_KEY:
        return words + _ALONE.get(command, ())
    if command in _OF_CHANNELS:
        channel = sample(min(rights.channels, default=""))
        return (*words, channel, "x") if command == "spublish" else (*words, channel)
    key = sample(min(rights.writes or rights.reads))
    return (*words, key) if command in _OF_MANY_KEYS else (*words, key, "0", "0", "0")


def denied(rights: Rights, patterns: Patterns) -> list[Command]:
    """Commands that a user with these rights, and no others, may not give."""
    found = [*HARMFUL, reading(SOMEBODY_ELSE), writing(SOMEBODY_ELSE), ("SSUBSCRIBE", SOMEBODY_ELSE)]
    for _, pattern in all_keys(patterns):
        allowed, key = access(rights, pattern), sample(pattern)
        found += [writing(key)] if allowed != "RW" else []
        found += [reading(key)] if not allowed else []
    return found
