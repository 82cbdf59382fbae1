from __future__ import annotations

from roost.binding.model import Record
from roost.binding.scripts import NotOwner, Released
from roost.core.owner import Owner
from tests.store.binding.town import SECOND, Town, invariants


async def test_a_released_user_leaves_a_tombstone_with_the_epoch(any_town: Town) -> None:
    owner = await any_town.opens("s1")
    was = await any_town.placed("ann")

    assert await any_town.release("ann", owner, was.epoch) == Released()

    assert await any_town.read("ann") == Record(None, was.epoch, was.epoch, "R", any_town.now, "released")
    assert await any_town.binders(owner) == []
    key = any_town.user_key("ann")
    assert await any_town.store.call("TTL", key, key=key) == 86_400
    await invariants(any_town)


async def test_the_epoch_after_a_release_is_higher_also_when_the_clock_went_back(town: Town) -> None:
    """Epochs are never used twice: a late flush of the first owner must meet a higher one in the row."""
    owner = await town.opens("s1")
    was = await town.placed("ann")
    await town.release("ann", owner, was.epoch)
    town.now -= 10 * SECOND

    again = await town.placed("ann")

    assert again.epoch > was.epoch
    assert (again.previous, again.why) == (was.epoch, "return")
    key = town.user_key("ann")
    assert await town.store.call("TTL", key, key=key) == -1, "a held record never expires"


async def test_a_repeated_release_says_the_same(town: Town) -> None:
    owner = await town.opens("s1")
    was = await town.placed("ann")
    await town.release("ann", owner, was.epoch)

    assert await town.release("ann", owner, was.epoch) == Released()
    assert [why for *_, why in await town.told()] == ["new", "released"]


async def test_a_late_release_of_an_old_session_takes_nothing_away(town: Town) -> None:
    owner = await town.opens("s1")
    was = await town.placed("ann")
    await town.release("ann", owner, was.epoch)
    again = await town.placed("ann")

    refused = await town.release("ann", owner, was.epoch)

    assert isinstance(refused, NotOwner)
    assert refused.record is not None
    assert (refused.record.owner, refused.record.epoch) == (owner, again.epoch)
    assert await town.bound("ann")


async def test_somebody_elses_user_cannot_be_released(town: Town) -> None:
    await town.opens("s1")
    was = await town.placed("ann")
    for other in (Owner("s2", "7"), Owner("s1", "8")):
        assert isinstance(await town.release("ann", other, was.epoch), NotOwner)
    assert isinstance(await town.release("nobody", Owner("s1", "7"), 1), NotOwner)
    await invariants(town)


async def test_whoever_is_on_the_move_is_not_released(town: Town) -> None:
    owner, target = await town.opens("s1"), await town.opens("s2")
    was = await town.bind("ann", owner)
    epoch = was.epoch  # type: ignore[union-attr]
    await town.marks("ann", target, left_ms=900, next_epoch=epoch + 1)

    assert isinstance(await town.release("ann", owner, epoch), NotOwner)
    await invariants(town)


async def test_the_feed_tells_it(town: Town) -> None:
    owner = await town.opens("s1")
    was = await town.placed("ann")
    await town.release("ann", owner, was.epoch, why="unbound")

    fields = (await town.feed())[-1].fields
    assert {
        name: fields[name] for name in ("event", "user", "serverId", "epoch", "why", "from", "fromLife")
    } == {
        "event": "released",
        "user": "ann",
        "serverId": "",
        "epoch": str(was.epoch),
        "why": "unbound",
        "from": "s1",
        "fromLife": "7",
    }
