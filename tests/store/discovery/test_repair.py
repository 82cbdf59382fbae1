"""repair.lua, repair_service.lua and forget.lua: what a person or a partial restore has damaged."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from roost.discovery.scripts import Forgotten, Removed, Repaired
from tests.store.discovery.fleet import SECOND, Fleet, invariants, read_state

HOUR_MS = 3_600_000
RECORD = '{"type":"game","group":"eu","serverId":""}'
BEAT = '[false,false,"ready",0,0,1,1,{}]'


class Damage(NamedTuple):
    command: str
    part: str
    args: tuple[str | int, ...]
    service: str = ""


async def repair(fleet: Fleet, count: int = 200) -> int:
    """All that the reaper does in one round."""
    mended, cursor = 0, "0"
    while True:
        part = await fleet.scripts.repair(cursor=cursor, count=count, now=fleet.now)
        mended, cursor = mended + part.mended, part.cursor
        if cursor == "0":
            break
    for service in (await read_state(fleet.store)).services:
        while True:
            part = await fleet.scripts.repair_service(
                service=service, cursor=cursor, count=count, now=fleet.now
            )
            mended, cursor = mended + part.mended, part.cursor
            if cursor == "0":
                break
    return mended


async def add_some(fleet: Fleet) -> None:
    await fleet.add("a", server_id="501")
    await fleet.add("b", server_id="502")
    await fleet.add("c", group="us")


async def test_a_healthy_store_needs_no_mending(any_fleet: Fleet) -> None:
    await add_some(any_fleet)
    await any_fleet.remove("b")
    before = await invariants(any_fleet.store)
    assert await repair(any_fleet) == 0
    assert await invariants(any_fleet.store) == before


async def test_an_empty_store_needs_no_mending(fleet: Fleet) -> None:
    assert await fleet.scripts.repair(cursor="0", count=10, now=fleet.now) == Repaired("0", 0)
    assert await fleet.scripts.repair_service(service="game:eu", cursor="0", count=10) == Repaired("0", 0)


@pytest.mark.parametrize(
    "damage",
    [
        Damage("ZREM", "leases", ("a",)),
        Damage("DEL", "leases", ()),
        Damage("SREM", "services", ("game:eu",)),
        Damage("DEL", "services", ()),
        Damage("HDEL", "names", ("game:501",)),
        Damage("DEL", "names", ()),
        Damage("SADD", "services", ("game:nowhere",)),
    ],
    ids=lambda damage: f"{damage.command} {damage.part}",
)
async def test_a_lost_index_is_made_again_from_the_others(fleet: Fleet, damage: Damage) -> None:
    await add_some(fleet)
    before = await invariants(fleet.store)

    await fleet.damage(damage.command, damage.part, *damage.args, service=damage.service)

    assert await repair(fleet) >= 1
    assert await invariants(fleet.store) == before
    assert await repair(fleet) == 0


@pytest.mark.parametrize(
    "damage",
    [
        Damage("HDEL", "records", ("a",), "game:eu"),
        Damage("HDEL", "beats", ("a",), "game:eu"),
        Damage("DEL", "beats", (), "game:us"),
        Damage("DEL", "records", (), "game:us"),
        Damage("HDEL", "index", ("a",)),
        Damage("DEL", "index", ()),
    ],
    ids=lambda damage: f"{damage.command} {damage.part}",
)
async def test_who_lost_a_part_of_itself_ends_and_may_come_back(fleet: Fleet, damage: Damage) -> None:
    await add_some(fleet)
    lives = {id_: entry.life for id_, entry in (await invariants(fleet.store)).index.items()}

    await fleet.damage(damage.command, damage.part, *damage.args, service=damage.service)

    assert await repair(fleet) >= 1
    state = await invariants(fleet.store)
    assert state.gone
    assert state.gone.keys() | state.index.keys() == lives.keys()
    told = {e.fields["id"] for e in state.feed if e.fields["event"] == "removed"}
    assert told == state.gone.keys(), "watchers would keep a ghost"
    for id_ in state.gone:
        await fleet.add(id_, former_life=lives[id_])
    assert (await invariants(fleet.store)).index.keys() == lives.keys()


async def test_a_mended_lease_begins_anew(fleet: Fleet) -> None:
    await fleet.add("a")
    await fleet.pass_time(10)
    await fleet.damage("ZREM", "leases", "a")
    await repair(fleet)
    assert (await fleet.pass_time(29)).ended == []
    assert (await fleet.pass_time(1)).ended == ["a"]


async def test_a_record_that_no_index_knows_is_dropped(fleet: Fleet) -> None:
    await fleet.add("a")
    await fleet.damage("HSET", "records", "ghost", RECORD, service="game:eu")
    await fleet.damage("HSET", "beats", "ghost", BEAT, service="game:eu")

    assert await repair(fleet) == 1

    state = await read_state(fleet.store)
    assert list(state.records["game:eu"]) == list(state.beats["game:eu"]) == ["a"]
    assert (await fleet.told())[-1] == ("removed", "ghost", "no-response")
    assert await repair(fleet) == 0


async def test_a_second_record_of_one_that_lives_elsewhere_is_dropped_in_silence(fleet: Fleet) -> None:
    await fleet.add("a", group="us")
    await fleet.add("b", group="eu")
    await fleet.damage("HSET", "records", "a", RECORD, service="game:eu")
    before = len(await fleet.feed())

    assert await repair(fleet) == 1

    assert (await invariants(fleet.store)).index["a"].service == "game:us"
    assert len(await fleet.feed()) == before


async def test_g4_a_restored_record_of_a_removed_instance_does_not_let_it_back_in(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await fleet.add("b")
    await fleet.remove("a", cause="removed")
    await fleet.damage("HSET", "records", "a", RECORD, service="game:eu")

    assert await repair(fleet) == 1

    state = await invariants(fleet.store)
    assert state.gone["a"].startswith(f"removed\t{life}\t")


async def test_a_large_index_is_looked_at_in_parts(any_fleet: Fleet) -> None:
    for n in range(700):  # above the size at which a hash is scanned whole
        await any_fleet.add(f"i{n}")
    for n in range(0, 700, 7):
        await any_fleet.damage("ZREM", "leases", f"i{n}")
    part = await any_fleet.scripts.repair(cursor="0", count=50, now=any_fleet.now)
    assert part.cursor != "0"
    assert part.mended + await repair(any_fleet, count=50) == 100
    assert await repair(any_fleet, count=50) == 0
    await invariants(any_fleet.store)


# -- tombstones


async def test_only_old_tombstones_are_forgotten(any_fleet: Fleet) -> None:
    await any_fleet.add("old")
    await any_fleet.add("young")
    await any_fleet.add("alive")
    await any_fleet.remove("old")
    await any_fleet.damage("HINCRBY", "meta", "clock_ms", HOUR_MS // 2)
    await any_fleet.remove("young")
    await any_fleet.damage("HINCRBY", "meta", "clock_ms", HOUR_MS // 2)

    async def forget() -> Forgotten:
        return await any_fleet.scripts.forget(cursor="0", count=100, keep_ms=HOUR_MS, now=any_fleet.now)

    assert await forget() == Forgotten("0", 0)
    await any_fleet.damage("HINCRBY", "meta", "clock_ms", 1)
    assert await forget() == Forgotten("0", 1)
    state = await invariants(any_fleet.store)
    assert (list(state.gone), list(state.index)) == (["young"], ["alive"])


async def test_g4_a_step_of_the_clock_forgets_no_tombstone(fleet: Fleet) -> None:
    await fleet.add("a")
    await fleet.remove("a", cause="removed")
    for step_s in (365 * 86_400, -2 * 365 * 86_400):
        fleet.now += step_s * SECOND
        await fleet.sweep()
        assert await fleet.scripts.forget(cursor="0", count=100, keep_ms=HOUR_MS, now=fleet.now) == Forgotten(
            "0", 0
        )
    assert await fleet.beat("a") == Removed("removed")


async def test_a_tombstone_that_says_nothing_is_forgotten(fleet: Fleet) -> None:
    await fleet.damage("HSET", "gone", "a", "what is this")
    forgotten = await fleet.scripts.forget(cursor="0", count=100, keep_ms=HOUR_MS, now=fleet.now)
    assert forgotten == Forgotten("0", 1)


async def test_many_tombstones_are_forgotten_in_parts(fleet: Fleet) -> None:
    for n in range(600):
        await fleet.damage("HSET", "gone", f"i{n}", f"terminated\t1\t{fleet.now // 1000}\tgame:eu")
    fleet.now += 3601 * SECOND
    count, cursor, parts = 0, "0", 0
    while True:
        part = await fleet.scripts.forget(cursor=cursor, count=50, keep_ms=HOUR_MS, now=fleet.now)
        count, cursor, parts = count + part.count, part.cursor, parts + 1
        if cursor == "0":
            break
    assert count == 600
    assert parts > 1


async def test_suspects_that_were_not_counted_are_counted_and_told(fleet: Fleet) -> None:
    """As after an upgrade from a version that did not count them."""
    for id_ in ("a", "b", "c"):
        await fleet.add(id_)
        await fleet.beat(id_, tick_age_ms=3_600_000)
    await fleet.damage("DEL", "suspects", service="game:eu")
    await fleet.damage("DEL", "panics")
    before = len(await fleet.feed())

    assert await repair(fleet) == 3

    state = await read_state(fleet.store)
    assert state.suspects == {"game:eu": {"a", "b", "c"}}
    assert state.panics == {"game:eu"}
    assert [e.fields["event"] for e in state.feed[before:]] == ["panic"]
    assert await repair(fleet) == 0


async def test_a_suspect_that_is_nobody_is_not_counted(fleet: Fleet) -> None:
    await fleet.add("a")
    await fleet.add("b")
    await fleet.beat("a", tick_age_ms=3_600_000)
    await fleet.damage("SADD", "suspects", "ghost", "b", service="game:eu")
    await fleet.damage("SADD", "panics", "game:eu")
    assert await repair(fleet) == 3, "b, the ghost, and the panic"
    assert (await read_state(fleet.store)).suspects == {"game:eu": {"a"}}
    assert (await read_state(fleet.store)).panics == set()
