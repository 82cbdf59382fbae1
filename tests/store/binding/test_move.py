"""Freeze and commit of a move, and everything else in the presence of a mark."""

from __future__ import annotations

import pytest

from roost.binding.scripts import (
    Bound,
    Committed,
    Frozen,
    Gone,
    Moving,
    NoRoom,
    NotOwner,
    Placed,
    Renewed,
    Repaired,
)
from roost.core.owner import Owner
from tests.store.binding.town import LEASE_MS, SECOND, Town, invariants


async def two(town: Town) -> tuple[Owner, Owner, int]:
    """Ann is held by the first."""
    source, target = await town.opens("s1"), await town.opens("s2")
    placed = await town.bind("ann", source)
    assert isinstance(placed, Placed)
    return source, target, placed.epoch


async def both_beat(town: Town, ms: int) -> None:
    await town.pass_ms(ms, beating=(("s1", 7), ("s2", 7)))


async def test_a_move_takes_a_seat_at_once_and_hands_over_with_the_commit(any_town: Town) -> None:
    town = any_town
    source, target, epoch = await two(town)

    promised = await town.frozen("ann", epoch, source, target)
    assert promised > epoch
    assert (await town.binders(source), await town.binders(target)) == (["ann"], ["ann"])
    assert await town.resolve("ann") == Moving(*source, epoch, 3000)
    await invariants(town)

    assert await town.commit("ann", target, promised) == Committed()
    assert await town.resolve("ann") == Bound(*target, promised, epoch)
    assert (await town.binders(source), await town.binders(target)) == ([], ["ann"])
    assert (await town.told())[-1] == ("ann", "s2", "moved")
    await invariants(town)


async def test_both_may_be_repeated(town: Town) -> None:
    source, target, epoch = await two(town)
    promised = await town.frozen("ann", epoch, source, target)
    town.now += SECOND
    assert await town.frozen("ann", epoch, source, target) == promised
    assert await town.commit("ann", target, promised) == Committed()
    told = await town.told()
    assert await town.commit("ann", target, promised) == Committed()
    assert await town.told() == told, "told once"
    assert isinstance(await town.freeze("ann", source, epoch, target), NotOwner), "it is over"
    await invariants(town)


async def test_only_the_owner_under_its_epoch_freezes(town: Town) -> None:
    source, target, epoch = await two(town)
    third = await town.opens("s3")
    for owner, under in (
        (target, epoch),
        (source, epoch - 1),
        (source, epoch + 1),
        (Owner("s1", "8"), epoch),
    ):
        refused = await town.freeze("ann", owner, under, third)
        assert isinstance(refused, NotOwner)
        assert refused.record is not None
        assert refused.record.owner == source
    assert isinstance(await town.freeze("bob", source, epoch, target), NotOwner)
    promised = await town.frozen("ann", epoch, source, target)
    assert isinstance(await town.freeze("ann", source, epoch, third, move="m2"), NotOwner), (
        "one move at a time"
    )
    assert isinstance(await town.freeze("ann", source, epoch, third), NotOwner), "to one target"
    assert await town.commit("ann", target, promised) == Committed()
    await invariants(town)


async def test_a_source_without_a_lease_freezes_nobody(town: Town) -> None:
    source, target, epoch = await two(town)
    await town.pass_ms(LEASE_MS, beating=(("s2", 7),))
    assert isinstance(await town.freeze("ann", source, epoch, target), NotOwner)
    await invariants(town)


async def test_a_target_that_takes_nobody(town: Town) -> None:
    source, target, epoch = await two(town)
    assert await town.freeze("ann", source, epoch, Owner("s2", "6")) == NoRoom("none registered")
    assert await town.freeze("ann", source, epoch, Owner("s9", "7")) == NoRoom("none registered")
    await town.sync(("s2", 7, "0"))
    assert await town.freeze("ann", source, epoch, target) == NoRoom("none willing")
    await town.sync(("s2", 7, "1"))
    await town.beat("s2", 7, cap=1)
    await town.bind("bob", target)
    assert await town.freeze("ann", source, epoch, target) == NoRoom("all full")
    await town.pass_ms(LEASE_MS, beating=(("s1", 7),))
    assert await town.freeze("ann", source, epoch, target) == NoRoom("none registered")
    assert await town.bound("ann") == Bound(*source, epoch, 0)
    await invariants(town)


async def test_i5_the_last_seat_is_taken_by_one_move(town: Town) -> None:
    source, target, epoch = await two(town)
    other = await town.bind("bob", source)
    assert isinstance(other, Placed)
    await town.beat("s2", 7, cap=1)
    await town.frozen("ann", epoch, source, target)
    assert await town.freeze("bob", source, other.epoch, target) == NoRoom("all full")
    await town.renew("ann", source, why="returned")
    assert isinstance(await town.freeze("bob", source, other.epoch, target), Frozen), (
        "the seat was given back"
    )
    await invariants(town)


async def test_going_back_ends_the_mark_above_what_was_promised(town: Town) -> None:
    source, target, epoch = await two(town)
    promised = await town.frozen("ann", epoch, source, target)

    back = await town.renew("ann", source, epoch, why="returned")

    assert isinstance(back, Renewed)
    assert back.epoch > promised
    assert await town.bound("ann") == Bound(*source, back.epoch, epoch)
    assert (await town.binders(source), await town.binders(target)) == (["ann"], [])
    assert (await town.told())[-1] == ("ann", "s1", "returned")
    await invariants(town)


async def test_i6_a_late_commit_after_the_source_went_back_changes_nothing(town: Town) -> None:
    source, target, epoch = await two(town)
    promised = await town.frozen("ann", epoch, source, target)
    back = await town.renew("ann", source, epoch, why="returned")
    assert isinstance(back, Renewed)

    late = await town.commit("ann", target, promised)

    assert isinstance(late, Gone)
    assert late.record is not None
    assert (late.record.owner, late.record.epoch) == (source, back.epoch)
    again = await town.frozen("ann", back.epoch, source, target, move="m2")
    assert isinstance(await town.commit("ann", target, promised), Gone), "nor in the next move"
    assert isinstance(await town.commit("ann", target, again), Gone), "by the id of the first"
    assert await town.commit("ann", target, again, move="m2") == Committed()
    await invariants(town)


async def test_i6_a_late_freeze_after_the_source_went_back_changes_nothing(town: Town) -> None:
    source, target, epoch = await two(town)
    await town.renew("ann", source, epoch, why="returned")
    assert isinstance(await town.freeze("ann", source, epoch, target), NotOwner)
    assert await town.binders(target) == []


async def test_a_target_without_a_lease_commits_nothing(town: Town) -> None:
    source, target, epoch = await two(town)
    promised = await town.frozen("ann", epoch, source, target, ttl_ms=60_000)
    await town.pass_ms(LEASE_MS, beating=(("s1", 7),))
    assert isinstance(await town.commit("ann", target, promised), Gone)
    await town.beat("s2")
    assert await town.commit("ann", target, promised) == Committed()


async def test_a_mark_whose_time_is_over_may_be_committed_until_somebody_resolves_it(town: Town) -> None:
    source, target, epoch = await two(town)
    promised = await town.frozen("ann", epoch, source, target)
    await both_beat(town, 3000)
    assert await town.commit("ann", target, promised) == Committed()

    other = await town.bind("bob", source)
    assert isinstance(other, Placed)
    promised = await town.frozen("bob", other.epoch, source, target)
    await both_beat(town, 3000)
    resolved = await town.placed("bob")
    assert (resolved.owner, resolved.why) == (source, "move-expired")
    assert resolved.epoch > promised
    assert isinstance(await town.commit("bob", target, promised), Gone)
    await invariants(town)


async def test_bind_and_release_leave_a_mark_alone(town: Town) -> None:
    source, target, epoch = await two(town)
    promised = await town.frozen("ann", epoch, source, target)
    assert isinstance(await town.bind("ann", target), Moving)
    assert isinstance(await town.release("ann", source, epoch), NotOwner)
    assert isinstance(await town.release("ann", target, promised), NotOwner)
    await invariants(town)


async def test_whoever_is_on_the_move_is_not_idle(town: Town) -> None:
    source, target, epoch = await two(town)
    promised = await town.frozen("ann", epoch, source, target, ttl_ms=60_000)
    await both_beat(town, 3000)
    ticked = await town.tick(idle_ms=1000)
    assert getattr(ticked, "idle", None) == 0
    assert await town.commit("ann", target, promised) == Committed()
    await both_beat(town, 3000)
    assert getattr(await town.tick(idle_ms=1000), "idle", None) == 1, "after it they may be"
    await invariants(town)


async def test_the_source_is_buried_and_the_move_goes_on(town: Town) -> None:
    source, target, epoch = await two(town)
    promised = await town.frozen("ann", epoch, source, target)
    await town.bury("s1")
    await town.replace("s1")
    assert await town.commit("ann", target, promised) == Committed()
    assert await town.binders(source) == []
    await invariants(town)


async def test_the_source_is_buried_and_its_user_is_placed_when_the_mark_is_over(town: Town) -> None:
    source, target, epoch = await two(town)
    promised = await town.frozen("ann", epoch, source, target, ttl_ms=1000)
    await town.bury("s1")
    await town.pass_ms(1000, beating=(("s2", 7),))
    await town.replace("s1")
    placed = await town.bound("ann")
    assert placed.owner == target
    assert placed.epoch > promised
    await invariants(town)


async def test_the_target_is_buried_and_the_source_goes_back(town: Town) -> None:
    source, target, epoch = await two(town)
    promised = await town.frozen("ann", epoch, source, target)
    await town.bury("s2")
    assert isinstance(await town.commit("ann", target, promised), Gone)
    assert isinstance(await town.renew("ann", source, epoch, why="returned"), Renewed)
    assert await town.binders(target) == []
    await invariants(town)


@pytest.mark.parametrize("lost", ["freeze", "commit"])
async def test_i7_a_failover_that_loses_a_step(town: Town, lost: str) -> None:
    source, target, epoch = await two(town)
    copied = await town.copy()
    promised = await town.frozen("ann", epoch, source, target)
    if lost == "commit":
        copied = await town.copy()
        assert await town.commit("ann", target, promised) == Committed()
    await town.fails_over_to(copied)

    if lost == "freeze":
        assert isinstance(await town.commit("ann", target, promised), Gone)
        back = await town.renew("ann", source, max(epoch, promised), why="returned")
        assert isinstance(back, Renewed)
        assert back.epoch > promised
    else:
        [record] = await town.reassert(target, ("ann", promised))
        assert record is not None
        assert (record.owner, record.epoch) == (target, promised)
        assert isinstance(await town.renew("ann", source, epoch, why="returned"), NotOwner)
    await invariants(town)


async def test_a_repair_ends_a_mark(town: Town) -> None:
    """The commit was lost, the source took the user back: the row's owner gets them by repair."""
    source, target, epoch = await two(town)
    promised = await town.frozen("ann", epoch, source, target)
    repaired = await town.repair("ann", source, epoch, target, promised)
    assert isinstance(repaired, Repaired)
    assert repaired.epoch > promised
    assert await town.binders(source) == []
    await invariants(town)


async def test_many_are_frozen_at_once_and_each_is_judged_alone(town: Town) -> None:
    source, _, epoch = await two(town)
    third = await town.opens("s3", cap=2)
    bob, cat, dan = [(await town.bind(user, source)).epoch for user in ("bob", "cat", "dan")]  # type: ignore[union-attr]

    answers = await town.freezes(
        source,
        third,
        ("ann", epoch, "m1"),
        ("bob", bob - 1, "m2"),
        ("eve", 1, "m3"),
        ("cat", cat, "m4"),
        ("dan", dan, "m5"),
    )

    first, not_now, nobody, second, full = answers
    assert isinstance(first, Frozen)
    assert isinstance(second, Frozen)
    assert isinstance(not_now, NotOwner)
    assert not_now.record is not None
    assert (not_now.record.owner, not_now.record.epoch) == (source, bob)
    assert isinstance(nobody, NotOwner)
    assert nobody.record is None
    assert full == NoRoom("all full"), "the seats of those before count"
    assert await town.binders(third) == ["ann", "cat"]
    await invariants(town)


async def test_many_are_committed_at_once_and_each_is_judged_alone(town: Town) -> None:
    source, target, epoch = await two(town)
    bob = (await town.bind("bob", source)).epoch  # type: ignore[union-attr]
    cat = (await town.bind("cat", source)).epoch  # type: ignore[union-attr]
    frozen = await town.freezes(source, target, ("ann", epoch, "m1"), ("bob", bob, "m2"), ("cat", cat, "m3"))
    ann, bob, cat = [answer.epoch for answer in frozen if isinstance(answer, Frozen)]
    back = await town.renew("bob", source, bob)
    assert isinstance(back, Renewed)

    first, gone, second = await town.commits(
        target, ("ann", "m1", ann), ("bob", "m2", bob), ("cat", "m3", cat)
    )

    assert (first, second) == (Committed(), Committed())
    assert isinstance(gone, Gone)
    assert gone.record is not None
    assert (gone.record.owner, gone.record.epoch) == (source, back.epoch)
    assert [(user, server) for user, server, why in await town.told() if why == "moved"] == [
        ("ann", "s2"),
        ("cat", "s2"),
    ]
    assert (await town.binders(source), await town.binders(target)) == (["bob"], ["ann", "cat"])
    await invariants(town)
