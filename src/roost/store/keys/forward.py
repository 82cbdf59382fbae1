"""The keys of a forwarder: how far it has told other systems what happened."""

from __future__ import annotations

from collections.abc import Mapping

from roost.store.keys import Key, KeyFamily, KeyGroup, Keys
from roost.store.scopes import forward

GROUP = KeyGroup(
    "forward",
    "forward:",
    "forwarder",
    (KeyFamily("marks", "hash", "Source → `<rev>-<at>` of the last entry of its feed that was told"),),
)


def forward_keys(keys: Keys, name: str) -> Mapping[str, Key]:
    return keys.of(GROUP, forward(name))
