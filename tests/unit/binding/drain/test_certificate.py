"""The certificate adds up, and what nobody knows is never zero."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.binding.drain.certificate import Certificate, GateReport, gate_name, reconcile

FAULTS = ("lost", "doubled", "reordered", "disconnected")
few = st.integers(0, 50)


@dataclass
class AJob:
    id: str = "job-1"
    counts: dict[str, int] = field(default_factory=lambda: {"users": 7, "moved": 5, "returned": 2})


@st.composite
def true_reports(draw: st.DrawFn, *, final: bool = True) -> GateReport:
    """What a gate could have counted: everything that it took has one outcome, or none."""
    refused = draw(st.dictionaries(st.sampled_from(["QUEUE_FULL", "LEFT", "UNAVAILABLE"]), few))
    answered, unknown, vanished = draw(few), draw(few), draw(st.sampled_from([0, 0, 0, 3]))
    still_open = 0 if final else draw(few)
    return GateReport(
        gate="",
        taken=answered + sum(refused.values()) + unknown + vanished + still_open,
        answered=answered,
        refused=refused,
        unknown=unknown,
        open=still_open,
        doubled=draw(st.sampled_from([0, 0, 1])),
        reordered=draw(st.sampled_from([0, 0, 1])),
        disconnected=draw(st.sampled_from([0, 0, 1])),
        longest_pause_ms=draw(few),
        is_final=final,
    )


def named(reports: list[GateReport]) -> dict[str, GateReport]:
    for number, report in enumerate(reports):
        report.gate = gate_name(f"gate-{number}", "1")
    return {report.gate: report for report in reports}


def a_report(name: str = "g@1", **counts: object) -> GateReport:
    return msgspec.convert({"gate": name, "is_final": True, **counts}, GateReport)


def certified(
    *reports: GateReport, expected: tuple[str, ...] = (), late: tuple[str, ...] = ()
) -> Certificate:
    return reconcile(AJob(), {report.gate: report for report in reports}, expected, late)


@given(st.lists(true_reports(), min_size=1, max_size=4))
def test_every_request_has_an_outcome_or_is_lost(told: list[GateReport]) -> None:
    found = reconcile(AJob(), named(told), [])
    assert found.is_complete
    assert found.lost is not None
    assert found.requests == found.answered + found.refused + found.open + found.lost
    for fault in FAULTS:
        assert getattr(found, fault) == sum(getattr(report, fault) for report in told)
    assert found.holds == (not any(getattr(found, fault) for fault in FAULTS))
    assert found.longest_pause_ms == max(report.longest_pause_ms for report in told)


@given(st.lists(true_reports(), max_size=4), st.integers(1, 3))
def test_a_missing_gate_is_never_zero(told: list[GateReport], missing: int) -> None:
    dead = [gate_name(f"dead-{number}", "1") for number in range(missing)]
    found = reconcile(AJob(), named(told), dead)
    assert (found.is_complete, found.holds, found.missing) == (False, False, dead)
    assert all(getattr(found, fault) != 0 for fault in FAULTS)
    assert "nothing was lost" not in found.text
    assert "incomplete" in found.text
    for name in dead:
        assert f"{name} told nothing" in found.text


@given(st.lists(true_reports(), min_size=1, max_size=4), true_reports(final=False))
def test_a_report_that_is_not_the_last_is_no_proof(told: list[GateReport], early: GateReport) -> None:
    reports = named([*told, early])
    found = reconcile(AJob(), reports, reports.keys())
    assert (found.is_complete, found.holds, found.missing) == (False, False, [early.gate])
    assert found.gates == len(told)
    assert all(getattr(found, fault) != 0 for fault in FAULTS)


@given(st.lists(true_reports(), min_size=1, max_size=4))
def test_the_order_of_the_reports_does_not_matter(told: list[GateReport]) -> None:
    reports = named(told)
    backwards = dict(reversed(reports.items()))
    assert reconcile(AJob(), reports, []) == reconcile(AJob(), backwards, list(reports))


def test_nothing_was_lost() -> None:
    found = certified(a_report(taken=10, answered=9, refused={"LEFT": 1}, longest_pause_ms=19))
    assert found.holds
    assert found.lines() == [
        "drain job-1: nothing was lost",
        "users      7: 5 moved, 2 returned, 0 released, 0 forced",
        "requests   10: 9 answered, 1 refused, 0 open",
        "faults     0 lost, 0 doubled, 0 reordered, 0 disconnected",
        "pause      19 ms at the longest",
        "gates      1 of 1 have told all they counted",
    ]


def test_what_nobody_knows_the_outcome_of_is_lost() -> None:
    found = certified(a_report(taken=10, answered=9, unknown=1))
    assert (found.lost, found.is_complete, found.holds) == (1, True, False)
    assert "something was lost" in found.text


def test_an_unknown_outcome_that_is_filed_as_a_refusal_is_lost_all_the_same() -> None:
    assert certified(a_report(taken=10, answered=9, refused={"OUTCOME_UNKNOWN": 1}, unknown=1)).lost == 1


def test_what_vanished_without_any_outcome_is_lost() -> None:
    assert certified(a_report(taken=10, answered=8)).lost == 2


def test_an_incomplete_one_says_at_least_of_what_it_saw() -> None:
    found = certified(a_report(taken=3, answered=2), expected=("dead@1",))
    assert (found.lost, found.doubled) == (1, None)
    assert "at least 1 lost, doubled unknown" in found.text


@pytest.mark.parametrize(
    "counts", [{"taken": 1, "answered": 2}, {"taken": 5, "answered": 5, "unknown": 1}, {"taken": -1}]
)
def test_counts_that_do_not_add_up_prove_nothing(counts: dict[str, int]) -> None:
    found = certified(a_report("g@1", **counts))
    assert (found.is_complete, found.holds) == (False, False)
    assert "g@1 told counts that do not add up" in found.text


def test_a_gate_that_could_not_follow_everybody_makes_it_incomplete() -> None:
    found = certified(a_report(taken=5, answered=5, uncounted=3))
    assert (found.is_complete, found.missing) == (False, ["g@1"])


def test_a_gate_that_began_after_the_first_move_makes_it_incomplete() -> None:
    found = certified(a_report(taken=5, answered=5), late=("g@1",))
    assert (found.is_complete, found.missing) == (False, ["g@1"])


def test_a_gate_that_came_back_does_not_stand_for_the_one_that_died() -> None:
    again = gate_name("g", "2")
    found = certified(a_report(again, taken=1, answered=1), expected=(gate_name("g", "1"), again))
    assert found.missing == [gate_name("g", "1")]


def test_where_no_gate_counted_nothing_is_known() -> None:
    found = certified()
    assert (found.is_complete, found.lost, found.missing) == (False, None, [])
    assert "no gate has told anything" in found.text


def test_a_request_that_is_still_open_is_not_yet_well() -> None:
    found = certified(a_report(taken=5, answered=4, open=1))
    assert (found.lost, found.holds) == (0, False)
    assert "requests have no outcome yet" in found.text


def test_reports_and_certificates_survive_the_store() -> None:
    report = a_report(taken=5, answered=4, refused={"LEFT": 1}, at=12.5)
    assert msgspec.json.decode(msgspec.json.encode(report), type=GateReport) == report
    found = certified(report)
    assert msgspec.convert(msgspec.to_builtins(found), Certificate) == found
