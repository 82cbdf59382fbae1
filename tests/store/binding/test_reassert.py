"""After a failover owners say again whom they hold: nothing acknowledged is given to somebody else."""

from __future__ import annotations

from roost.core.owner import Owner
from tests.store.binding.town import LEASE_MS, SECOND, Town, invariants


async def test_a_grant_that_a_failover_lost_is_restored_under_its_epoch(any_town: Town) -> None:
    owner = await any_town.opens("s1")
    replica = await any_town.copy()
    was = await any_town.placed("ann")
    await any_town.fails_over_to(replica)
    assert await any_town.read("ann") is None

    (record,) = await any_town.reassert(owner, ("ann", was.epoch))

    assert record is not None
    assert (record.owner, record.epoch, record.why) == (owner, was.epoch, "reasserted")
    assert await any_town.binders(owner) == ["ann"]
    await invariants(any_town)


async def test_after_a_wipe_everybody_is_kept_by_their_owner(town: Town) -> None:
    owners = [await town.opens("s1"), await town.opens("s2")]
    held: dict[Owner, list[tuple[str, int]]] = {owner: [] for owner in owners}
    for number in range(20):
        town.draw = number * 7919
        placed = await town.placed(f"u{number}")
        held[placed.owner].append((f"u{number}", placed.epoch))
    await town.wiped()

    for owner in owners:
        await town.beat(owner.server_id)
        for record, (_, epoch) in zip(await town.reassert(owner, *held[owner]), held[owner], strict=True):
            assert record is not None
            assert (record.owner, record.epoch) == (owner, epoch)

    state = await invariants(town)
    assert sum(map(len, state.binders.values())) == 20


async def test_an_older_record_of_another_yields(town: Town) -> None:
    first, second = await town.opens("s1"), await town.opens("s2")
    await town.bind("ann", first)
    replica = await town.copy()
    await town.pass_ms(LEASE_MS, beating=[("s2", 7)])
    now = await town.placed("ann")
    await town.fails_over_to(replica)
    await town.beat("s2")

    (record,) = await town.reassert(second, ("ann", now.epoch))

    assert record is not None
    assert (record.owner, record.epoch) == (second, now.epoch)
    assert await town.binders(first) == []
    await invariants(town)


async def test_a_later_record_of_another_stands(town: Town) -> None:
    first, second = await town.opens("s1"), await town.opens("s2")
    was = await town.bind("ann", first)
    epoch = was.epoch  # type: ignore[union-attr]
    await town.bury("s1")
    await town.placed("ann")

    await town.opens("s1", 8)
    (record,) = await town.reassert(Owner("s1", "8"), ("ann", epoch))

    assert record is not None
    assert record.owner == second
    await invariants(town)


async def test_a_release_stands(town: Town) -> None:
    owner = await town.opens("s1")
    was = await town.placed("ann")
    await town.release("ann", owner, was.epoch)

    (record,) = await town.reassert(owner, ("ann", was.epoch))

    assert record is not None
    assert (record.owner, record.state) == (None, "R")


async def test_what_is_already_so_changes_nothing(town: Town) -> None:
    owner = await town.opens("s1")
    was = await town.placed("ann")
    told = await town.told()

    (record,) = await town.reassert(owner, ("ann", was.epoch))

    assert record is not None
    assert record.epoch == was.epoch
    assert await town.told() == told


async def test_an_owner_that_has_a_later_epoch_here_is_told(town: Town) -> None:
    owner = await town.opens("s1")
    was = await town.placed("ann")
    again = await town.placed("ann", seen=was.epoch + SECOND)

    (record,) = await town.reassert(owner, ("ann", was.epoch))

    assert record is not None
    assert (record.owner, record.epoch) == (owner, again.epoch)


async def test_without_a_lease_nothing_is_restored(town: Town) -> None:
    owner = await town.opens("s1")
    was = await town.placed("ann")
    await town.wiped()

    assert await town.reassert(owner, ("ann", was.epoch)) == [None]

    await town.bury("s1")
    await town.beat("s1")
    assert await town.reassert(owner, ("ann", was.epoch)) == [None]


async def test_a_record_that_was_deleted_is_restored_and_counted_once(town: Town) -> None:
    owner = await town.opens("s1")
    was = await town.placed("ann")
    await town.store.call("DEL", town.user_key("ann"), key=town.user_key("ann"))

    (record,) = await town.reassert(owner, ("ann", was.epoch))

    assert record is not None
    assert (record.owner, record.epoch) == (owner, was.epoch)
    await invariants(town)
