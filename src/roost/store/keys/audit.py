"""The keys of the audit log: none of its own, its entries are the feed of its scope."""

from __future__ import annotations

from collections.abc import Mapping

from roost.store.keys import Key, KeyGroup, Keys
from roost.store.scopes import audit

GROUP = KeyGroup("audit", "roost:", "audit", ())


def audit_keys(keys: Keys) -> Mapping[str, Key]:
    return keys.of(GROUP, audit())
