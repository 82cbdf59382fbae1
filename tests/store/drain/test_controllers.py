"""A job outlives its controller: another goes on from the store, and nobody is moved or counted twice."""

from __future__ import annotations

import asyncio

import pytest

from roost.binding.drain.model import Order, Progress
from roost.binding.drain.movers import WireMovers
from roost.binding.drain.records import (
    Deposed,
    JobRecords,
    NotSo,
    Running,
    Saved,
    Started,
    Turn,
    Turned,
    Unknown,
)
from roost.binding.drain.runner import Runner
from roost.binding.drain.view import View
from roost.core.lease import Tenure
from roost.store.scopes import drain
from roost.store.store import Store
from roost.testing.waiting import eventually
from tests.store.drain.town import SECRET, TYPE, Town

USERS = [f"u{number:03}" for number in range(60)]


def order(id_: str = "j1", *servers: str) -> Order:
    names = list(servers or ("501",))
    return Order(
        id=id_,
        type=TYPE,
        kind="drain",
        sources=names,
        lives=dict.fromkeys(names, "7"),
        to=[],
        version="",
        rate=100,
        canary=0,
        max_block_ms=500,
        deadline_s=10.0,
        quota={},
        by="",
    )


async def led(store: Store) -> Tenure:
    """A grant of its own, whoever led before."""
    key = store.keys.leader(drain())
    await store.call("DEL", key, key=key)
    tenure = await store.leader(drain(), "test").campaign()
    assert isinstance(tenure, Tenure)
    return tenure


async def test_one_job_moves_the_users_of_a_server(store: Store) -> None:
    records = JobRecords(store)
    assert isinstance(await records.start(order("j1", "501", "502")), Started)

    assert await records.start(order("j2", "503", "502")) == Running("j1")
    assert isinstance(await records.start(order("j3", "503")), Started)
    assert await records.holder(TYPE, "503") == "j3", "the one that was refused has taken nothing"


async def test_a_start_whose_answer_was_lost_is_repeated(store: Store) -> None:
    records = JobRecords(store)
    first = await records.start(order())
    assert await records.start(order()) == first
    assert [job.id for job in await records.running()] == ["j1"]


async def test_the_feed_hears_of_every_state_of_a_job_once(store: Store) -> None:
    records = JobRecords(store)
    await records.start(order())
    await records.start(order())
    tenure, job = await led(store), (await records.get("j1")).job
    await records.save(tenure, "j1", Progress(), Turn("running", "running"))
    for _ in range(2):
        await records.turn(job, "paused", "ordered", ("running",))
    await records.turn(job, "running", "", ("paused",))
    await records.save(tenure, "j1", Progress(), Turn("running", "done", "all left", free=True, ended=True))
    await records.turn(job, "paused", "ordered", ("running",))

    told = [(entry.fields["event"], entry.fields["why"]) for entry in await store.feed(drain()).newest(10)]

    assert told == [("started", ""), ("paused", "ordered"), ("running", ""), ("done", "all left")]
    (first, *_) = await store.feed(drain()).newest(10)
    assert (first.fields["job"], first.fields["type"], first.fields["parts"]) == ("j1", TYPE, "501:7")


async def test_an_old_controller_writes_nothing(store: Store) -> None:
    records = JobRecords(store)
    await records.start(order())
    old = await led(store)
    assert isinstance(await records.save(old, "j1", Progress(), Turn("running", "running")), Saved)
    new = await led(store)

    late = Progress(counts={"moved": 99})
    answer = await records.save(old, "j1", late, Turn("running", "done", ended=True), ["+ann\t501"])

    assert answer == Deposed()
    kept = await records.get("j1")
    assert (kept.state, kept.progress.counts["moved"]) == ("running", 0)
    assert await records.moved("j1", "", 10) == []
    assert isinstance(await records.save(new, "j1", Progress(), Turn("running", "running")), Saved)


async def test_what_an_operator_ordered_meanwhile_stands(store: Store) -> None:
    records = JobRecords(store)
    await records.start(order())
    tenure = await led(store)
    job = (await records.get("j1")).job
    assert await records.turn(job, "cancelled", "ordered", ("running",)) == Turned()

    saved = await records.save(
        tenure, "j1", Progress(), Turn("running", "reconciling", free=True, ended=True)
    )

    assert saved == Saved("cancelled", "ordered")
    assert [one.state for one in await records.running()] == ["cancelled"]
    assert await records.holder(TYPE, "501") == "j1"


async def test_a_job_that_has_ended_takes_its_servers_again_or_says_who_has_them(store: Store) -> None:
    records = JobRecords(store)
    await records.start(order())
    tenure = await led(store)
    await records.save(tenure, "j1", Progress(), Turn("running", "done", free=True, ended=True))
    job = (await records.get("j1")).job
    assert job.is_over
    assert await records.running() == []
    assert await records.turn(job, "paused", "", ("running",)) == NotSo("done")

    await records.start(order("j2"))
    assert await records.turn(job, "rolling-back", "", ("done",)) == Running("j2")
    await records.save(tenure, "j2", Progress(), Turn("running", "done", free=True, ended=True))
    assert await records.turn(job, "rolling-back", "", ("done",)) == Turned()
    assert await records.holder(TYPE, "501") == "j1"
    assert await records.start(order("j3")) == Running("j1")


async def test_what_was_moved_is_listed_in_pages_and_taken_out(store: Store) -> None:
    records = JobRecords(store)
    await records.start(order())
    tenure = await led(store)
    stay = Turn("running", "running")
    await records.save(tenure, "j1", Progress(), stay, [f"+{user}\t501" for user in ("b", "a", "ab", "a")])

    assert await records.moved("j1", "", 2) == [("a", "501"), ("ab", "501")]
    assert await records.moved("j1", "ab", 2) == [("b", "501")]
    assert await records.moved("j1", "a", 1) == [("ab", "501")]
    await records.save(tenure, "j1", Progress(), stay, ["-a\t501"])
    assert [user for user, _ in await records.moved("j1", "", 9)] == ["ab", "b"]


async def test_of_many_jobs_the_oldest_that_ended_are_forgotten(store: Store) -> None:
    records = JobRecords(store)
    tenure = await led(store)
    await records.start(order("first", "900"))
    for number in range(205):
        await records.start(order(f"j{number}", f"s{number}"))
        await records.save(tenure, f"j{number}", Progress(), Turn("running", "done", free=True, ended=True))

    kept = {job.order.id for job in await records.list(1000)}

    assert "first" in kept, "it has not ended"
    assert "j0" not in kept
    assert "j204" in kept
    assert len(kept) <= 202
    assert await records.save(tenure, "j0", Progress(), Turn("running", "running")) == Unknown()


async def test_a_new_controller_goes_on_and_nobody_is_moved_or_counted_twice(town: Town) -> None:
    old, _ = await town.open("501"), await town.open("502")
    await town.settle(old, *USERS)
    tenure = await led(town.store)
    job = await town.start("501", rate=500)
    first = runner(town, tenure, await town.drains.records.get(job.id))
    while len(old.moved) < 20:
        await first.step()
    old.gate.clear()
    while not old.at_once:
        await first.step()
    # it is killed: what it has sent is carried out, and nobody hears the answers
    old.gate.set()
    await eventually(lambda: not old.at_once, "what it sent is carried out")
    unheard = len(old.moved) - (await town.drains.get(job.id)).counts["moved"]
    assert unheard > 0

    await led(town.store)
    town.lead()
    key = town.store.keys.leader(drain())
    await town.store.call("DEL", key, key=key)
    done = await town.becomes(job, "done", over=True)

    assert await town.owners(USERS) == {"502": len(USERS)}
    assert set(old.moved.values()) == {1}
    assert (done.counts["moved"], done.counts["gone"], done.counts["users"]) == (60, 0, 60)
    assert len(await town.drains.records.moved(job.id, "", 1000)) == 60
    assert await first.step() is not None, "the one that was deposed ends"
    assert (await town.drains.get(job.id)).counts == done.counts


async def test_of_two_managers_the_other_finishes_when_one_stops(town: Town) -> None:
    old, _ = await town.open("501"), await town.open("502")
    await town.settle(old, *USERS)
    one, other = town.drains, town.new_drains()
    leading = town.lead(one)
    await eventually(lambda: one.controller.leading, "one leads")
    job = await town.start("501", rate=60)
    await eventually(lambda: len(old.moved) > 5, "some have moved")
    town.lead(other)

    leading.cancel()
    await asyncio.gather(leading, return_exceptions=True)
    done = await town.becomes(job, "done", over=True)

    assert other.controller.leading
    assert set(old.moved.values()) == {1}
    assert (done.counts["moved"], done.counts["gone"]) == (60, 0)


@pytest.mark.parametrize("taken", [0, 10])
async def test_the_gates_are_heard_before_the_first_move_and_at_the_end(town: Town, taken: int) -> None:
    old, _ = await town.open("501"), await town.open("502")
    await town.settle(old, *USERS)
    gate = await town.gate("601")
    town.lead()
    job = await town.start("501")
    await eventually(lambda: bool(town.drains.controller.running), "the job is taken up")
    assert not old.moves, "the gate does not count yet"

    await gate.tell(job, final=False)
    await town.becomes(job, "reconciling")
    await gate.tell(job, final=True, taken=taken)
    done = await town.becomes(job, "done", over=True)

    certificate = await town.drains.report(job.id)
    assert certificate is not None
    assert certificate == done.certificate
    assert (certificate["holds"], certificate["missing"], certificate["requests"]) == (True, [], taken)
    assert certificate["moved"] == 60
    await gate.tell(job, final=True, taken=99)
    assert (await town.drains.told(job.id))[gate.name].taken == taken, "the job has ended"


async def test_a_gate_that_says_nothing_makes_the_certificate_incomplete(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roost.binding.drain.ending.FIRST_REPORTS_S", 0.1)
    monkeypatch.setattr("roost.binding.drain.ending.LAST_REPORTS_S", 0.1)
    old, _ = await town.open("501"), await town.open("502")
    await town.settle(old, "ann")
    gate = await town.gate("601")
    town.lead()

    done = await town.becomes(await town.start("501"), "done", over=True)

    assert done.certificate is not None
    assert (done.certificate["holds"], done.certificate["missing"]) == (False, [gate.name])
    assert done.certificate["lost"] is None


def runner(town: Town, tenure: Tenure, kept: object) -> Runner:
    """A controller's hand in the test's."""
    records = town.drains.records
    view = View(town.discovery, town.bindings, records, TYPE)
    return Runner(kept, tenure, records, view, WireMovers(lambda: SECRET))  # type: ignore[arg-type]
