"""What a user of the store may do, and the rules that say so."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files

from roost.store.acl.patterns import Patterns
from roost.store.contract import Contract, parse_script
from roost.store.scripts import SHARED

_CALLED = re.compile(r"redis\.p?call\((?:'([A-Z]+)'|(.{0,20}))")
READING = frozenset(
    {"EXISTS", "GET", "HGET", "HGETALL", "HLEN", "HMGET", "LRANGE", "SMEMBERS"}
    | {"XRANGE", "XREVRANGE", "ZCARD", "ZRANGE", "ZREVRANGE"}
)
"""Plain commands that change nothing; any other writes."""


@dataclass(frozen=True, slots=True)
class Rights:
    """Patterns of keys and channels, and names of commands (`client|setname`)."""

    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    """These may be read too: a script that writes is refused a key that its user may not read."""
    channels: frozenset[str] = frozenset()
    commands: frozenset[str] = frozenset()

    def __or__(self, other: Rights) -> Rights:
        writes = self.writes | other.writes
        return Rights(
            (self.reads | other.reads) - writes,
            writes,
            self.channels | other.channels,
            self.commands | other.commands,
        )

    def rules(self) -> list[str]:
        """The words of an ACL rule, in a settled order; nothing that is not named is permitted."""
        return [
            *("resetkeys", "resetchannels", "-@all"),
            *(f"~{pattern}" for pattern in sorted(self.writes)),
            *(f"%R~{pattern}" for pattern in sorted(self.reads)),
            *(f"&{pattern}" for pattern in sorted(self.channels)),
            *(f"+{command}" for command in sorted(self.commands)),
        ]


def union(rights: Iterable[Rights]) -> Rights:
    return functools.reduce(Rights.__or__, rights, Rights())


@functools.cache
def contract_of(capability: str, name: str) -> Contract:
    """A script of the package; `capability` is the folder that holds it."""
    folder = files(f"roost.{capability}") / "lua"
    return parse_script(name, folder.joinpath(f"{name}.lua").read_text(encoding="utf-8"), folder, SHARED)


def commands_of(contract: Contract) -> frozenset[str]:
    """What the script calls, its functions included. `ValueError` for a command that is not a literal."""
    found = _CALLED.findall(contract.source)
    if hidden := [rest for literal, rest in found if not literal]:
        raise ValueError(f"{contract.name}: a command that nobody can read: {hidden[0]}")
    return frozenset(literal.lower() for literal, _ in found)


def script_rights(capability: str, name: str, patterns: Patterns) -> Rights:
    """Of one script: every key of its contract, as the store asks for it before the script runs."""
    contract = contract_of(capability, name)
    named = [(p, patterns.of(p.group, p.name)) for p in contract.keys if p.group]
    keys = frozenset(pattern for _, pattern in named)
    channels = frozenset(pattern for key, pattern in named if key.type == "channel")
    commands = commands_of(contract)
    return Rights(
        reads=frozenset() if contract.writes else keys,
        writes=keys if contract.writes else frozenset(),
        channels=channels if "spublish" in commands else frozenset(),
        commands=commands,
    )


def plain_rights(command: str, pattern: str) -> Rights:
    """Of a command on a key, without a script."""
    held, named = frozenset({pattern}), frozenset({command.lower()})
    return Rights(reads=held, commands=named) if command in READING else Rights(writes=held, commands=named)
