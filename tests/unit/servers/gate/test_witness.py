"""The witness counts for every job that runs, and tells a last report when all is settled."""

from __future__ import annotations

import asyncio
from typing import ClassVar

import pytest

from roost.api.drain import JobState
from roost.binding.drain.certificate import GateReport, gate_name, reconcile
from roost.binding.drain.model import RunningJob
from roost.core.errors import StoreUnavailable
from roost.servers.gate.witness import MOST_CLOSED, TELL_S, Witness
from roost.wire.codes import Code
from tests.unit.servers.gate.carried import HOME, OTHER, Carried

NAME = gate_name("gate-1", "1")


class AJob:
    id = "job-1"
    counts: ClassVar[dict[str, int]] = {"users": 1, "moved": 1}


class Board:
    """The jobs, and what gates told of them."""

    def __init__(self) -> None:
        self.states: dict[str, JobState] = {}
        self.told: dict[str, list[GateReport]] = {}
        self.others: dict[str, GateReport] = {}
        """By gates of other names."""
        self.asked = 0
        self.is_away = False
        self.deaf_to = ""
        self.is_slow: asyncio.Event | None = None

    async def running(self) -> list[RunningJob]:
        self._answer()
        self.asked += 1
        return [RunningJob(id_, "entity", (), state, 1) for id_, state in self.states.items()]

    async def tell(self, job_id: str, gate: str, report: GateReport) -> None:
        self._answer()
        if self.is_slow is not None:
            await self.is_slow.wait()
        if job_id == self.deaf_to:
            raise StoreUnavailable("not now")
        assert gate == report.gate
        if gate == NAME:
            self.told.setdefault(job_id, []).append(report)
        else:
            self.others[gate] = report

    def _answer(self) -> None:
        if self.is_away:
            raise StoreUnavailable("away")


class Scene:
    def __init__(self, **terms: int) -> None:
        self.town = Carried()
        self.board = Board()
        self.name = NAME
        self.witness = Witness(
            self.board, self.town, self.town.books, lambda: self.name, clock=self.town.clock, **terms
        )

    def last(self, job: str = "job-1") -> GateReport:
        return self.board.told[job][-1]


async def test_no_job_no_counting() -> None:
    scene = Scene()
    await scene.witness.step()
    assert (scene.town.carrier.books, scene.board.told, scene.board.asked) == ((), {}, 1)


async def test_a_job_is_told_of_at_once_and_its_end_when_all_is_settled() -> None:
    scene = Scene()
    scene.town.settle()
    scene.town.say("before")
    scene.board.states["job-1"] = "running"
    await scene.witness.step()
    assert (scene.last().is_final, scene.last().taken, scene.last().open) == (False, 1, 1)

    scene.town.say("during")
    scene.board.states["job-1"] = "reconciling"
    await scene.witness.step()
    scene.town.say("after")
    assert not scene.last().is_final
    for _ in range(3):
        scene.town.take().ok(b"1", 10)
    await scene.witness.step()

    assert (scene.last().is_final, scene.last().taken, scene.last().answered) == (True, 2, 2)
    assert scene.town.carrier.books == ()
    told = len(scene.board.told["job-1"])
    scene.town.clock.now += 10 * TELL_S
    await scene.witness.step()
    assert len(scene.board.told["job-1"]) == told, "the last one is told once"


async def test_a_session_that_begins_during_the_job_is_counted() -> None:
    scene = Scene()
    scene.board.states["job-1"] = "running"
    await scene.witness.step()
    _, bob = scene.town.session("bob")
    scene.town.settle(carrier=bob)
    scene.town.say("a", carrier=bob)
    scene.town.clock.now += TELL_S
    await scene.witness.step()
    assert (scene.last().users, scene.last().taken) == (2, 1)


async def test_reports_come_every_few_seconds() -> None:
    scene = Scene()
    scene.board.states["job-1"] = "running"
    for _ in range(7):
        await scene.witness.step()
        scene.town.clock.now += TELL_S / 2
    assert len(scene.board.told["job-1"]) == 4


async def test_a_job_that_is_gone_is_counted_no_more() -> None:
    scene = Scene()
    scene.board.states["job-1"] = "running"
    await scene.witness.step()
    scene.board.states.clear()
    await scene.witness.step()
    assert (scene.town.carrier.books, scene.witness.accounts) == ((), {})


async def test_what_is_lost_while_moves_of_a_cancelled_job_are_under_way_is_counted() -> None:
    scene = Scene()
    scene.town.settle()
    scene.board.states["job-1"] = "running"
    await scene.witness.step()
    scene.board.states["job-1"] = "cancelled"
    await scene.witness.step()
    scene.town.say("a")
    scene.town.take().ok(b"1", 10)
    scene.board.states["job-1"] = "reconciling"
    await scene.witness.step()

    assert (scene.last().is_final, scene.last().taken) == (True, 1)


async def test_a_rollback_goes_on_in_the_same_book() -> None:
    scene = Scene()
    scene.town.settle()
    scene.board.states["job-1"] = "running"
    await scene.witness.step()
    scene.town.say("a")
    scene.town.take().ok(b"1", 10)
    scene.board.states["job-1"] = "reconciling"
    await scene.witness.step()
    assert scene.last().is_final

    scene.board.states["job-1"] = "rolling-back"
    await scene.witness.step()
    assert not scene.last().is_final
    scene.town.say("b")
    scene.town.take().ok(b"2", 10)
    scene.board.states["job-1"] = "reconciling"
    await scene.witness.step()

    assert (scene.last().is_final, scene.last().answered) == (True, 2)


async def test_a_rollback_after_the_end_of_the_job_is_told_with_the_way_there() -> None:
    scene = Scene()
    scene.town.settle()
    scene.board.states["job-1"] = "running"
    await scene.witness.step()
    scene.town.say("a")
    scene.town.take().refused(Code.BAD_REQUEST)
    scene.town.say("b")
    scene.town.take().ok(b"1", 10)
    scene.board.states["job-1"] = "reconciling"
    await scene.witness.step()
    first = scene.last()
    scene.board.states.clear()
    await scene.witness.step()

    scene.board.states["job-1"] = "rolling-back"
    await scene.witness.step()
    assert (scene.last().is_final, scene.last().seen, scene.last().taken) == (
        False,
        "rolling-back",
        first.taken,
    )
    scene.town.say("c")
    scene.town.take().ok(b"2", 10)
    scene.board.states["job-1"] = "reconciling"
    await scene.witness.step()

    assert (scene.last().is_final, scene.last().answered) == (True, first.answered + 1)
    assert (scene.last().taken, scene.last().refused) == (first.taken + 1, first.refused)
    assert scene.last().adds_up


async def test_a_rollback_is_told_of_at_once() -> None:
    """Nobody goes back before every gate has seen it; this one never stopped counting."""
    scene = Scene()
    scene.board.states["job-1"] = "running"
    await scene.witness.step()
    scene.board.states["job-1"] = "rolling-back"
    await scene.witness.step()
    assert [report.seen for report in scene.board.told["job-1"]] == ["running", "rolling-back"]


async def test_what_was_counted_for_jobs_that_ended_is_bounded() -> None:
    scene = Scene()
    for number in range(2 * MOST_CLOSED):
        scene.board.states = {f"job-{number}": "running"}
        await scene.witness.step()
    scene.board.states = {"job-1": "rolling-back"}
    await scene.witness.step()
    assert len(scene.witness.closed) == MOST_CLOSED


async def test_a_store_that_is_away_stops_no_counting() -> None:
    scene = Scene()
    scene.town.settle()
    scene.board.states["job-1"] = "running"
    await scene.witness.step()
    scene.board.is_away = True
    with pytest.raises(StoreUnavailable):
        await scene.witness.step()
    scene.town.say("a")
    scene.town.take().ok(b"1", 10)
    scene.board.is_away = False
    scene.town.clock.now += TELL_S
    await scene.witness.step()
    assert scene.last().answered == 1


async def test_a_report_that_was_not_taken_is_told_again_and_keeps_no_other_waiting() -> None:
    scene = Scene()
    scene.board.states = {"job-1": "reconciling", "job-2": "reconciling"}
    scene.board.deaf_to = "job-1"
    with pytest.raises(StoreUnavailable):
        await scene.witness.step()
    assert scene.last("job-2").is_final
    scene.board.deaf_to = ""
    await scene.witness.step()
    assert scene.last("job-1").is_final


async def test_a_gate_that_stops_tells_its_last_report() -> None:
    scene = Scene()
    scene.town.settle()
    scene.board.states["job-1"] = "running"
    await scene.witness.step()
    scene.town.say("a")
    scene.town.carrier.close("draining")
    await scene.witness.leave()
    assert (scene.last().is_final, scene.last().lost) == (True, 1)
    asked = scene.board.asked
    await scene.witness.step()
    assert scene.board.asked == asked


async def test_a_report_under_way_does_not_come_after_the_last_one() -> None:
    scene = Scene()
    scene.board.states["job-1"] = "running"
    scene.board.is_slow = asyncio.Event()
    step = asyncio.create_task(scene.witness.step())
    await asyncio.sleep(0)
    leaving = asyncio.create_task(scene.witness.leave())
    await asyncio.sleep(0)
    scene.board.is_slow.set()
    await asyncio.gather(step, leaving)
    assert [report.is_final for report in scene.board.told["job-1"]] == [False, True]


async def test_a_gate_that_cannot_tell_on_its_way_out_leaves_all_the_same() -> None:
    scene = Scene()
    scene.board.states["job-1"] = "running"
    await scene.witness.step()
    scene.board.is_away = True
    await scene.witness.leave()
    assert not scene.last().is_final


async def test_a_gate_that_must_register_again_is_not_missing_under_its_new_name() -> None:
    scene = Scene()
    scene.town.settle()
    scene.board.states["job-1"] = "running"
    await scene.witness.step()
    scene.town.say("a")
    scene.town.take().ok(b"1", 10)
    scene.name = gate_name("gate-1", "2")
    scene.board.states["job-1"] = "reconciling"
    await scene.witness.step()

    told = {NAME: scene.last(), **scene.board.others}
    found = reconcile(AJob(), told, [NAME, scene.name])
    assert (found.holds, found.requests) == (True, 1)


async def test_a_drain_from_end_to_end_is_certified() -> None:
    scene = Scene()
    town, board = scene.town, scene.board
    town.settle(HOME)
    board.states["job-1"] = "running"
    await scene.witness.step()
    for name in "abc":
        town.say(name)
    town.take().ok(b"a", 10)
    for _ in "bc":
        town.take().refused(Code.MOVED)
    town.clock.now += 0.012
    town.settle(OTHER, last=1)
    for name in "bc":
        town.take().ok(name.encode(), 20)
    board.states["job-1"] = "reconciling"
    await scene.witness.step()

    job = AJob()
    found = reconcile(job, {NAME: scene.last()}, [NAME])
    assert found.holds
    assert (found.requests, found.answered, found.longest_pause_ms) == (3, 3, 12)
    assert not reconcile(job, {NAME: scene.last()}, [NAME, gate_name("gate-2", "1")]).holds
