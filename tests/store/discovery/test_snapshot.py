"""snapshot.lua: who is there, and the point in the feed at which that is true."""

from __future__ import annotations

import asyncio

import pytest

from roost.core.events import Mark
from roost.discovery.model import instances_of
from roost.discovery.scripts import Snapshot
from tests.store.discovery.fleet import Fleet

PLACES = {"a": ("game", "eu"), "b": ("game", "us"), "c": ("gate", "eu"), "d": ("game", "eu")}


def ids(found: Snapshot) -> list[str]:
    return [instance.instance_id for instance in instances_of(found)]


@pytest.mark.parametrize(
    ("wanted_type", "wanted_group", "expected"),
    [
        ("game", "eu", ["a", "d"]),
        ("game", "*", ["a", "b", "d"]),
        ("*", "eu", ["a", "c", "d"]),
        ("*", "*", ["a", "b", "c", "d"]),
        ("gate", "us", []),
        ("nothing", "*", []),
        ("*", "nowhere", []),
    ],
)
async def test_a_snapshot_holds_the_places_that_were_asked_for(
    any_fleet: Fleet, wanted_type: str, wanted_group: str, expected: list[str]
) -> None:
    for id_, (type_, group) in PLACES.items():
        await any_fleet.add(id_, type=type_, group=group)
    assert ids(await any_fleet.snapshot(wanted_type, wanted_group)) == expected


async def test_an_empty_store_gives_an_empty_snapshot_at_the_beginning(fleet: Fleet) -> None:
    assert await fleet.snapshot() == Snapshot(0, 0, [], [], [], [])
    assert await fleet.snapshot("game", "eu") == Snapshot(0, 0, [], [], [], [])


async def test_a_snapshot_names_the_head_of_the_feed(any_fleet: Fleet) -> None:
    life = await any_fleet.add("a")
    await any_fleet.add("b", group="us")
    await any_fleet.beat("a", life, status="draining")
    await any_fleet.remove("b")

    head = (await any_fleet.feed())[-1].mark

    assert head.rev == 4
    for wanted in (("*", "*"), ("game", "eu"), ("gate", "*")):
        found = await any_fleet.snapshot(*wanted)
        assert Mark(found.rev, found.at) == head


async def test_a_snapshot_and_the_changes_after_it_give_the_present(fleet: Fleet) -> None:
    """While others come and go: what the feed says after the snapshot's mark leads to the next snapshot."""

    async def churn() -> None:
        for n in range(60):
            await fleet.add(f"i{n}", group=f"g{n % 3}")
            if n % 2:
                await fleet.remove(f"i{n - 1}")

    async def look() -> list[Snapshot]:
        return [await fleet.snapshot() for _ in range(40)]

    _, snapshots = await asyncio.gather(churn(), look())
    feed, final = await fleet.feed(), await fleet.snapshot()
    for found in snapshots:
        known = set(ids(found))
        for entry in feed[found.rev :]:
            (known.add if entry.fields["event"] == "added" else known.discard)(entry.fields["id"])
        assert known == set(ids(final))


async def test_a_snapshot_carries_the_orders(fleet: Fleet) -> None:
    await fleet.add("a", server_id="501")
    await fleet.override("a", b'{"drain":true}')
    found = await fleet.snapshot("game", "eu")
    assert found.overrides == [b"game:501", b'{"drain":true}']
    assert next(instances_of(found)).accepting is False


async def test_suspects_are_in_it_and_the_dead_are_not(fleet: Fleet) -> None:
    await fleet.add("a")
    await fleet.add("b", ttl_s=60)
    await fleet.pass_time(30)
    assert [(i.instance_id, i.status) for i in instances_of(await fleet.snapshot())] == [("b", "suspect")]
