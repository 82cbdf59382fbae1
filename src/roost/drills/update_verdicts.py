"""Whether a hot update held what it promises. Pure: what was seen in, verdicts out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from roost.api.drain import CertificateView, JobCounts
from roost.drills.client_book import ClientBook
from roost.drills.ledger import Verdict, judged, percentile


def verdicts(books: Sequence[ClientBook], new: str, *, lost_gate: str = "") -> list[Verdict]:
    """`lost_gate`: its clients had to connect again, once or more."""
    stayed = [one for one in books if not lost_gate or one.gate != lost_gate]
    moved = [one for one in books if lost_gate and one.gate == lost_gate]
    asked, refused = sum(one.asked for one in books), sum(one.refused.total() for one in books)
    resumed = f"; {len(moved)} clients of {lost_gate} came again" if lost_gate else ""
    return [
        judged(f"everybody sees {new}", _unseen(books, new), f"{len(books)} clients"),
        judged(
            "nobody disconnected",
            [
                *_say(stayed, lambda one: one.connects - 1, "connected again {} times"),
                *(f"{one.user} ended: {one.ended}" for one in books if one.ended),
                *_say(moved, lambda one: int(one.connects < 2), "never noticed that its gate died"),
            ],
            f"{len(stayed)} clients on one connection each{resumed}",
        ),
        judged(
            "no request lost",
            [
                *_say(books, lambda one: one.lost, "was given {} numbers twice"),
                *_say(books, lambda one: one.unknown, "never heard what became of {} requests"),
                *_say(books, lambda one: one.failed, "had {} requests that failed"),
                *_say(books, lambda one: one.open, "has {} requests without an answer"),
            ],
            f"{asked} requests, {asked - refused} answered, {refused} refused and told so",
        ),
        judged(
            "none executed twice",
            _say(books, lambda one: one.doubled, "counted {} too many"),
            "every number is accounted for",
        ),
        judged(
            "none out of order",
            _say(books, lambda one: one.reordered, "got {} answers out of order"),
            "every client's numbers rise",
        ),
    ]


def _unseen(books: Sequence[ClientBook], new: str) -> list[str]:
    faults = [f"{one.user} saw {one.version or 'nothing'} last" for one in books if one.version != new]
    back = [one for one in books if new in one.versions[:-1]]
    return faults + [f"{one.user} saw {' → '.join(one.versions)}" for one in back if one.version == new]


def _say(books: Sequence[ClientBook], number: Callable[[ClientBook], int], words: str) -> list[str]:
    return [f"{one.user} {words.format(number(one))}" for one in books if number(one)]


def answer_ms(books: Sequence[ClientBook], share: float) -> float:
    return round(percentile([seconds for one in books for seconds in one.seconds], share) * 1000, 1)


def old_server(name: str, code: int | None, left: int | None, *, was_killed: bool) -> Verdict:
    """`left`: users that the map has on it in the end; None: nobody could say."""
    faults = (
        [] if left == 0 else [f"{'an unknown number of' if left is None else left} users are still on it"]
    )
    if was_killed:
        return judged(f"{name} holds nobody", faults, "it was killed, its users went on elsewhere")
    if code != 0:
        faults.append("it still runs" if code is None else f"it ended with {code}")
    return judged(f"{name} ends by itself", faults, "exit code 0, nobody is on it")


def job_verdict(state: str, why: str, counts: JobCounts | None, *, lost_source: str = "") -> Verdict:
    """`state`: empty if it never was. `lost_source`: its server was killed, which the job must have seen."""
    if lost_source:
        seen = state == "failed" and lost_source in why
        return judged("the job saw its server die", [] if seen else [f"it is {state}: {why}"], why)
    well = f"{counts.moved} moved, {counts.returned} returned, {counts.released} released" if counts else ""
    faults = [] if state == "done" else [f"it is {state}: {why}" if state else "it was never started"]
    return judged("the job is done", faults, well)


def certificate_verdict(certificate: CertificateView | None, lost_gate: str) -> Verdict:
    """A gate that died took its counts with it: then the certificate must say so, and never zero."""
    if certificate is None:
        return judged("the certificate holds", ["there is none"], "")
    if lost_gate:
        is_named = lost_gate in (name.partition("@")[0] for name in certificate.missing)
        faults = [] if is_named and not certificate.is_complete else ["it is called complete"]
        return judged("the certificate is incomplete", faults, f"the counts of {lost_gate} are missing")
    faults = [] if certificate.holds else certificate.lines or ["it does not"]
    well = f"{certificate.requests} requests at {certificate.gates} gates"
    return judged("the certificate holds", faults, well)
