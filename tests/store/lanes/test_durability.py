"""A level of durability that the store cannot give is refused at start; one that it gives is what it says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from roost.core.errors import StartFailed
from roost.lanes.commands import Durability, Method, New, Side
from roost.lanes.durability import check_durability
from roost.lanes.placement import Place
from roost.store.keys.lanes import shard_keys
from roost.store.scopes import shard as shard_scope
from roost.store.store import Store
from roost.testing import RunningServer, eventually, open_store, run_valkey, wait_until
from tests.store.lanes.hall import Hall

LEVELS = list(Durability)


async def refusal(store: Store, level: Durability) -> str:
    """Why the level cannot be promised, and what to change; empty: it can."""
    try:
        await check_durability(store, level)
    except StartFailed as error:
        return f"{error.message}; {error.hint}"
    return ""


async def test_a_store_without_a_file_or_a_replica_promises_its_memory_only(valkey: RunningServer) -> None:
    async with open_store(valkey.url) as store:
        said = {level: await refusal(store, level) for level in LEVELS}
    assert said[Durability.MEMORY] == ""
    for level in (Durability.EVERYSEC, Durability.FSYNC):
        assert f"durability {level.word} cannot be promised" in said[level]
        assert "no append-only file" in said[level]
        assert "appendonly yes" in said[level]
    assert "no replica" in said[Durability.REPLICA]


async def test_a_store_with_a_file_promises_what_its_file_does(valkey: RunningServer) -> None:
    async with open_store(valkey.url) as store:
        await store.call("CONFIG", "SET", "appendonly", "yes")
        assert [await refusal(store, level) for level in LEVELS[:3]] == ["", "", ""]
        await store.call("CONFIG", "SET", "appendfsync", "no")
        assert "never syncs" in await refusal(store, Durability.EVERYSEC)
        assert await refusal(store, Durability.FSYNC) == "", "it is asked to sync"


async def test_a_store_that_cannot_wait_for_its_disk_does_not_promise_it() -> None:
    options = ("--appendonly", "yes", "--rename-command", "WAITAOF", "")
    with run_valkey(options=options) as old:
        async with open_store(old.url) as store:
            assert "does not know WAITAOF" in await refusal(store, Durability.FSYNC)
            assert await refusal(store, Durability.EVERYSEC) == ""


@pytest.fixture
def replica(valkey: RunningServer) -> Iterator[RunningServer]:
    """Of `valkey`, in sync."""
    options = ("--replicaof", f"127.0.0.1 {valkey.port}")
    with run_valkey(options=options) as server:

        def is_in_sync() -> bool:
            return b"master_link_status:up" in server.command_reply("INFO", "replication")

        wait_until(is_in_sync, "the replica to be in sync")
        try:
            yield server
        finally:
            server.resume()


async def test_g16_replica_is_answered_when_a_replica_has_it(
    valkey: RunningServer, replica: RunningServer
) -> None:
    async with open_store(valkey.url) as store:
        assert await refusal(store, Durability.REPLICA) == ""
        hall = Hall(store)
        place = hall.table.of("ACME")
        assert isinstance(place, Place)
        number = place.shard
        server = await hall.started("first", durability=Durability.REPLICA, wanted=[number])
        outcome = await server.new("ann", 1, "ACME")
        assert outcome.durability == Durability.REPLICA
        key = shard_keys(store.keys, shard_scope(number))["log"]
        newest = replica.command_reply("XREVRANGE", key, "+", "-", "COUNT", 1)[0][0]
        assert newest == f"{outcome.epoch}-{outcome.seq}".encode()

        replica.pause()
        held = server.send(Method.NEW, New("ann", 2, 0, "ACME", Side.BUY, 10, 5))
        entries = 2

        async def has_it() -> bool:
            return len(await hall.entries(number)) > entries

        await eventually(has_it, "the primary has it")
        assert not server.trader.answers[held], "told of what only the primary has"
        replica.resume()
        assert not (await server.answer_to(held)).code
