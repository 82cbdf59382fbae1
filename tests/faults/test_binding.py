"""Bindings on a cluster whose primaries die: partitions are spread over slots, each fails and heals alone.

The invariant: a user whose owner lives is found at that owner, under an epoch that never went back, whatever
the failover lost; a dead primary holds up only the users of its partitions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from roost.binding.partition import Kept
from roost.binding.scripts import Beaten, Bound, Placed
from roost.binding.service import Bindings
from roost.binding.settings import BindingSettings
from roost.core.errors import StoreError
from roost.core.owner import Owner
from roost.discovery.service import Discovery
from roost.store.store import Store
from roost.store.topology.cluster import slot_of
from roost.testing import RunningCluster, eventually, run_cluster
from roost.testing.bindings import BindingLeader

from .harness import PATIENT, opened

pytestmark = pytest.mark.slow

PARTITIONS = 12
OWNERS = [Owner("501", "7"), Owner("502", "7")]
USERS = [f"u{number}" for number in range(60)]


@pytest.fixture
def mortal_cluster() -> Iterator[RunningCluster]:
    with run_cluster(node_timeout_ms=1000) as running:
        yield running


async def a_town(store: Store) -> tuple[Bindings, BindingLeader, dict[str, Placed]]:
    bindings = Bindings(store, BindingSettings(partitions=PARTITIONS, lease_ms=120_000), Discovery(store))
    leader = await BindingLeader.of(store, bindings)
    for owner in OWNERS:
        await leader.shows(owner.server_id, owner.life)
        await beats(bindings, owner)
    homes: dict[str, Placed] = {}
    for user in USERS:
        placed = await bindings.resolve("entity", user)
        assert isinstance(placed, Placed)
        homes[user] = placed
    return bindings, leader, homes


async def beats(bindings: Bindings, owner: Owner) -> None:
    for partition in range(PARTITIONS):
        await bindings.beat("entity", owner, capacity=0, partition=partition)


def primary_of(cluster: RunningCluster, bindings: Bindings, user: str) -> int:
    return cluster.owner(slot_of(f"b{bindings.partition_of('entity', user)}".encode())).port


async def test_a_dead_primary_holds_up_only_its_own_partitions(mortal_cluster: RunningCluster) -> None:
    async with opened(mortal_cluster.url, PATIENT) as store:
        bindings, leader, homes = await a_town(store)
        victim = mortal_cluster.owner(slot_of(b"b0"))
        primaries = {user: primary_of(mortal_cluster, bindings, user) for user in USERS}
        others = [user for user, port in primaries.items() if port != victim.port]
        assert len(set(primaries.values())) == 3, "the partitions are spread over all primaries"

        victim.kill()
        async with asyncio.timeout(5):
            for user in others:
                assert isinstance(await bindings.resolve("entity", user), Bound)

        async def all_are_found() -> bool:
            try:
                for user in USERS:
                    await bindings.read("entity", user)
            except StoreError:
                return False
            return True

        await eventually(all_are_found, "the replica to take over", timeout_s=60)
        await leader.round()
        await leader.round()
        for owner in OWNERS:
            await beats(bindings, owner)
            held = [(user, home.epoch) for user, home in homes.items() if home.owner == owner]
            for answer in await bindings.reassert("entity", owner, held):
                assert isinstance(answer, Kept)
        for user, home in homes.items():
            found = await bindings.resolve("entity", user, seen=home.epoch)
            assert isinstance(found, Bound)
            assert (found.owner, found.epoch) == (home.owner, home.epoch)
        rows = await bindings.servers("entity")
        assert sum(row.users for row in rows) == len(USERS)
        assert isinstance(await bindings.beat("entity", OWNERS[0], capacity=0), Beaten)


async def test_a_partition_that_lost_everything_is_healed_beside_the_others(
    mortal_cluster: RunningCluster,
) -> None:
    """The primary comes back empty (its replica was lost too): owners restate what they hold there."""
    async with opened(mortal_cluster.url, PATIENT) as store:
        bindings, leader, homes = await a_town(store)
        mortal_cluster.owner(slot_of(b"b0")).flush()
        lost = [user for user in USERS if await bindings.read("entity", user) is None]
        assert lost
        assert len(lost) < len(USERS)

        for owner in OWNERS:
            await beats(bindings, owner)
            held = [(user, home.epoch) for user, home in homes.items() if home.owner == owner]
            answers = await bindings.reassert("entity", owner, held)
            assert answers == [Kept(user, epoch) for user, epoch in held]
        await leader.round()
        await leader.round()

        for user, home in homes.items():
            found = await bindings.resolve("entity", user)
            assert isinstance(found, Bound)
            assert (found.owner, found.epoch) == (home.owner, home.epoch)
        newcomers = [await bindings.resolve("entity", f"new{number}") for number in range(20)]
        assert all(isinstance(one, Placed) for one in newcomers)
