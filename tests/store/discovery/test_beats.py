"""Beats that come together are one call of the store, and each has its own answer."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from roost.api.discovery import Beat, BeatReply, Override
from roost.core.errors import FencedInstance, InvalidInput, RemovedInstance, StoreRefused, UnknownInstance
from roost.discovery.service import Discovery
from roost.store.store import Store
from tests.store.discovery.fleet import Fleet, invariants
from tests.store.discovery.test_accepting import add

OK, DRAIN = BeatReply("OK"), BeatReply("DRAIN")


@pytest.fixture
def discovery(store: Store) -> Discovery:
    return Discovery(store)


def calls(discovery: Discovery, store: Store) -> int:
    return store.library.scripts[("discovery", "heartbeat")].stats.words["BEATEN"]


async def beat_all(discovery: Discovery, *beats: tuple[str, Beat]) -> list[Any]:
    return await asyncio.gather(*(discovery.heartbeat(*one) for one in beats), return_exceptions=True)


async def test_what_comes_together_is_one_call(discovery: Discovery, store: Store) -> None:
    ids = [f"s{n}" for n in range(250)]
    await asyncio.gather(*(add(discovery, id_) for id_ in ids))
    assert await beat_all(discovery, *((id_, Beat(load=7)) for id_ in ids)) == [OK] * 250
    assert calls(discovery, store) == 3, "a hundred at most in each"
    assert {i.load for i in (await discovery.discover()).instances} == {7}
    await invariants(store)


async def test_each_beat_of_a_batch_has_its_own_answer(discovery: Discovery, store: Store) -> None:
    await add(discovery, "well", "drained", "removed", "newer")
    await discovery.override("drained", Override(drain=True))
    await discovery.remove("removed", cause="removed")
    told = await beat_all(
        discovery,
        ("well", Beat(status="draining")),
        ("nobody", Beat()),
        ("drained", Beat()),
        ("removed", Beat()),
        ("newer", Beat(life="1")),
        ("well", Beat(load=cast(int, 3.5))),
        ("well", Beat(load=5)),
    )
    assert [told[0], told[2], told[6]] == [OK, DRAIN, OK]
    kinds = [type(told[at]) for at in (1, 3, 4, 5)]
    assert kinds == [UnknownInstance, RemovedInstance, FencedInstance, InvalidInput]
    assert calls(discovery, store) == 1
    well = (await discovery.get("well")).instance
    assert well is not None
    assert (well.status, well.load) == ("draining", 5)


async def test_one_that_the_store_refuses_does_not_sink_its_batch(fleet: Fleet, discovery: Discovery) -> None:
    await add(discovery, "a", "b")
    await add(discovery, "bad", group="broken")
    await fleet.damage("SET", "beats", "no hash", service="game:broken")
    told = await beat_all(discovery, ("a", Beat(load=1)), ("bad", Beat(load=1)), ("b", Beat(load=1)))
    assert [told[0], told[2]] == [OK, OK]
    assert isinstance(told[1], StoreRefused)
    assert {i.load for i in (await discovery.discover("game", "eu")).instances} == {1}


async def test_who_gave_up_waiting_harms_nobody(discovery: Discovery) -> None:
    await add(discovery, "a", "b")
    impatient = asyncio.create_task(discovery.heartbeat("a", Beat(load=1)))
    patient = asyncio.create_task(discovery.heartbeat("b", Beat(load=1)))
    await asyncio.sleep(0)
    impatient.cancel()
    assert await patient == OK


async def test_a_hang_and_a_recovery_in_one_batch_are_told_in_their_order(
    discovery: Discovery, store: Store
) -> None:
    await add(discovery, "a")
    assert await beat_all(discovery, ("a", Beat(tick_age_ms=3_600_000)), ("a", Beat())) == [OK, OK]
    found = (await discovery.get("a")).instance
    assert found is not None
    assert found.status == "ready"
    await invariants(store)
