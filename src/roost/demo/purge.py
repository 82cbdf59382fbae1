"""Taking the demo out of the store: its instances, its world, its bindings, its jobs, its shards.

Only names of the demo are touched, and only those shards that were empty before it came. Nothing of it may
run any more.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable

from roost.demo.names import ENTITY, PREFIX, TYPES, WORLD
from roost.lanes.ids import SHARDS
from roost.store.keys.binding import partition_keys
from roost.store.keys.discovery import discovery_keys
from roost.store.keys.drain import drain_keys
from roost.store.keys.lanes import shard_keys
from roost.store.keys.placement import placement_keys
from roost.store.keys.waitingroom import status_keys, world_keys
from roost.store.scopes import partition, shard, world
from roost.store.store import Store

PAGE = 1000


async def purge(store: Store, shards: Collection[int], partitions: int) -> None:
    """Forget everything of the demo; `shards` are those that it used."""
    await _purge_discovery(store)
    await _purge_jobs(store)
    for number in range(partitions):
        await _purge_bindings(store, number)
    exact, prefixes = _whole_scopes(store, [n for n in shards if await _is_ours(store, n)])
    await _delete(store, [key async for key in _found(store, exact, prefixes)])
    if shards and len(await untouched_shards(store, range(SHARDS))) == SHARDS:
        await _purge_shared_by_shards(store)


async def erase_shard(store: Store, number: int) -> None:
    """Forget the orders of a shard, and not who owns it."""
    keys = shard_keys(store.keys, shard(number))
    exact = set[bytes](keys[name] for name in ("log", "tail", "snapshot", "staged"))
    await _delete(store, [key async for key in _found(store, exact, (keys["index"],))])


async def untouched_shards(store: Store, numbers: Iterable[int]) -> list[int]:
    """Those that nobody has ever owned: a log, once begun, keeps its newest entry."""
    free = []
    for number in numbers:
        keys = shard_keys(store.keys, shard(number))
        held = await store.call("EXISTS", keys["log"], keys["snapshot"], key=keys["log"], idempotent=True)
        free += [] if held else [number]
    return free


async def _purge_shared_by_shards(store: Store) -> None:
    """Nobody else has served orders: the table of places, if nothing is pinned, and the clocks of leases."""
    table = placement_keys(store.keys)
    pinned = await _fields(store, table["placement"], lambda field, _: not field.startswith(b"@"))
    leases = [shard_keys(store.keys, shard(number))["leader"] for number in range(SHARDS)]
    await _delete(store, [*leases, *([] if pinned else [table["placement"], table["feed"]])])


async def _is_ours(store: Store, number: int) -> bool:
    """Whether nobody but the demo owns the shard, or owned it last."""
    key = shard_keys(store.keys, shard(number))["leader"]
    server = await store.call("HGET", key, "server", key=key, idempotent=True) or b""
    return not server or server.startswith(PREFIX.encode())


def _whole_scopes(store: Store, shards: Collection[int]) -> tuple[set[bytes], tuple[bytes, ...]]:
    """Keys of scopes that are the demo's alone: exactly these, and those that begin with these."""
    exact = set[bytes](status_keys(store.keys, WORLD, is_first=False))
    prefixes = list[bytes]()
    scopes = [world_keys(store.keys, world(WORLD)), *(shard_keys(store.keys, shard(n)) for n in shards)]
    for keys in scopes:
        exact.update(keys.values())
        prefixes += [key for key in keys.values() if key.endswith(b":")]
    waiting = world_keys(store.keys, world(WORLD))
    prefixes += [waiting["waiting"], waiting["away"]]  # with the class after a colon, or nothing
    prefixes.append(store.keys.leader(world(WORLD)))
    return exact, tuple(prefixes)


async def _purge_discovery(store: Store) -> None:
    keys = discovery_keys(store.keys)
    services = tuple(f"{type_}:".encode() for type_ in TYPES)

    def is_of_demo(_: bytes, entry: bytes) -> bool:
        return entry.startswith(services)

    def was_of_demo(_: bytes, tombstone: bytes) -> bool:
        return tombstone.split(b"\t")[3:4] != [] and tombstone.split(b"\t")[3].startswith(services)

    live, gone = (
        await _fields(store, keys["index"], is_of_demo),
        await _fields(store, keys["gone"], was_of_demo),
    )
    ids = {*live, *gone}
    for name in ("index", "gone", "votes", "overrides"):
        await _drop(store, "HDEL", keys[name], ids)
    await _drop(store, "ZREM", keys["leases"], ids)
    for name in ("names", "overrides"):
        named = await _fields(store, keys[name], lambda field, _: field.startswith(services))
        await _drop(store, "HDEL", keys[name], named)
    for name in ("services", "panics"):
        members = await store.call("SMEMBERS", keys[name], key=keys[name], idempotent=True)
        await _drop(store, "SREM", keys[name], [one for one in members if one.startswith(services)])
    mine = tuple(keys[name] + service for name in ("records", "beats", "suspects") for service in services)
    histories = [(keys["history"] + one) for one in ids]
    await _delete(store, [*histories, *[key async for key in _found(store, set(), mine)]])


async def _purge_bindings(store: Store, number: int) -> None:
    keys = partition_keys(store.keys, partition(number))
    type_ = ENTITY.encode()
    rows = await _fields(store, keys["servers"], lambda field, _: field.startswith(type_ + b":"))
    await _drop(store, "HDEL", keys["servers"], rows)
    counts = await _fields(store, keys["partition"], lambda field, _: type_ in field.split(b":"))
    await _drop(store, "HDEL", keys["partition"], counts)
    members = await store.call("SMEMBERS", keys["orphans"], key=keys["orphans"], idempotent=True)
    await _drop(store, "SREM", keys["orphans"], [one for one in members if one.startswith(type_ + b":")])
    exact = {(keys[name] + type_) for name in ("ranking", "seen")}
    of_type = ("users", "binders", "buried", "journal", "moves")
    prefixes = tuple((keys[name] + type_ + b":") for name in of_type)
    await _delete(store, [key async for key in _found(store, exact, prefixes)])


async def _purge_jobs(store: Store) -> None:
    keys = drain_keys(store.keys)
    ids = await store.call("ZRANGE", keys["jobs"], 0, -1, key=keys["jobs"], idempotent=True)
    for job in ids:
        key = keys["job"] + job
        if await store.call("HGET", key, "type", key=key, idempotent=True) == ENTITY.encode():
            await _drop(store, "ZREM", keys["jobs"], [job])
            await _drop(store, "SREM", keys["active"], [job])
            await _delete(store, [(keys[name] + job) for name in ("job", "moved", "reports")])
    busy = await _fields(store, keys["busy"], lambda field, _: field.startswith(f"{ENTITY}:".encode()))
    await _drop(store, "HDEL", keys["busy"], busy)


async def _fields(store: Store, key: bytes, wanted: Callable[[bytes, bytes], bool]) -> list[bytes]:
    """The fields of a hash that are wanted, by name and value."""
    flat = await store.call("HGETALL", key, key=key, idempotent=True, bulk=True)
    return [field for field, value in zip(flat[::2], flat[1::2], strict=True) if wanted(field, value)]


async def _found(store: Store, exact: set[bytes], prefixes: tuple[bytes, ...]) -> AsyncIterator[bytes]:
    cursor, is_done = b"0", False
    while not is_done:
        cursor, page = await store.call("SCAN", cursor, "COUNT", PAGE, idempotent=True)
        for key in page:
            if key in exact or key.startswith(prefixes):
                yield key
        is_done = cursor == b"0"


async def _drop(store: Store, verb: str, key: bytes, members: Collection[bytes]) -> None:
    if members:
        await store.call(verb, key, *members, key=key, idempotent=True)


async def _delete(store: Store, keys: Iterable[bytes]) -> None:
    for key in keys:
        await store.call("UNLINK", key, key=key, idempotent=True)
