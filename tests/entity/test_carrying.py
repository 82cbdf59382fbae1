"""A server that lost the store goes on by a lease in the database; nobody takes its users meanwhile."""

from __future__ import annotations

import time
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar

import pytest

from roost.binding.scripts import Placed
from roost.core.errors import NotSent
from roost.db.database import Database
from roost.db.errors import DatabaseUnavailable
from roost.db.model import Claimed, Flush, FlushResult
from roost.sdk.entity import Durability, Journal, WriteThrough
from roost.servers.entity.beating import beat_or_carry
from roost.servers.entity.carrying import Carrying
from roost.testing import eventually
from roost.wire.codes import Code
from tests.entity.town import TYPE, Counter, House, Town


class Journaled(Counter):
    durability: ClassVar[Durability] = Journal(ms=600_000)


class Written(Counter):
    durability: ClassVar[Durability] = WriteThrough()


class Stubborn:
    """A database that writes no state while it is told not to."""

    def __init__(self, town: Town) -> None:
        self._database = town.database
        self.writes = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    async def flush_many(self, flushes: list[Flush]) -> list[FlushResult | Exception]:
        if self.writes:
            return await self._database.flush_many(flushes)
        return [DatabaseUnavailable("not now")] * len(flushes)


def away() -> AbstractAsyncContextManager[Database]:
    raise DatabaseUnavailable("away")


async def resolved(town: Town, user: str) -> Placed:
    found = await town.bindings.resolve(TYPE, user)
    assert isinstance(found, Placed), found
    return found


async def waits(house: House, user: str, sequence: int, epoch: int) -> None:
    """It must not take the user yet; the gate is to come again."""
    with pytest.raises(NotSent, match="OVERLOADED: the server before goes on") as refused:
        await house.ask(user, "up", sequence, epoch=epoch)
    assert 0 < refused.value.retry_after_s <= 1


async def is_leased(town: Town, house: House) -> bool:
    """Whether nobody could take a user of this server over. The probe is a user of its own."""
    probe = f"probe-{time.monotonic_ns()}"
    claimed = await town.database.claim(TYPE, probe, house.owner, 1, judged=0)
    assert isinstance(claimed, Claimed)
    other = house.owner._replace(life="other")
    return not isinstance(
        await town.database.claim(TYPE, probe, other, 2, judged=1, unless_leased=True), Claimed
    )


@pytest.mark.parametrize("entity", [Counter, Written])
async def test_g7_g9_cut_off_from_the_store_it_goes_on_and_nothing_is_lost(
    town: Town, entity: type[Counter]
) -> None:
    one, two = await town.open("501", entity), await town.open("502", entity)
    epoch = await town.bind("ann", one)
    assert await one.result("ann") == 1

    one.link.is_cut = True
    await town.leases_end(one, beating=[two])
    assert await one.result("ann") == 2
    placed = await resolved(town, "ann")
    assert (placed.owner, placed.epoch > epoch) == (two.owner, True)
    await waits(two, "ann", 3, placed.epoch)
    assert await one.result("ann", "up", 3) == 3

    one.link.is_cut = False
    await one.settles()

    said = await two.ask("ann", "up", 4, epoch=placed.epoch)
    assert said.code is Code.MOVED, "the row names a server that lives: the map is given back to it"
    back = await town.bindings.read(TYPE, "ann")
    assert back is not None
    assert (back.owner, back.epoch > placed.epoch) == (one.owner, True)
    assert await one.result("ann", "up", 4, epoch=back.epoch) == 4
    assert two.users == []


async def test_after_an_outage_of_the_store_for_all_everybody_stays_where_they_are(town: Town) -> None:
    one, two = await town.open("501"), await town.open("502")
    for house, user in ((one, "ann"), (two, "bob")):
        await town.bind(user, house)
        await house.result(user)
        house.link.is_cut = True

    for _ in range(12):
        for house in (one, two):
            house.clock.ahead_s += 1.5
            await house.step()
    assert [await one.result("ann"), await two.result("bob")] == [2, 2]
    for house in (one, two):
        house.link.is_cut = False
        await house.settles()

    assert [await one.result("ann"), await two.result("bob")] == [3, 3]
    assert (await town.bindings.read(TYPE, "ann")).owner == one.owner  # type: ignore[union-attr]


async def test_what_the_journal_has_not_taken_is_acknowledged_when_the_store_is_back(town: Town) -> None:
    house = await town.open(entity=Journaled)
    await town.bind("ann", house)
    await house.result("ann")

    house.link.is_cut = True
    for _ in range(4):
        house.clock.ahead_s += 1.5
        await house.step()
    waiting = house.put("ann", "up", 2)
    await eventually(lambda: house.host.sessions["ann"].waiting_acks == 1, "it was executed")
    assert not waiting.done()
    house.link.is_cut = False
    await house.settles()

    assert (await waiting).code is Code.OK
    assert await house.result("ann", "up", 3) == 3


async def test_the_lease_stays_until_what_was_acknowledged_is_written(town: Town) -> None:
    database = Stubborn(town)
    house = await town.open(database=database)
    await town.bind("ann", house)
    await house.result("ann")
    house.link.is_cut, database.writes = True, False
    await town.leases_end(house)

    house.link.is_cut = False
    for _ in range(3):
        assert not await house.step()
        await house.settler.step()
    assert await is_leased(town, house)

    database.writes = True
    await house.settles()
    assert await town.state("ann") == b"1"
    assert not await is_leased(town, house)


async def test_who_is_heard_again_before_somebody_took_the_user_keeps_it(town: Town) -> None:
    one, two = await town.open("501"), await town.open("502")
    await town.bind("ann", one)
    await one.result("ann")
    one.link.is_cut = True
    await town.leases_end(one, beating=[two])
    placed = await resolved(town, "ann")
    one.link.is_cut = False
    await one.step()

    refused = await two.ask("ann", "up", 2, epoch=placed.epoch)

    assert refused.code is Code.MOVED
    assert await one.result("ann", "up", 2, epoch=placed.epoch) == 2


async def test_what_cannot_be_written_does_not_hold_users_for_ever(town: Town) -> None:
    database = Stubborn(town)
    one = await town.open("501", database=database)
    await town.bind("ann", one)
    database.writes = False
    await one.result("ann")
    one.link.is_cut = True
    await town.leases_end(one)
    one.link.is_cut = False
    await one.step()
    assert await is_leased(town, one)

    one.clock.ahead_s += 61
    await one.step()
    await one.settles()

    assert not await is_leased(town, one)


async def test_it_goes_on_for_no_longer_than_the_limit(town: Town) -> None:
    house = await town.open()
    await town.bind("ann", house)
    await house.result("ann")
    house.link.is_cut = True
    for _ in range(39):
        house.clock.ahead_s += 1.5
        await house.step()
    assert await house.result("ann") == 2

    house.clock.ahead_s += 1.6

    assert (await house.ask("ann", "up", 3)).code is Code.MOVED
    kept = house.carrying.kept
    await house.step()
    assert (house.carrying.kept, house.lease.is_valid) == (kept, False)


async def test_a_lease_that_comes_after_the_end_of_its_own_is_of_no_use(town: Town) -> None:
    """Somebody may have been there meanwhile."""
    house = await town.open()
    await town.bind("ann", house)
    await house.result("ann")
    house.link.is_cut = True
    house.clock.ahead_s += 4.1

    await house.step()

    assert (await house.ask("ann", "up", 2)).code is Code.MOVED
    assert not await is_leased(town, house)


async def test_a_beat_that_was_lost_changes_nothing(town: Town) -> None:
    house = await town.open()
    await town.bind("ann", house)
    await house.result("ann")
    before = house.host.sessions["ann"].epoch
    house.link.is_cut = True
    await house.step()
    assert await is_leased(town, house)

    house.link.is_cut = False
    await house.settles()

    assert not await is_leased(town, house)
    assert await house.result("ann", "up", 2) == 2
    assert house.host.sessions["ann"].epoch == before


async def test_a_life_that_was_ended_meanwhile_writes_and_leaves_everybody(town: Town) -> None:
    one, two = await town.open("501"), await town.open("502")
    await town.bind("ann", one)
    await one.result("ann")
    one.link.is_cut = True
    await one.step()
    await town.bury(one)
    assert await one.result("ann", "up", 2) == 2
    placed = await resolved(town, "ann")
    await waits(two, "ann", 3, placed.epoch)

    one.link.is_cut = False
    await one.settles()

    assert one.lease.ended
    assert await two.result("ann", "up", 3, epoch=placed.epoch) == 3
    await eventually(lambda: one.users == [], "it has let the user go")


async def test_another_life_of_the_same_server_waits_for_the_lease_of_the_one_before(town: Town) -> None:
    one = await town.open("501")
    await town.bind("ann", one)
    assert await one.result("ann", "up", 1) == 1
    await eventually(lambda: not one.host.sessions["ann"].unsaved.is_dirty, "it is written")
    one.link.is_cut = True
    await one.step()
    await one.crash()
    await town.bury(one)
    again = await town.open("501")
    epoch = await town.bind("ann", again)

    await waits(again, "ann", 2, epoch)
    await town.database.drop_lease(TYPE, one.owner)
    assert await again.result("ann", "up", 2, epoch=epoch) == 2


async def test_a_stop_drops_the_lease(town: Town) -> None:
    house = await town.open()
    house.link.is_cut = True
    await house.step()
    assert await is_leased(town, house)
    await house.carrying.close()
    assert not await is_leased(town, house)


async def test_a_main_loop_that_hangs_keeps_no_lease(town: Town) -> None:
    house = await town.open()
    house.link.is_cut = True
    house.beating.ticked_at = time.monotonic() - 60
    await house.step(ticks=False)
    assert not await is_leased(town, house)


async def test_a_database_that_is_away_too_ends_it_with_its_lease(town: Town) -> None:
    house = await town.open()
    await town.bind("ann", house)
    await house.result("ann")
    beating, bindings = house.beating, house.host.bindings
    carrying = Carrying(
        TYPE, [house.lease], away, ttl_ms=6000, patience_s=1.0, limit_s=60, now=house.clock.now
    )
    house.link.is_cut = True

    assert not await beat_or_carry(beating, bindings, carrying)
    assert await house.result("ann") == 2
    house.clock.ahead_s += 4.1
    assert not await beat_or_carry(beating, bindings, carrying)
    assert (await house.ask("ann", "up", 3)).code is Code.MOVED
    house.link.is_cut = False
    assert not await beat_or_carry(beating, bindings, carrying)
    await carrying.close()
