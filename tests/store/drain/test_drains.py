"""Jobs from the order to the end, on a real store, over the real wire."""

from __future__ import annotations

from typing import Any

import pytest

from roost.api.drain import MAX_BLOCK_MS, NowhereToMove, SchemaPoint, UnknownJob, WrongJobState
from roost.binding.drain import outward
from roost.binding.drain.line import is_canary
from roost.binding.drain.model import DrainRequest
from roost.binding.drain.outward import AT_TARGET
from roost.testing.waiting import eventually
from tests.store.drain.town import TYPE, Town

USERS = [f"u{number:03}" for number in range(40)]


async def test_a_drained_server_is_empty_closed_and_told_to_leave(town: Town) -> None:
    old, new = await town.open("501"), await town.open("502", "2.0")
    await town.settle(old, *USERS)
    town.lead()

    job = await town.start("501", by="ann")
    done = await town.becomes(job, "done", over=True)

    assert await town.owners(USERS) == {"502": len(USERS)}
    assert (done.counts["users"], done.counts["moved"], done.left) == (40, 40, 0)
    assert all(count == 1 for count in old.moved.values())
    assert old.retired
    assert not new.retired
    assert old.roles == {"manager"}
    assert done.pauses.max_ms == 4.0
    assert sum(done.pauses.counts) == 40
    assert (done.by, done.why) == ("ann", "")
    rows = {row.server_id: row for row in await town.bindings.servers(TYPE)}
    assert not rows["501"].open
    assert rows["501"].users == 0


async def test_whoever_is_bound_but_not_in_memory_is_released(town: Town) -> None:
    old, _ = await town.open("501"), await town.open("502")
    await town.settle(old, "ann")
    await town.settle(old, "bob", "cat", cached=False)
    town.lead()

    done = await town.becomes(await town.start("501"), "done", over=True)

    assert (done.counts["moved"], done.counts["released"]) == (1, 2)
    assert old.moves[:2] == ["bob", "cat"], "they cost nobody anything: they go first"
    assert await town.owner("bob") == ""


async def test_the_result_of_each_move_is_noted(town: Town) -> None:
    old, _ = await town.open("501"), await town.open("502")
    await town.settle(old, "ann")
    old.judge = lambda user, force: ("returned", "slow") if old.moves == ["ann"] else None
    town.lead()

    job = await town.becomes(await town.start("501"), "done", over=True)

    notes = await town.bindings.moves(TYPE, "ann")
    assert [(one.outcome, one.why, one.source, one.target) for one in notes] == [
        ("moved", "", "501", "502"),
        ("returned", "slow", "501", "502"),
    ]
    assert notes[0].job == job.id
    assert notes[0].phases["total"] == 4.0
    assert (job.counts["moved"], job.counts["returned"]) == (1, 1)


async def test_a_second_request_answers_with_the_running_job(town: Town) -> None:
    old = await town.open("501")
    await town.open("502")
    await town.open("503")
    await town.settle(old, "ann")
    old.gate.clear()
    town.lead()

    first = await town.start("501")
    again = await town.start("501")

    assert again.id == first.id
    with pytest.raises(WrongJobState, match=f"{first.id} empties 501, and not 503"):
        await town.start("503", "501")
    assert [job.id for job in await town.drains.running()] == [first.id]
    old.gate.set()
    await town.becomes(first, "done", over=True)


async def test_a_paused_job_moves_nobody_until_it_is_resumed(town: Town) -> None:
    old, _ = await town.open("501"), await town.open("502")
    await town.settle(old, *USERS)
    job = await town.start("501")
    await town.drains.pause(job.id)
    town.lead()

    await eventually(lambda: bool(town.drains.controller.running), "the job is taken up")
    assert not old.moves
    await town.drains.resume(job.id)

    await town.becomes(job, "done", over=True)
    assert await town.owners(USERS) == {"502": len(USERS)}


async def test_a_cancelled_job_opens_its_server_again_and_it_may_be_drained_again(town: Town) -> None:
    old, _ = await town.open("501"), await town.open("502")
    await town.settle(old, *USERS)
    town.lead()
    job = await town.start("501", rate=10)
    await eventually(lambda: len(old.moves) > 2, "some have moved")

    await town.drains.cancel(job.id)
    cancelled = await town.becomes(job, "cancelled", over=True)

    moved = (await town.owners(USERS))["502"]
    assert cancelled.counts["moved"] == moved < len(USERS)
    detail = await town.discovery.get(old.instance_id)
    assert detail.instance is not None
    assert detail.instance.willing
    with pytest.raises(WrongJobState):
        await town.drains.pause(job.id)
    again = await town.becomes(await town.start("501"), "done", over=True)
    assert again.id != job.id
    assert again.counts["moved"] == len(USERS) - moved


async def test_a_canary_pauses_by_itself_and_goes_on_when_it_is_resumed(town: Town) -> None:
    old, _ = await town.open("501"), await town.open("502")
    await town.settle(old, *USERS)
    town.lead()

    job = await town.start("501", canary=20, max_block_ms=MAX_BLOCK_MS)  # no answer is late on a busy machine
    paused = await town.becomes(job, "paused")

    first = [user for user in USERS if is_canary(user, job.id, 20)]
    assert paused.why == "canary"
    assert sorted(old.moved) == first
    assert 0 < len(first) < len(USERS)
    await town.drains.resume(job.id)
    await town.becomes(job, "done", over=True)
    assert await town.owners(USERS) == {"502": len(USERS)}


async def test_a_canary_whose_moves_come_back_stops(town: Town) -> None:
    old, _ = await town.open("501"), await town.open("502")
    await town.settle(old, *USERS)
    old.judge = lambda user, force: ("returned", "digests differ")
    town.lead()

    paused = await town.becomes(await town.start("501", canary=50, max_block_ms=MAX_BLOCK_MS), "paused")

    assert paused.why.startswith("canary: ")
    assert "digests differ" in paused.why
    assert await town.owners(USERS) == {"501": len(USERS)}


async def test_a_job_whose_moves_all_come_back_pauses_and_goes_on_by_itself(town: Town) -> None:
    old, _ = await town.open("501"), await town.open("502")
    await town.settle(old, *USERS)
    old.judge = lambda user, force: ("returned", "the database does not answer")
    town.lead()

    job = await town.start("501")
    paused = await town.becomes(job, "paused")
    assert paused.why == "blocked: the database does not answer"
    old.judge = lambda user, force: None

    done = await town.becomes(job, "done", over=True)
    assert done.counts["moved"] == len(USERS)


async def test_the_pinned_are_named_and_moved_after_the_deadline(town: Town) -> None:
    old, _ = await town.open("501"), await town.open("502")
    await town.settle(old, "ann", "bob", "cat")
    old.cached["ann"] = (True, 0, True, "pinned", "in a duel", 0)
    old.cached["bob"] = (True, 0, True, "later", "", 50)
    old.judge = lambda user, force: None if force or user == "cat" else ("pinned", "in a duel")
    town.lead()

    plan = await town.drains.plan(DrainRequest(servers=["501"]))
    assert (plan.pinned, plan.later, plan.users) == ({"ann": "in a duel"}, 1, 3)
    job = await town.start("501", deadline_s=1.0)
    await eventually(lambda: "cat" in old.moved, "cat has moved")
    waiting = await town.drains.get(job.id)
    done = await town.becomes(job, "done", over=True)

    assert waiting.pinned == {"ann": "in a duel"}
    assert waiting.counts["users"] == 3
    assert (done.counts["moved"], done.counts["forced"]) == (3, 2)


async def test_a_party_moves_in_one_call_to_one_server(town: Town) -> None:
    old = await town.open("501")
    await town.open("502")
    await town.open("503")
    await town.settle(old, *USERS[:10])
    party = USERS[2:6]
    for user in party:
        old.cached[user] = (True, 0, False, "now", "raid", 0)
    town.lead()

    done = await town.becomes(await town.start("501"), "done", over=True)

    assert done.counts["moved"] == 10
    assert len(await town.owners(party)) == 1


async def test_a_party_that_is_too_large_holds_up_nobody_and_goes_when_the_deadline_is_over(
    town: Town,
) -> None:
    old, _ = await town.open("501"), await town.open("502")
    party = [f"p{number:03}" for number in range(AT_TARGET + 1)]
    await town.settle(old, *party, "zoe")
    for user in party:
        old.cached[user] = (False, 99_000, False, "now", "raid", 0)
    old.alone_by_force = True
    town.lead()

    job = await town.start("501", deadline_s=3.0)
    await eventually(lambda: "zoe" in old.moved, "whoever stands behind them has moved")
    assert list(old.moved) == ["zoe"]
    done = await town.becomes(job, "done", over=True)

    assert done.counts["moved"] == AT_TARGET + 2
    assert done.counts["forced"] == AT_TARGET + 1


async def test_the_source_that_died_ends_its_part_and_the_job_fails(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, other = await town.open("501"), await town.open("502")
    await town.settle(old, *USERS)
    old.gate.clear()
    town.lead()
    job = await town.start("501")
    await eventually(lambda: bool(old.at_once), "moves are under way")

    await old.die()
    monkeypatch.setattr(outward, "GONE_S", 0.5)
    failed = await town.becomes(job, "failed", over=True)

    assert "501 ended" in failed.why
    assert not other.retired


async def test_a_source_that_was_frozen_beyond_its_lease_is_emptied_under_its_next_life(town: Town) -> None:
    """The map places its users anew; it takes no others meanwhile, and leaves."""
    old, _ = await town.open("501"), await town.open("502")
    await town.settle(old, *USERS)
    old.gate.clear()
    town.lead()
    job = await town.start("501")
    await eventually(lambda: bool(old.at_once), "moves are under way")
    first = old.owner

    await old.register_again()
    old.gate.set()
    done = await town.becomes(job, "done", over=True)

    assert old.retired
    assert (first.life, done.lives) != (old.owner.life, {"501": first.life})
    assert done.lives == {"501": old.owner.life}
    assert [
        row.open for row in await town.bindings.servers(TYPE) if row.server_id == "501" and row.alive
    ] == [False]
    await town.drains.rollback(job.id)
    await town.becomes(job, "cancelled", over=True)
    assert not old.retired


async def test_a_source_whose_death_is_noticed_late_ends_its_part_all_the_same(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By then so many moves have failed that the job waits, as if the database were away."""
    old, _ = await town.open("501"), await town.open("502")
    await town.settle(old, *USERS)
    town.lead()
    old.gate.clear()
    job = await town.start("501")
    await eventually(lambda: bool(old.at_once), "moves are under way")

    await old.stop()
    paused = await town.becomes(job, "paused")
    await old.die()
    monkeypatch.setattr(outward, "GONE_S", 0.5)

    assert paused.why.startswith("blocked: ")
    assert "501 ended" in (await town.becomes(job, "failed", over=True)).why


async def test_a_target_that_cannot_be_reached_is_left_out(town: Town) -> None:
    old = await town.open("501")
    await town.open("502")
    await town.open("503")
    await town.settle(old, *USERS)
    old.cut_off.add("502")
    town.lead()

    done = await town.becomes(await town.start("501"), "done", over=True)

    assert await town.owners(USERS) == {"503": len(USERS)}
    assert done.counts["moved"] == len(USERS)
    assert 0 < done.counts["returned"] <= len(USERS)


async def test_everybody_whom_a_job_moved_goes_back(town: Town) -> None:
    old, new = await town.open("501"), await town.open("502", "2.0")
    await town.settle(old, *USERS)
    await town.settle(new, "native")
    town.lead()
    job = await town.becomes(await town.start("501"), "done", over=True)
    assert old.retired

    await town.drains.rollback(job.id)
    back = await town.becomes(job, "cancelled", over=True)

    assert await town.owners(USERS) == {"501": len(USERS)}
    assert await town.owner("native") == "502"
    assert back.counts["back"] == len(USERS)
    assert back.why == "rolled back: 40 users are back"
    assert not old.retired
    again = await town.becomes(await town.start("501"), "done", over=True)
    assert again.counts["moved"] == len(USERS)


async def test_a_rollback_in_the_middle_brings_back_who_has_moved(town: Town) -> None:
    old, _ = await town.open("501"), await town.open("502", "2.0")
    await town.settle(old, *USERS)
    town.lead()
    job = await town.start("501", rate=20)
    await eventually(lambda: len(old.moved) > 5, "some have moved")

    await town.drains.rollback(job.id)
    back = await town.becomes(job, "cancelled", over=True)

    assert await town.owners(USERS) == {"501": len(USERS)}
    assert back.counts["back"] == back.counts["moved"] == len(old.moved)


async def test_a_version_to_which_nobody_moved_does_not_stand_in_the_way_back(town: Town) -> None:
    old = await town.open("501", labels={"schemaVersion": "1"})
    await town.open("502", "2.0", labels={"schemaVersion": "1", "minReader": "1"})
    third = await town.open("503", "3.0", labels={"schemaVersion": "3", "minReader": "3"})
    await town.settle(old, *USERS)
    await town.settle(third, "native")
    town.lead()
    job = await town.becomes(await town.start("501", version="2.0"), "done", over=True)

    await town.drains.rollback(job.id)
    back = await town.becomes(job, "cancelled", over=True)

    assert await town.owners(USERS) == {"501": len(USERS)}
    assert back.counts["back"] == len(USERS)


@pytest.mark.parametrize("wanted", [{"version": "2.0"}, {"to": ["502"]}, {}])
async def test_there_is_no_way_back_from_rows_that_the_source_cannot_read(
    town: Town, wanted: dict[str, Any]
) -> None:
    old = await town.open("501", labels={"schemaVersion": "1"})
    await town.open("502", "2.0", labels={"schemaVersion": "2", "minReader": "2"})
    await town.settle(old, "ann")
    town.lead()
    job = await town.becomes(await town.start("501", **wanted), "done", over=True)

    with pytest.raises(SchemaPoint):
        await town.drains.rollback(job.id)
    assert await town.owner("ann") == "502"


async def test_there_is_no_way_back_to_a_server_that_ended(town: Town) -> None:
    old, _ = await town.open("501"), await town.open("502")
    await town.settle(old, "ann")
    town.lead()
    job = await town.becomes(await town.start("501"), "done", over=True)
    await old.die()

    with pytest.raises(NowhereToMove):
        await town.drains.rollback(job.id)


async def test_a_rebalance_moves_no_more_than_its_budget(town: Town) -> None:
    crowded, empty = await town.open("501"), await town.open("502")
    await town.settle(crowded, *USERS)
    town.lead()

    job = await town.drains.start(DrainRequest(kind="rebalance", users=7, rate=1000))
    done = await town.becomes(job, "done", over=True)

    assert await town.owners(USERS) == {"501": 33, "502": 7}
    assert (done.counts["moved"], done.counts["users"]) == (7, 7)
    assert not crowded.retired
    assert not empty.retired
    detail = await town.discovery.get(crowded.instance_id)
    assert detail.instance is not None
    assert detail.instance.willing


async def test_a_rebalance_evens_out(town: Town) -> None:
    crowded = await town.open("501")
    await town.open("502")
    await town.settle(crowded, *USERS)
    town.lead()

    job = await town.drains.start(DrainRequest(kind="rebalance", rate=1000))
    await town.becomes(job, "done", over=True)

    assert await town.owners(USERS) == {"501": 20, "502": 20}


async def test_the_emptiest_go_when_fewer_are_needed(town: Town) -> None:
    full, emptier, empty = await town.open("501"), await town.open("502"), await town.open("503")
    await town.settle(full, *USERS[:20])
    await town.settle(emptier, *USERS[20:28])
    await town.settle(empty, *USERS[28:30])
    wanted = DrainRequest(emptiest=2, rate=10_000)
    plan = await town.drains.plan(wanted)
    assert [one.server_id for one in plan.sources] == ["503", "502"]

    job = await town.drains.start(wanted)
    again = await town.drains.start(wanted)
    assert again.id == job.id, "an order that is repeated empties no others"
    town.lead()
    await town.becomes(job, "done", over=True)

    assert await town.owners(USERS[:30]) == {"501": 30}
    assert (full.retired, emptier.retired, empty.retired) == (False, True, True)
    with pytest.raises(NowhereToMove):
        await town.drains.start(DrainRequest(emptiest=1))


async def test_the_emptiest_are_not_those_that_take_them(town: Town) -> None:
    crowded, _ = await town.open("501"), await town.open("502")
    await town.settle(crowded, "ann")
    job = await town.drains.start(DrainRequest(emptiest=1, to=["502"]))
    assert job.sources == ["501"]


async def test_what_a_request_leaves_open_is_as_it_is_set(town: Town) -> None:
    await town.open("501")
    await town.open("502")
    job = await town.drains.start(DrainRequest(servers=["501"]))
    assert (job.rate, job.max_block_ms, job.deadline_s) == (100, 500, 300.0)


async def test_a_job_that_nobody_knows(town: Town) -> None:
    with pytest.raises(UnknownJob):
        await town.drains.get("nothing")
    with pytest.raises(UnknownJob):
        await town.drains.cancel("nothing")
