"""A partition's leader on a real store: what it makes of discovery, of ended servers, of a wiped store."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from roost.api.discovery import RegisterInput
from roost.binding.scripts import Beaten, Bound, Ended, NoServer, Placed, Unknown
from roost.binding.service import Bindings
from roost.binding.settings import BindingSettings
from roost.core.owner import Owner
from roost.discovery.service import Discovery
from roost.store.store import Store
from roost.testing.bindings import BindingLeader
from roost.testing.waiting import eventually
from tests.store.binding.test_service import Nobody
from tests.store.binding.town import Town

SETTINGS = BindingSettings(replace_per_second=10)


async def a_fleet(
    store: Store, *servers: str, settings: BindingSettings = SETTINGS
) -> tuple[Bindings, BindingLeader]:
    bindings = Bindings(store, settings, Nobody())
    leader = await BindingLeader.of(store, bindings)
    for server in servers:
        await leader.shows(server, "7")
        await beat(bindings, server)
    return bindings, leader


async def beat(bindings: Bindings, server: str, life: str = "7") -> set[Beaten | Unknown | Ended]:
    return {
        await bindings.beat("entity", Owner(server, life), capacity=0, partition=one.number)
        for one in bindings.partitions
    }


async def homes(bindings: Bindings, users: list[str]) -> Counter[str]:
    records = [await bindings.read("entity", user) for user in users]
    return Counter(r.owner.server_id for r in records if r is not None and r.owner is not None)


async def test_servers_open_and_close_as_discovery_says(any_store: Store) -> None:
    bindings, leader = await a_fleet(any_store, settings=BindingSettings(partitions=3))
    assert await beat(bindings, "s1") == {Unknown()}

    await leader.shows("s1", "7")
    assert await beat(bindings, "s1") == {Beaten(6000)}
    assert isinstance(await bindings.resolve("entity", "ann"), Placed)

    await leader.shows("s1", "7", willing=False)
    assert await bindings.resolve("entity", "bob") == NoServer("none willing")
    assert isinstance(await bindings.resolve("entity", "ann"), Bound)


async def test_users_of_an_ended_server_are_placed_at_a_bounded_rate(store: Store) -> None:
    bindings, leader = await a_fleet(store, "s1")
    users = [f"u{number}" for number in range(25)]
    for user in users:
        await bindings.resolve("entity", user)
    await leader.shows("s2", "7")
    await beat(bindings, "s2")

    await leader.hides("s1", "7")
    assert await homes(bindings, users) == {"s1": 15, "s2": 10}
    asked = await bindings.resolve("entity", "u24")
    assert isinstance(asked, Placed), "whoever asks does not wait for the leader"
    await leader.round()
    await leader.round()

    assert await homes(bindings, users) == {"s2": 25}
    assert leader.keepers[0].replaced == 24


async def test_whom_nobody_takes_is_placed_once_somebody_does(store: Store) -> None:
    bindings, leader = await a_fleet(store, "s1")
    await bindings.resolve("entity", "ann")
    await leader.hides("s1", "7")
    assert await homes(bindings, ["ann"]) == {"s1": 1}

    await leader.shows("s2", "7")
    await beat(bindings, "s2")
    await leader.round()
    assert await homes(bindings, ["ann"]) == {"s2": 1}


async def test_a_store_that_forgot_everything_is_told_anew(store: Store) -> None:
    bindings, leader = await a_fleet(store, "s1")
    placed = await bindings.resolve("entity", "ann")
    assert isinstance(placed, Placed)
    await Town(store).wiped()

    assert await beat(bindings, "s1") == {Unknown()}
    assert await bindings.reassert("entity", Owner("s1", "7"), [("ann", placed.epoch)])
    await leader.round()
    await leader.round()

    assert await beat(bindings, "s1") == {Beaten(6000)}
    found = await bindings.resolve("entity", "ann")
    assert isinstance(found, Bound)
    assert (found.server_id, found.epoch) == ("s1", placed.epoch)


async def test_idle_bindings_are_released(store: Store) -> None:
    settings = BindingSettings(idle_seconds=1)
    bindings, leader = await a_fleet(store, "s1", settings=settings)
    await bindings.resolve("entity", "ann")

    async def is_released() -> bool:
        await leader.round()
        record = await bindings.read("entity", "ann")
        return record is not None and record.why == "idle"

    await eventually(is_released, "the idle binding to be released")
    assert leader.keepers[0].idle == 1


async def test_a_manager_follows_discovery_and_leads(store: Store) -> None:
    discovery = Discovery(store, 30.0)
    bindings = Bindings(store, BindingSettings(types="entity,room"), discovery, loops=store.loops)
    assert bindings.loops(("gateway",)) == []
    tasks = [asyncio.create_task(loop) for loop in bindings.loops(("gateway", "manager"))]
    try:
        registered = await discovery.register(RegisterInput(type="entity", group="kr", server_id="501"))
        owner = Owner("501", registered.life)

        async def is_known() -> bool:
            return isinstance(await bindings.beat("entity", owner, capacity=5), Beaten)

        await eventually(is_known, "the leader to write the server")
        assert isinstance(await bindings.resolve("entity", "ann"), Placed)
        assert bindings.keepers[0].leading

        await discovery.remove(registered.instance_id, life=registered.life)

        async def is_ended() -> bool:
            return isinstance(await bindings.beat("entity", owner, capacity=5), Ended)

        await eventually(is_ended, "the leader to bury the life")
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("partitions", [1, 3])
async def test_two_managers_do_not_disturb_each_other(store: Store, partitions: int) -> None:
    settings = BindingSettings(partitions=partitions)
    discovery = Discovery(store, 30.0)
    both = [Bindings(store, settings, discovery, loops=store.loops) for _ in range(2)]
    tasks = [asyncio.create_task(loop) for one in both for loop in one.loops(("manager",))]
    try:
        await eventually(
            lambda: sum(keeper.leading for one in both for keeper in one.keepers) == partitions,
            "each partition to have one leader",
        )
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
