"""R3, R6, R8: never resume under an old epoch; a login that the row refuses campaigns above it."""

from __future__ import annotations

from roost.binding.scripts import NotOwner, Renewed
from roost.core.owner import Owner
from tests.store.binding.town import LEASE_MS, SECOND, Town, invariants


async def test_the_owner_gets_a_new_epoch_above_what_it_names(any_town: Town) -> None:
    owner = await any_town.opens("s1")
    was = await any_town.placed("ann")

    answer = await any_town.renew("ann", owner, was.epoch + 5 * SECOND)

    assert answer == Renewed(was.epoch + 5 * SECOND + 1, was.epoch)
    assert (await any_town.bound("ann")).epoch == was.epoch + 5 * SECOND + 1
    await invariants(any_town)


async def test_a_lapsed_owner_beats_first(town: Town) -> None:
    owner = await town.opens("s1")
    was = await town.placed("ann")
    await town.pass_ms(LEASE_MS)

    refused = await town.renew("ann", owner)
    assert isinstance(refused, NotOwner)
    assert refused.record is not None
    assert refused.record.owner == owner

    await town.beat("s1")
    answer = await town.renew("ann", owner)
    assert isinstance(answer, Renewed)
    assert answer.epoch > was.epoch


async def test_another_owner_stands(town: Town) -> None:
    owner, other = await town.opens("s1"), await town.opens("s2")
    await town.bind("ann", owner)

    assert isinstance(await town.renew("ann", other), NotOwner)
    await invariants(town)


async def test_a_user_whom_nobody_holds_may_be_taken(town: Town) -> None:
    owner = await town.opens("s1", cap=1)
    answer = await town.renew("ann", owner, 0)
    assert isinstance(answer, Renewed)
    assert await town.binders(owner) == ["ann"]

    await town.release("ann", owner, answer.epoch)
    again = await town.renew("ann", owner, 0)
    assert isinstance(again, Renewed)
    assert again.previous == answer.epoch


async def test_a_life_that_ended_gets_nothing(town: Town) -> None:
    owner = await town.opens("s1")
    await town.placed("ann")
    await town.bury("s1")

    assert isinstance(await town.renew("ann", owner), NotOwner)
    assert isinstance(await town.renew("bob", Owner("s1", "7")), NotOwner)
