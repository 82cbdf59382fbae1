"""What the map or the row seems to say may be out of date: a living owner keeps its user, and its memory."""

from __future__ import annotations

from typing import Any

import pytest

from roost.binding.scripts import Bound
from roost.core.errors import NotSent
from roost.db.errors import DatabaseUnavailable
from roost.store.keys.binding import partition_keys
from roost.testing import eventually
from roost.wire.codes import Code
from tests.entity.town import TYPE, Town


class Forgetful:
    """A database whose next claim is carried out without an answer."""

    def __init__(self, database: Any) -> None:
        self._database = database
        self.loses = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    async def claim(self, *args: Any, **more: Any) -> Any:
        answer = await self._database.claim(*args, **more)
        if self.loses:
            self.loses = False
            raise DatabaseUnavailable("no answer in time")
        return answer


async def test_a_login_does_not_take_the_row_of_a_living_owner_whose_epoch_it_judged(town: Town) -> None:
    first, second = await town.open("501"), await town.open("502")
    epoch = await town.bind("anna", first)
    assert await first.result("anna") == 1
    # a grant to 502 above it, from a time when 501 seemed dead, that a failover brought back
    partition = town.bindings.partitions[0]
    key = partition_keys(town.store.keys, partition.scope)["users"] + b"entity:anna"
    owner = ("s", "502", "l", second.owner.life, "e", epoch + 5, "p", epoch)
    await town.store.call("HSET", key, *owner, "st", "A", "why", "failover", key=key)

    answer = await second.ask("anna", "up", 2)

    assert answer.code is Code.MOVED
    found = await town.bindings.resolve(TYPE, "anna")
    assert isinstance(found, Bound)
    assert found.owner == first.owner
    assert await first.result("anna", "up", 2, epoch=found.epoch) == 2


async def test_memory_is_not_dropped_for_a_claim_of_our_own_that_was_not_answered(
    town: Town,
) -> None:
    database = Forgetful(town.database)
    house = await town.open("501", database=database)
    epoch = await town.bind("anna", house)
    assert await house.result("anna") == 1
    database.loses = True

    with pytest.raises(NotSent):  # it must renew, and hears nothing of its claim
        await house.ask("anna", "up", 2, epoch=epoch + 10)

    await eventually(lambda: house.host.residence.counts["renewed"] > 0)
    assert house.users == ["anna"]
    assert await house.result("anna", "up", 2, epoch=epoch + 10) == 2
    assert house.host.residence.counts["lost"] == 0
