"""A cluster: slots move, primaries die.

The invariant: each call ends with its own reply or an honest error wherever its slot is, a moving slot
costs nobody a call, and a dead primary costs only the callers of its slots.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator

import hiredis
import pytest

from roost.core.errors import StoreAccessDenied, StoreUnavailable
from roost.core.lease import Tenure
from roost.store import scopes
from roost.store.link import LinkOptions
from roost.store.store import Store
from roost.store.topology.cluster import slot_of
from roost.store.url import parse_store_url
from roost.testing import RunningCluster, RunningServer, eventually, run_cluster, wait_until

from .harness import HANG_S, PATIENT, closes_after, crowd, in_thread, opened, write_and_read

MOVING = "moving"
SLOT = slot_of(MOVING.encode())
FIRST = next(key for n in range(1000) if slot_of(key := f"k{n}".encode()) < 5000)
"""A key of the primary that owns slot 0."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[RunningCluster]:
    """Shared by the tests that leave every node alive."""
    with run_cluster() as running:
        yield running


@pytest.fixture
def mortal_cluster() -> Iterator[RunningCluster]:
    with run_cluster(node_timeout_ms=1000) as running:
        yield running


def _elsewhere(cluster: RunningCluster, slot: int) -> RunningServer:
    return next(
        server for server in cluster.servers[: cluster.primaries] if server is not cluster.owner(slot)
    )


async def test_calls_go_to_the_owners_of_their_slots(cluster: RunningCluster) -> None:
    async with opened(cluster.url, PATIENT) as store:
        async with crowd(store, write_and_read, allowed=()) as callers:
            await callers.progress()
        assert len(store.links()) == 3
        for server in cluster.servers[:3]:
            assert server.command_reply("DBSIZE") > 0


async def test_a_slot_that_moves_under_load_costs_nobody_a_call(cluster: RunningCluster) -> None:
    async def write(store: Store, caller: int, token: str) -> None:
        """Half of the callers write a new key each time: those are the ones that meet ASK."""
        key = f"{{{MOVING}}}:{caller}".encode()
        if caller % 2:
            key += token.encode()
        await store.call("SET", key, token, key=key, idempotent=True)
        assert await store.call("GET", key, key=key) == token.encode()
        assert await store.call("DEL", key, key=key) == 1

    loop = asyncio.get_running_loop()
    async with opened(cluster.url, PATIENT) as store, crowd(store, write, allowed=()) as callers:

        def ask_phase() -> None:
            asyncio.run_coroutine_threadsafe(callers.progress(rounds=10), loop).result(HANG_S)

        for _ in range(3):
            await callers.progress()
            target = _elsewhere(cluster, SLOT)
            await in_thread(cluster.migrate_slot, SLOT, target, ask_phase)
            await callers.progress(rounds=10)
            assert cluster.owner(SLOT) is target


async def test_scripts_on_a_moving_slot_are_loaded_where_they_are_needed(cluster: RunningCluster) -> None:
    loop = asyncio.get_running_loop()
    async with opened(cluster.url, PATIENT) as store:
        candidate = store.leader(scopes.world(MOVING), "m")

        async def campaign(store: Store, caller: int, token: str) -> None:
            assert isinstance(await candidate.campaign(), Tenure)

        async with crowd(store, campaign, callers=16, allowed=()) as callers:
            await callers.progress()
            assert candidate.tenure is not None
            epoch = candidate.tenure.epoch

            def ask_phase() -> None:
                for server in cluster.servers[:3]:
                    server.command_reply("SCRIPT", "FLUSH")
                asyncio.run_coroutine_threadsafe(callers.progress(), loop).result(HANG_S)

            await in_thread(cluster.migrate_slot, SLOT, _elsewhere(cluster, SLOT), ask_phase)
            await callers.progress()
        assert candidate.tenure is not None
        assert candidate.tenure.epoch == epoch, "the leadership moved with its slot"


async def test_a_bell_follows_its_slot_although_no_call_tells_of_the_move(cluster: RunningCluster) -> None:
    rung: list[bytes] = []
    channel = f"{{{MOVING}}}:bell".encode()
    async with opened(cluster.url) as store:
        store.listen(channel, rung.append)
        await eventually(lambda: rung == [b""], "the bell is hung")
        for _ in range(3):
            source, target = cluster.owner(SLOT), _elsewhere(cluster, SLOT)
            assert source.command_reply("SPUBLISH", channel, "before") == 1
            await eventually(lambda: rung[-1] == b"before")
            connections = _connections(source)
            rung.clear()
            await in_thread(cluster.migrate_slot, SLOT, target)
            await eventually(lambda: b"" in rung, "the listener hears that it may have missed something")
            assert target.command_reply("SPUBLISH", channel, "after") == 1
            await eventually(lambda: rung[-1] == b"after")
            assert _connections(source) - connections < 30, "the old owner was not stormed"


def _connections(server: RunningServer) -> int:
    text: str = server.command_reply("INFO", "stats").decode()
    return int(text.partition("total_connections_received:")[2].split()[0])


async def test_a_store_closes_at_once_whatever_its_keepers_were_about_to_do(cluster: RunningCluster) -> None:
    await closes_after(cluster.url, lambda store: store.topology.doubt())


@pytest.mark.parametrize("fault", [RunningServer.kill, RunningServer.pause])
async def test_a_lost_primary_costs_only_the_callers_of_its_slots_and_they_resume_on_its_replica(
    mortal_cluster: RunningCluster, fault: Callable[[RunningServer], None]
) -> None:
    cluster = mortal_cluster
    for server in cluster.servers:
        server.command_reply("CONFIG", "SET", "cluster-require-full-coverage", "no")
    victim = cluster.servers[1]
    names = [f"key{n}" for n in range(500)]
    hit = [name for name in names if cluster.owner(slot_of(name.encode())) is victim][:32]
    spared = [name for name in names if cluster.owner(slot_of(name.encode())) is not victim][:32]
    assert len(hit) == len(spared) == 32

    async def write_hit(store: Store, caller: int, token: str) -> None:
        """Replication is asynchronous: a caller may read an older token of its own after the failover."""
        key = hit[caller].encode()
        await store.call("SET", key, token, key=key)
        reply = await store.call("GET", key, key=key, idempotent=True)
        assert (reply or f"{caller}-".encode()).startswith(f"{caller}-".encode()), f"{caller} read {reply!r}"

    async def write_spared(store: Store, caller: int, token: str) -> None:
        key = spared[caller].encode()
        await store.call("SET", key, token, key=key)
        assert await store.call("GET", key, key=key) == token.encode()

    rung: list[bytes] = []
    channel = f"{{{hit[0]}}}:bell".encode()
    options = LinkOptions(command_timeout_s=1.0, connect_timeout_s=0.5)
    async with opened(cluster.url, options) as store:
        store.listen(channel, rung.append)
        await eventually(lambda: rung == [b""], "the bell is hung")
        async with (
            crowd(store, write_hit, callers=32) as unlucky,
            crowd(store, write_spared, callers=32, allowed=()) as lucky,
        ):
            await unlucky.progress()
            await lucky.progress()
            fault(victim)
            await unlucky.trouble()
            await lucky.progress()
            await unlucky.progress()
            await lucky.progress()
        replacement = cluster.owner(slot_of(hit[0].encode()))
        assert replacement is not victim
        await eventually(lambda: rung == [b"", b""], "the bell is hung again")
        assert replacement.command_reply("SPUBLISH", channel, "ding") == 1
        await eventually(lambda: rung[-1] == b"ding")


async def test_a_call_for_a_dead_primary_waits_for_its_replica_until_the_calls_own_deadline(
    mortal_cluster: RunningCluster,
) -> None:
    cluster = mortal_cluster
    victim = cluster.owner(SLOT)
    key = f"{{{MOVING}}}".encode()
    async with opened(cluster.url) as store:
        victim.kill()
        assert await store.call("INCR", key, key=key, timeout_s=HANG_S, idempotent=True) == 1


async def test_a_refused_password_is_named_as_such(cluster: RunningCluster) -> None:
    url = cluster.url.replace("redis+cluster://", "redis+cluster://:wrong@")
    with pytest.raises(StoreAccessDenied):
        await Store.open(parse_store_url(url))


# -- a node that was cut off


class CutOff:
    """What is left of an old primary that reaches nobody: it answers clients, with the map of before."""

    def __init__(self, slots: bytes) -> None:
        self._slots = slots
        self.asked = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        commands = hiredis.Reader()
        while data := await reader.read(65536):
            commands.feed(data)
            while (command := commands.gets()) is not False:
                self.asked += 1
                writer.write(self._answer([word.upper() for word in command]))
        writer.close()

    def _answer(self, command: list[bytes]) -> bytes:
        match command:
            case [b"CLUSTER", b"SLOTS"]:
                return self._slots
            case [b"CLUSTER", b"INFO"]:
                text = b"cluster_state:fail\r\ncluster_current_epoch:3\r\n"
                return b"$%d\r\n%b\r\n" % (len(text), text)
            case [b"PING"] | [b"CLIENT", *_]:
                return b"+OK\r\n"
            case _:
                return b"-CLUSTERDOWN The cluster is down\r\n"


def _encoded(value: object) -> bytes:
    if isinstance(value, list):
        return b"*%d\r\n%b" % (len(value), b"".join(map(_encoded, value)))
    if isinstance(value, int):
        return b":%d\r\n" % value
    assert isinstance(value, bytes)
    return b"$%d\r\n%b\r\n" % (len(value), value)


@pytest.mark.parametrize("connected_before", [True, False])
async def test_a_client_of_a_primary_that_was_cut_off_follows_the_majority(
    mortal_cluster: RunningCluster, connected_before: bool
) -> None:
    cluster = mortal_cluster
    old = cluster.owner(0)  # the first in every list that a client keeps
    slots = _encoded(old.command_reply("CLUSTER", "SLOTS"))
    others = [server for server in cluster.servers[:3] if server is not old]
    # the one that was cut off stands first in the URL
    url = f"redis+cluster://{','.join(f'127.0.0.1:{server.port}' for server in (old, *others))}"
    async with contextlib.AsyncExitStack() as stack:
        early = await stack.enter_async_context(opened(url, PATIENT))
        await early.call("SET", FIRST, 1, key=FIRST)
        old.kill()
        ghost = CutOff(slots)
        server = await asyncio.start_server(ghost.serve, "127.0.0.1", old.port)
        stack.push_async_callback(server.wait_closed)
        stack.callback(server.close)
        await in_thread(wait_until, lambda: _owner_port(others[0]) != old.port, "a new primary")
        store = early if connected_before else await stack.enter_async_context(opened(url, PATIENT))
        async with asyncio.timeout(HANG_S):
            for n in range(14):
                await store.call("SET", FIRST, n, key=FIRST, idempotent=True)
        assert ghost.asked, "it was reached"


def _owner_port(server: RunningServer) -> int:
    for first, _, primary, *_ in server.command_reply("CLUSTER", "SLOTS"):
        if first == 0:
            return int(primary[1])
    return 0


async def test_a_slot_that_stays_between_two_nodes_is_explained(mortal_cluster: RunningCluster) -> None:
    cluster = mortal_cluster
    target = _elsewhere(cluster, SLOT)
    source = cluster.owner(SLOT)
    async with opened(cluster.url) as store:
        keys = [f"{{{MOVING}}}:{n}" for n in range(2)]
        await store.call("SET", keys[0], 1, key=keys[0].encode())
        target.command_reply("CLUSTER", "SETSLOT", SLOT, "IMPORTING", cluster.node_id(source))
        source.command_reply("CLUSTER", "SETSLOT", SLOT, "MIGRATING", cluster.node_id(target))
        with pytest.raises(StoreUnavailable, match="atomically"):
            await store.call("MGET", *keys, key=keys[0].encode(), idempotent=True)
