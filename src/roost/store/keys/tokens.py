"""The key of the API tokens."""

from __future__ import annotations

from roost.store.keys import PlainKey

TOKENS = PlainKey("roost:tokens", "hash", "id → name, scopes, digest and time of an API token, JSON")
