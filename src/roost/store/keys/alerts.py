"""The keys of alerts."""

from __future__ import annotations

from collections.abc import Mapping

from roost.store.keys import Key, KeyFamily, KeyGroup, Keys
from roost.store.scopes import alerts

GROUP = KeyGroup(
    "alerts",
    "roost:",
    "alerts",
    (
        KeyFamily(
            "claims",
            "hash",
            "Which process tells a receiver of an incident, until when; no holder: it was told",
            each=":<digest>",
            ttl_s=86_400,
        ),
    ),
)


def alert_keys(keys: Keys) -> Mapping[str, Key]:
    return keys.of(GROUP, alerts())
