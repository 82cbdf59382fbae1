"""Whether the store can give what an order server shall promise; asked before it serves anybody."""

from __future__ import annotations

from roost.core.errors import StartFailed, StoreRefused
from roost.lanes.commands import Durability
from roost.store.acl.examine import refused
from roost.store.store import Store

NEEDS_AOF = "the store keeps no append-only file"


async def check_durability(store: Store, durability: Durability) -> None:
    """`StartFailed`, with what to change, where the store cannot give this level."""
    if durability is Durability.MEMORY:
        return
    if durability in (Durability.EVERYSEC, Durability.FSYNC):
        persistence = _fields(await store.call("INFO", "persistence", idempotent=True))
        if persistence.get("aof_enabled") != "1":
            raise _refused(durability, NEEDS_AOF, "set `appendonly yes`, or choose lanes.durability = memory")
    if durability is Durability.EVERYSEC and await _appendfsync(store) == "no":
        raise _refused(durability, "the store never syncs its append-only file", "set `appendfsync everysec`")
    if durability is Durability.FSYNC:
        await _check_waitaof(store)
    if durability is Durability.REPLICA:
        replication = _fields(await store.call("INFO", "replication", idempotent=True))
        if int(replication.get("connected_slaves", "0")) < 1:
            raise _refused(durability, "the store has no replica", "add one, or choose another level")


async def _check_waitaof(store: Store) -> None:
    try:
        await store.call("WAITAOF", 0, 0, 1)
    except StoreRefused as error:
        raise _refused(
            Durability.FSYNC,
            f"it does not know WAITAOF ({error.message})",
            "use Redis or Valkey 7.2 or later",
        ) from error


async def _appendfsync(store: Store) -> str:
    """Empty where the store does not let us look, as it does not let the user of the role.

    Asked for, not tried: `ACL LOG` is for what should not happen.
    """
    try:
        if await refused(store, [("CONFIG", "GET", "appendfsync")]):
            return ""
        found = await store.call("CONFIG", "GET", "appendfsync", idempotent=True)
    except StoreRefused:
        return ""
    return found[1].decode() if isinstance(found, list) and len(found) > 1 else ""


def _refused(durability: Durability, why: str, hint: str) -> StartFailed:
    return StartFailed(f"durability {durability.word} cannot be promised: {why}", hint=hint)


def _fields(info: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in info.decode().splitlines())
    return {name: value.strip() for name, colon, value in lines if colon}
