"""Reading what scripts left in a store, key by key."""

from __future__ import annotations

from roost.core.events import Entry
from roost.store import scopes
from roost.store.feed import parse_entry
from roost.store.store import Store
from roost.testing import RunningServer


def pairs(flat: list[bytes]) -> dict[str, str]:
    """A flat reply of names and values."""
    return {name.decode(): value.decode() for name, value in zip(flat[::2], flat[1::2], strict=True)}


async def fields_of(store: Store, key: bytes) -> dict[str, str]:
    """A whole hash."""
    return pairs(await store.call("HGETALL", key, key=key))


async def keys_below(store: Store, prefix: bytes) -> dict[str, bytes]:
    """What follows the prefix → the whole key."""
    found = await store.call("KEYS", prefix + b"*", key=prefix)
    return {key.removeprefix(prefix).decode(): key for key in found}


async def whole_feed(store: Store, scope: scopes.Scope) -> list[Entry]:
    key = store.keys.feed(scope)
    return [parse_entry(raw) for raw in await store.call("XRANGE", key, "-", "+", key=key)]


def used_memory(server: RunningServer) -> int:
    """What the server has allocated, in bytes."""
    lines = server.command_reply("INFO", "memory").decode().splitlines()
    return int(next(line for line in lines if line.startswith("used_memory:")).partition(":")[2])
