"""The keys of a group as an ACL names them: one pattern for all scopes of a kind."""

from __future__ import annotations

import re

from roost.store.keys import SCOPE, KeyFamily, KeyGroup, Keys, PlainKey, group_of
from roost.store.scopes import Kind

SCOPES: dict[str, tuple[Kind, str]] = {
    "discovery": ("discovery", "sd"),
    "waitingroom": ("world", "*"),
    "binding": ("binding", "b*"),
    "drain": ("drain", "drain"),
    "lanes": ("shard", "o*"),
    "placement": ("lanes", "orders"),
    "alerts": ("alerts", "alerts"),
    "audit": ("audit", "audit"),
    "forward": ("forward", "forward-*"),
}
"""Group of keys → the kind of its scopes, and what their braces hold."""

_GLOB = re.compile(r"([*?\[\]\\])")


class Patterns:
    """The patterns of one namespace."""

    def __init__(self, namespace: str = "", sd_prefix: str = "service:") -> None:
        self.keys = Keys(namespace, sd_prefix)
        self._prefix = _literal(f"{namespace}:" if namespace else "")
        self._stems = {"discovery": _literal(sd_prefix)}

    def of(self, group: str, family: str) -> str:
        """Of one family of a group, or of `leader`, `feed` or `bell` of its scopes."""
        declared = group_of(group)
        own = declared.family(family)
        if own is not None:
            return self._own(declared, own)
        if SCOPE.family(family) is None:
            raise KeyError(f"store/keys/{group}.py declares no key {family!r}")
        kind, tag = SCOPES[group]
        return f"{self._prefix}{SCOPE.stem}{family}:{kind}:{{{tag}}}"

    def job(self, group: str, job: str) -> str:
        """Who leads one job of the scope."""
        return f"{self.of(group, 'leader')}:{job}"

    def plain(self, key: PlainKey) -> str:
        return self._prefix + key.name

    def _own(self, group: KeyGroup, family: KeyFamily) -> str:
        stem, tag = self._stems.get(group.name, group.stem), SCOPES[group.name][1]
        each = f"{family.each.partition('<')[0]}*" if family.is_prefix else ""
        return f"{self._prefix}{stem}{family.name}:{{{tag}}}{each}"


def _literal(text: str) -> str:
    return _GLOB.sub(r"\\\1", text)
