"""Drain jobs as operators see them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from roost.api.drain import DrainInput, JobCounts
from roost.binding.drain.certificate import GateReport, reconcile
from roost.binding.drain.model import (
    COUNTS,
    DrainRequest,
    Job,
    Order,
    Pauses,
    Plan,
    PlannedServer,
    Progress,
    job_of,
)
from roost.binding.drain.views import certificate_view, job_view, plan_view, request_of
from roost.core.errors import InvalidInput


def job(*, ended_us: int = 0, **progress: Any) -> Job:
    order = Order(
        id="01J8ZK3V7Q4M5N6P7R8S9T0VWX",
        type="entity",
        kind="drain",
        sources=["501"],
        lives={"501": "7"},
        to=[],
        version="2.0",
        rate=100,
        canary=0,
        max_block_ms=500,
        deadline_s=300,
        quota={},
        by="ann",
    )
    made_us = 1_763_661_600_000_000
    return job_of(order, Progress(**progress), "done" if ended_us else "running", "", made_us, ended_us)


def test_a_job_that_has_just_begun() -> None:
    view = job_view(job())
    assert (view.made_at, view.started_at, view.ended_at) == ("2025-11-20T18:00:00.000Z", "", "")
    assert (view.counts.users, view.pauses.max_ms, view.eta_seconds, view.certificate) == (0, 0.0, None, None)


def test_every_count_of_a_job_is_shown() -> None:
    counts = {name: number for number, name in enumerate(COUNTS, start=1)}
    shown = msgspec.to_builtins(job_view(job(counts=counts)).counts)
    assert shown == counts
    assert set(JobCounts.__struct_fields__) == set(COUNTS)


def test_the_time_that_is_left_is_rounded_up() -> None:
    view = job_view(job(counts={"users": 100, "moved": 50, "gone": 1}, rate_now=48.0))
    assert view.eta_seconds == 2  # 49 / 48


def test_pauses_are_told_by_quantile() -> None:
    begun = job()
    for ms in [4.0] * 98 + [40.0, 131.0]:
        begun.pauses.observe(ms)
    told = job_view(begun).pauses
    assert (told.p50_ms, told.p99_ms, told.max_ms) == (5.0, 50.0, 131.0)


@pytest.mark.parametrize("complete", [True, False])
def test_a_certificate_is_shown_as_the_store_keeps_it(complete: bool) -> None:
    report = GateReport(gate="gate-1@7", taken=5, answered=5, is_final=complete)
    kept = msgspec.to_builtins(reconcile(job(), {report.gate: report}, {report.gate}))
    view = certificate_view(kept)
    assert view is not None
    assert (view.holds, view.is_complete) == (complete, complete)
    assert view.lost == (0 if complete else None)
    assert view.missing == ([] if complete else ["gate-1@7"])
    assert any("requests   5" in text for text in view.lines)
    assert job_view(job(ended_us=1, certificate=kept)).certificate == view


def test_a_job_that_goes_on_by_a_rollback_has_no_certificate_yet() -> None:
    kept = msgspec.to_builtins(reconcile(job(), {}, {"gate-1@7"}))
    assert job_view(job(certificate=kept)).certificate is None


@pytest.mark.parametrize("kept", [None, {}, {"job": 7}])
def test_a_certificate_that_cannot_be_read_is_none(kept: dict[str, object] | None) -> None:
    assert certificate_view(kept) is None
    assert job_view(job(ended_us=1, certificate=kept)).certificate is None


@pytest.mark.parametrize(
    "given", [{"by": "x" * 256}, {"by": "a\x1b[2J"}, {"max_block_ms": -1}, {"deadline_seconds": -1}]
)
def test_what_would_spoil_the_record_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        request_of(DrainInput(["501"], **given))


def test_what_is_asked_for_keeps_the_defaults_where_it_says_nothing() -> None:
    asked = request_of(DrainInput(["501", "502", "501"]))
    assert asked == DrainRequest(servers=["501", "502"])
    given = request_of(DrainInput([], kind="rebalance", users=5, max_block_ms=50, deadline_seconds=9))
    assert (given.kind, given.users, given.max_block_ms, given.deadline_s) == ("rebalance", 5, 50, 9)


def test_a_plan_is_shown_whole() -> None:
    plan = Plan(
        type="entity",
        kind="drain",
        users=2,
        sources=[PlannedServer("501", "1.0", 2, 2, 0)],
        targets=[PlannedServer("503", "2.0", 0, 2, 9)],
        seats=9,
        seconds=0.02,
        pinned={"ann": "in a match"},
        later=0,
        schema_point="",
        rollback_until="until then",
        notes=["a note"],
    )
    shown = msgspec.to_builtins(plan_view(plan))
    assert (shown.pop("schemaPoint"), shown["rollbackUntil"]) == ("", "until then")
    assert shown["targets"] == [{"serverId": "503", "version": "2.0", "users": 0, "moves": 2, "capacity": 9}]
    kept = msgspec.to_builtins(plan)
    assert {name: kept[name] for name in ("users", "seats", "pinned", "notes")} == {
        name: shown[name] for name in ("users", "seats", "pinned", "notes")
    }


def test_the_pauses_come_with_their_histogram() -> None:
    pauses = Pauses()
    for ms in (0.5, 4.0, 9000.0):
        pauses.observe(ms)
    view = job_view(job(pauses=pauses)).pauses
    assert len(view.counts) == len(view.bounds_ms) + 1
    told = dict(zip((*view.bounds_ms, 0), view.counts, strict=True))
    assert (told[1], told[5], told[0], sum(view.counts)) == (1, 1, 1, 3)
