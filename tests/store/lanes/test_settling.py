"""Waiting for the disk or a replica: a connection that did not write proves nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from roost.core.errors import StoreError
from roost.lanes.commands import Durability
from roost.lanes.settling import Settling
from roost.store.keys import Key
from roost.store.keys.lanes import shard_keys
from roost.store.scopes import shard as shard_scope
from roost.store.store import Store
from roost.testing import RunningServer, eventually, open_store
from tests.store.lanes.hall import Hall


@pytest.fixture
async def own_store(valkey: RunningServer) -> AsyncIterator[Store]:
    async with open_store(valkey.url) as store:
        await store.call("CONFIG", "SET", "appendonly", "yes")
        yield store


def log_key(store: Store) -> Key:
    return shard_keys(store.keys, shard_scope(3))["log"]


async def test_what_was_written_before_is_on_the_disk(own_store: Store) -> None:
    key = log_key(own_store)
    await own_store.call("SET", key, "x", key=key)

    await Settling(own_store, Durability.FSYNC).settle(key)


async def test_a_store_without_a_replica_says_so(own_store: Store) -> None:
    key = log_key(own_store)
    await own_store.call("SET", key, "x", key=key)

    with pytest.raises(StoreError):
        await Settling(own_store, Durability.REPLICA).settle(key)


async def test_a_connection_that_was_replaced_is_not_believed(valkey: RunningServer) -> None:
    """A new connection has written nothing, so the store would tell it at once that all of that is safe."""
    async with open_store(valkey.url) as store, open_store(valkey.url) as other:
        key = log_key(store)
        await store.call("SET", key, "x", key=key)
        before = store.topology.connection_for(key)
        waiting = Settling(store, Durability.REPLICA).settle(key)

        await other.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await eventually(lambda: store.topology.connection_for(key) is not before, "a new connection")

        with pytest.raises(StoreError):
            await waiting


async def test_g16_fsync_is_named_in_the_receipt(own_store: Store) -> None:
    server = await Hall(own_store).started("first", durability=Durability.FSYNC, wanted=[3])
    symbol = next(f"S{n}" for n in range(999) if server.dispatch.place(f"S{n}")[0] == 3)

    assert (await server.new("ann", 1, symbol)).durability == Durability.FSYNC
