"""A store that forgets: owners keep their users and tell it again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest

from roost.sdk.entity import Durability, Journal
from roost.servers.entity.serving import connections_of
from roost.servers.entity.tenancy import RenewTurn
from roost.store.store import Store
from roost.testing import RunningServer, eventually, open_store
from roost.wire.codes import Code
from tests.entity.town import TYPE, Counter, House, Town, open_town


class Journaled(Counter):
    durability: ClassVar[Durability] = Journal(ms=600_000)


@pytest.fixture
async def own_store(valkey: RunningServer) -> AsyncIterator[Store]:
    async with open_store(valkey.url) as store:
        yield store


@pytest.fixture
async def own_town(own_store: Store, tmp_path: Path) -> AsyncIterator[Town]:
    async with open_town(own_store, tmp_path) as town:
        yield town


async def heals(town: Town, entity: type[Counter] = Counter) -> House:
    """A server that looks at its connections to the store."""
    house = await town.open(entity=entity)
    house.host.healer.connections = partial(connections_of, town.store)
    house.host.healer.beat = house.beat
    await house.host.healer.step()
    return house


async def test_after_a_lost_connection_everybody_is_named_again(
    valkey: RunningServer, own_town: Town
) -> None:
    house = await heals(own_town, Journaled)
    epochs = {f"u{n}": await own_town.bind(f"u{n}", house) for n in range(30)}
    for user in epochs:
        await house.result(user)

    await own_town.store.call("FLUSHALL", key=b"")
    valkey.command_reply("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    async def is_told() -> bool:
        records = [await own_town.bindings.read(TYPE, user) for user in epochs]
        return all(record is not None and record.owner == house.owner for record in records)

    async def is_journaled() -> bool:
        return all([len(await own_town.bindings.read_journal(TYPE, user, 0)) == 1 for user in epochs])

    await eventually(is_told, "the map is restored, without a message")
    await eventually(is_journaled, "and the journal")
    assert house.users == sorted(epochs)
    assert [await house.result(user, "up", 2) for user in epochs] == [2] * 30


async def test_a_user_is_kept_while_the_store_has_not_heard_a_beat(town: Town) -> None:
    house = await town.open()
    await town.bind("ann", house)
    await house.result("ann")
    house.lapse()
    await house.beat()
    await town.store.call("FLUSHALL", key=b"")

    refused = await house.ask("ann", "up", 2)
    await house.beat()
    again = await house.result("ann", "up", 2)

    assert refused.code is Code.MOVED
    assert again == 2


async def test_a_user_whom_an_operator_took_away_is_written_and_let_go(town: Town) -> None:
    house = await town.open()
    await town.bind("ann", house)
    await house.result("ann")

    await town.bindings.unbind(TYPE, "ann")
    await house.host.healer.reassert_all()
    await eventually(lambda: house.users == [], "the user has gone")

    row = await town.database.read(TYPE, "ann")
    assert row is not None
    assert (row.state, row.owner) == (b"1", None)


async def test_a_later_grant_that_was_not_claimed_is_claimed(town: Town) -> None:
    house = await town.open()
    epoch = await town.bind("ann", house)
    await house.result("ann")
    later = await town.bind("ann", house, seen=epoch + 1_000_000)

    await house.host.healer.reassert_all()
    await eventually(lambda: house.host.sessions["ann"].epoch > later)

    assert await house.result("ann", "up", 2) == 2


async def test_a_doubt_that_another_renewal_has_answered_renews_nothing(own_town: Town) -> None:
    """Else its renewal fences what the first one appended, which is doubted again, for ever."""
    house = await heals(own_town, Journaled)
    await own_town.bind("ann", house)
    await house.result("ann")
    session = house.host.sessions["ann"]
    doubt = RenewTurn(house.host.residence, session)

    await house.host.residence.make_current(session)
    epoch = session.epoch
    await doubt.run()

    assert session.epoch == epoch
