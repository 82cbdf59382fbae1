"""The row of the database names another living owner than the map: the map is wrong, the user goes back."""

from __future__ import annotations

from roost.binding.scripts import Changed, Dead, Placed, Repaired
from tests.store.binding.town import LEASE_MS, SECOND, Town, invariants


async def test_a_user_goes_back_to_the_owner_that_the_row_names(any_town: Town) -> None:
    right, wrong = await any_town.opens("s1"), await any_town.opens("s2")
    replica = await any_town.copy()
    was = await any_town.bind("ann", right)
    assert isinstance(was, Placed)
    await any_town.fails_over_to(replica)
    stolen = await any_town.bind("ann", wrong)
    assert isinstance(stolen, Placed)

    answer = await any_town.repair("ann", wrong, stolen.epoch, right, was.epoch)

    assert isinstance(answer, Repaired)
    assert answer.epoch > max(was.epoch, stolen.epoch)
    assert (await any_town.bound("ann")).owner == right
    assert await any_town.binders(wrong) == []
    await invariants(any_town)


async def test_the_new_epoch_is_above_the_row(town: Town) -> None:
    right, wrong = await town.opens("s1"), await town.opens("s2")
    stolen = await town.bind("ann", wrong)
    assert isinstance(stolen, Placed)

    answer = await town.repair("ann", wrong, stolen.epoch, right, stolen.epoch + 9 * SECOND)

    assert answer == Repaired(stolen.epoch + 9 * SECOND + 1)


async def test_an_owner_that_is_dead_gets_nobody_back(town: Town) -> None:
    right, wrong = await town.opens("s1"), await town.opens("s2")
    stolen = await town.bind("ann", wrong)
    assert isinstance(stolen, Placed)
    await town.pass_ms(LEASE_MS, beating=[("s2", 7)])

    assert await town.repair("ann", wrong, stolen.epoch, right) == Dead()
    assert (await town.bound("ann")).owner == wrong


async def test_a_map_that_changed_meanwhile_is_told_and_left_alone(town: Town) -> None:
    right, wrong = await town.opens("s1"), await town.opens("s2")
    stolen = await town.bind("ann", wrong)
    assert isinstance(stolen, Placed)

    answer = await town.repair("ann", wrong, stolen.epoch - 1, right)

    assert isinstance(answer, Changed)
    assert answer.record is not None
    assert (answer.record.owner, answer.record.epoch) == (wrong, stolen.epoch)
    assert isinstance(await town.repair("bob", wrong, 1, right), Changed)


async def test_a_repeated_repair_finds_it_done(town: Town) -> None:
    right, wrong = await town.opens("s1"), await town.opens("s2")
    stolen = await town.bind("ann", wrong)
    assert isinstance(stolen, Placed)
    await town.repair("ann", wrong, stolen.epoch, right)

    again = await town.repair("ann", wrong, stolen.epoch, right)

    assert isinstance(again, Changed)
    assert again.record is not None
    assert again.record.owner == right


async def test_a_record_that_was_deleted_comes_back_by_the_row_and_is_counted_once(town: Town) -> None:
    right, wrong = await town.opens("s1"), await town.opens("s2")
    was = await town.bind("ann", right)
    assert isinstance(was, Placed)
    await town.store.call("DEL", town.user_key("ann"), key=town.user_key("ann"))
    stolen = await town.bind("ann", wrong)
    assert isinstance(stolen, Placed)
    assert stolen.epoch >= was.epoch, "the clock alone keeps epochs rising over a lost record"

    answer = await town.repair("ann", wrong, stolen.epoch, right, was.epoch)

    assert isinstance(answer, Repaired)
    assert answer.epoch > was.epoch
    await invariants(town)
