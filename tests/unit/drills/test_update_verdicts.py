"""The verdicts on a hot update: each can fail, and then says whom it concerns."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from roost.api.drain import CertificateView, JobCounts
from roost.drills.client_book import ClientBook
from roost.drills.ledger import Verdict
from roost.drills.update_verdicts import certificate_verdict, job_verdict, old_server, verdicts

CERTIFICATE = CertificateView(
    job="j1",
    holds=True,
    is_complete=True,
    missing=[],
    users=10,
    moved=10,
    returned=0,
    released=0,
    forced=0,
    requests=100,
    answered=100,
    refused=0,
    open=0,
    lost=0,
    doubled=0,
    reordered=0,
    disconnected=0,
    longest_pause_ms=12,
    gates=1,
    notes=[],
    lines=["all well"],
)


def client(user: str = "ann", gate: str = "gate-1") -> ClientBook:
    """Somebody who noticed nothing."""
    book = ClientBook(user, gate, asked=4, answered=4, connects=1)
    for version in ("1.0", "2.0"):
        book.saw_version(version)
    for number in (1, 2):
        book.counted(number)
    book.close(2)
    return book


def broken(*books: ClientBook, lost_gate: str = "") -> dict[str, str]:
    found = verdicts(books, "2.0", lost_gate=lost_gate)
    assert len(found) == 5
    return {one.guarantee: one.said for one in found if not one.held}


def test_who_noticed_nothing_breaks_nothing() -> None:
    assert broken(client(), client("bob")) == {}


def spoil(attribute: str, value: object) -> Callable[[ClientBook], None]:
    return lambda book: setattr(book, attribute, value)


@pytest.mark.parametrize(
    ("spoiled", "guarantee", "said"),
    [
        (spoil("versions", ["1.0"]), "everybody sees 2.0", "ann saw 1.0 last"),
        (spoil("versions", []), "everybody sees 2.0", "ann saw nothing last"),
        (
            spoil("versions", ["1.0", "2.0", "1.0", "2.0"]),
            "everybody sees 2.0",
            "ann saw 1.0 → 2.0 → 1.0 → 2.0",
        ),
        (spoil("connects", 3), "nobody disconnected", "ann connected again 2 times"),
        (spoil("ended", "TAKEN_OVER"), "nobody disconnected", "ann ended: TAKEN_OVER"),
        (spoil("lost", 2), "no request lost", "ann was given 2 numbers twice"),
        (spoil("asked", 6), "no request lost", "ann has 2 requests without an answer"),
        (spoil("doubled", 1), "none executed twice", "ann counted 1 too many"),
        (spoil("reordered", 1), "none out of order", "ann got 1 answers out of order"),
    ],
)
def test_each_fault_breaks_its_verdict_alone(
    spoiled: Callable[[ClientBook], None], guarantee: str, said: str
) -> None:
    ann = client()
    spoiled(ann)
    assert broken(ann, client("bob")) == {guarantee: said}


def test_a_request_of_unknown_outcome_counts_as_lost() -> None:
    ann = client()
    ann.asked += 1
    ann.no_answer(counts=False)
    assert broken(ann) == {"no request lost": "ann never heard what became of 1 requests"}


def test_a_refusal_that_was_told_is_no_loss() -> None:
    ann = client()
    ann.asked += 1
    ann.refused["MIGRATING"] += 1
    assert broken(ann) == {}


def test_only_clients_of_the_gate_that_died_may_connect_again() -> None:
    ann, bob = client("ann", "gate-1"), client("bob", "gate-2")
    ann.connects = 2
    assert broken(ann, bob, lost_gate="gate-1") == {}
    bob.connects = 2
    assert broken(ann, bob, lost_gate="gate-1") == {"nobody disconnected": "bob connected again 1 times"}


@pytest.mark.parametrize(
    ("code", "left", "was_killed", "held"),
    [
        (0, 0, False, True),
        (1, 0, False, False),
        (None, 0, False, False),
        (0, 3, False, False),
        (0, None, False, False),
        (-9, 0, True, True),
        (-9, 3, True, False),
    ],
)
def test_the_old_server_must_end_by_itself_and_hold_nobody(
    code: int | None, left: int | None, was_killed: bool, held: bool
) -> None:
    assert old_server("501", code, left, was_killed=was_killed).held is held


def test_a_certificate_must_hold_unless_a_gate_took_its_counts_along() -> None:
    assert certificate_verdict(CERTIFICATE, "").held
    assert not certificate_verdict(None, "").held
    bad = msgspec.structs.replace(CERTIFICATE, holds=False, lost=1, lines=["1 lost"])
    assert certificate_verdict(bad, "").said == "1 lost"


def test_without_a_gate_a_complete_certificate_is_a_fault() -> None:
    assert not certificate_verdict(CERTIFICATE, "gate-1").held
    honest = msgspec.structs.replace(CERTIFICATE, holds=False, is_complete=False, missing=["gate-1@7"])
    assert certificate_verdict(honest, "gate-1").held
    assert not certificate_verdict(honest, "gate-2").held


def test_a_job_that_is_not_done_is_a_fault() -> None:
    counts = JobCounts(users=10, moved=9, returned=0, later=0, pinned=0, released=1, gone=0, forced=0, back=0)
    well = Verdict("the job is done", True, "9 moved, 0 returned, 1 released")
    assert job_verdict("done", "", counts) == well
    assert job_verdict("failed", "nowhere to move", counts).said == "it is failed: nowhere to move"
    assert job_verdict("", "", None).said == "it was never started"


def test_a_job_whose_server_was_killed_must_say_so() -> None:
    assert job_verdict("failed", "501 ended", None, lost_source="501").held
    assert not job_verdict("done", "", None, lost_source="501").held
    assert not job_verdict("failed", "nowhere to move", None, lost_source="501").held
