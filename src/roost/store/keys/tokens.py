"""The keys of the API tokens and of the sessions that they began."""

from __future__ import annotations

from roost.store.keys import PlainKey

TOKENS = PlainKey("roost:tokens", "hash", "id → name, scopes, digest and time of an API token, JSON")
ENDED_SESSIONS = PlainKey(
    "roost:sessions:ended",
    "zset",
    "sessions of browsers that a logout ended: nonce → Unix seconds at which the cookie ends by itself",
)
