"""The key that all shards of ordered work share: the symbols that are not where their hash puts them."""

from __future__ import annotations

from collections.abc import Mapping

from roost.store.keys import Key, KeyFamily, KeyGroup, Keys
from roost.store.scopes import lanes

GROUP = KeyGroup(
    "placement",
    "orders:",
    "orders",
    (
        KeyFamily(
            "placement",
            "hash",
            "Symbol → `shard:lane`, on the move `shard:lane>shard:lane:moveId`; `@version` of the table, "
            "`@selector` that places all others",
        ),
    ),
)


def placement_keys(keys: Keys) -> Mapping[str, Key]:
    return keys.of(GROUP, lanes())
