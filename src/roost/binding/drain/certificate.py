"""The zero-loss certificate: what every gate counted while users were moved, added up.

    taken = answered + refused + open + lost          of each gate, and of all of them

A gate knows of its own clients only. So nothing was lost only where every gate that was there has told its
last report; one that died makes the certificate incomplete. What an incomplete one has seen is "at least":
where it has seen nothing the figure is None, never 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Protocol

import msgspec

OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"


class GateReport(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What one gate counted for one job, from when it first saw the job."""

    gate: str
    """`gate_name` of it."""
    users: int = 0
    """Users of the type who had a session here meanwhile."""
    taken: int = 0
    """Messages taken from clients, with those that were on their way when the counting began."""
    forwarded: int = 0
    """Times that a message was sent to a server."""
    answered: int = 0
    refused: dict[str, int] = {}
    """Told to the client as not carried out, by code; and what a client left behind when it went (`LEFT`)."""
    unknown: int = 0
    """Nobody knows whether these were carried out: lost until somebody does."""
    open: int = 0
    """Without an outcome yet; none in a last report."""
    resent: int = 0
    doubled: int = 0
    """Messages with a second, different reply: executed twice."""
    reordered: int = 0
    """Messages that a later home answered first after an earlier one had answered a later message."""
    disconnected: int = 0
    """Sessions that something else than the client ended while the user was on the move."""
    longest_pause_ms: int = 0
    """The longest that a client waited for the outcome of a message."""
    uncounted: int = 0
    """Users beyond what a gate can follow: their messages are in no figure, so the report is incomplete."""
    is_final: bool = False
    seen: str = ""
    """The state of the job, as the gate knew it."""
    at: float = 0.0
    """Seconds since 1970 by the gate's clock."""

    @property
    def all_refused(self) -> int:
        return sum(count for code, count in self.refused.items() if code != OUTCOME_UNKNOWN)

    @property
    def lost(self) -> int:
        """What was taken and has no known outcome."""
        return max(self.taken - self.answered - self.all_refused - self.open, self.unknown)

    @property
    def adds_up(self) -> bool:
        """Whether the counts can be true."""
        settled = self.answered + self.all_refused + self.open
        return min(self._figures()) >= 0 and settled + self.unknown <= self.taken

    def _figures(self) -> tuple[int, ...]:
        outcomes = (self.taken, self.answered, self.unknown, self.open, *self.refused.values())
        return (*outcomes, self.doubled, self.reordered, self.disconnected, self.uncounted)


def together(first: GateReport, then: GateReport) -> GateReport:
    """What one gate counted for a job that went on after its end: on the way there, and on the way back."""
    names = ("taken", "forwarded", "answered", "unknown", "open", "resent", "doubled", "reordered")
    sums = {
        name: getattr(first, name) + getattr(then, name) for name in (*names, "disconnected", "uncounted")
    }
    refused = Counter(first.refused)
    refused.update(then.refused)
    return msgspec.structs.replace(
        then,
        users=max(first.users, then.users),
        refused=dict(refused),
        longest_pause_ms=max(first.longest_pause_ms, then.longest_pause_ms),
        **sums,
    )


class Certificate(msgspec.Struct, kw_only=True, rename="camel"):
    """The end of a job as everybody may print and keep it."""

    job: str
    users: int
    moved: int
    returned: int
    released: int
    forced: int
    requests: int
    answered: int
    refused: int
    open: int
    lost: int | None
    """With `doubled`, `reordered`, `disconnected`: None where a report is missing and none was seen."""
    doubled: int | None
    reordered: int | None
    disconnected: int | None
    longest_pause_ms: int
    gates: int
    """That have told their last report."""
    is_complete: bool
    missing: list[str]
    """Gates without a last report, or that began to count after the first move."""
    notes: list[str]
    """Why it is incomplete, a line for each gate."""
    holds: bool
    """Complete, and nothing was lost, doubled, reordered or disconnected."""

    def lines(self) -> list[str]:
        """For people."""
        return [
            f"drain {self.job}: {self._verdict()}",
            f"users      {self.users}: {self.moved} moved, {self.returned} returned, "
            f"{self.released} released, {self.forced} forced",
            f"requests   {self.requests}: {self.answered} answered, {self.refused} refused, {self.open} open",
            f"faults     {self._figure('lost')}, {self._figure('doubled')}, "
            f"{self._figure('reordered')}, {self._figure('disconnected')}",
            f"pause      {self.longest_pause_ms} ms at the longest",
            f"gates      {self.gates} of {self.gates + len(self.missing)} have told all they counted",
            *(f"           {note}" for note in self.notes),
        ]

    @property
    def text(self) -> str:
        return "\n".join(self.lines())

    def _verdict(self) -> str:
        if self.holds:
            return "nothing was lost"
        faults = self.lost or self.doubled or self.reordered or self.disconnected
        if self.is_complete:
            return "something was lost" if faults else "requests have no outcome yet"
        return "incomplete, and something was lost" if faults else "incomplete: nobody knows what was lost"

    def _figure(self, name: str) -> str:
        value = getattr(self, name)
        if value is None:
            return f"{name} unknown"
        return f"{value} {name}" if self.is_complete else f"at least {value} {name}"


class JobFacts(Protocol):
    """What is asked of a job."""

    @property
    def id(self) -> str: ...

    @property
    def counts(self) -> Mapping[str, int]:
        """users, moved, returned, released, forced; what is not there is 0."""


def gate_name(server_id: str, life: str) -> str:
    """A gate in reports. With its life: one that died and came back has forgotten what it had counted."""
    return f"{server_id}@{life}"


def reconcile(
    job: JobFacts, reports: Mapping[str, GateReport], expected: Collection[str], late: Collection[str] = ()
) -> Certificate:
    """Add up what the gates told.

    `expected`: gates that were there at any time while the job ran; who told something is expected too.
    `late`: those that had told nothing yet when the first user was moved.
    """
    told = list(reports.values())
    notes = _notes(reports, expected, late)
    is_complete = not notes and bool(reports)
    if not reports:
        notes.setdefault("", "no gate has told anything")
    lost = sum(report.lost for report in told)
    doubled, reordered = sum(r.doubled for r in told), sum(r.reordered for r in told)
    disconnected, still_open = sum(r.disconnected for r in told), sum(r.open for r in told)

    def seen(figure: int) -> int | None:
        return figure if figure or is_complete else None

    return Certificate(
        job=job.id,
        users=job.counts.get("users", 0),
        moved=job.counts.get("moved", 0),
        returned=job.counts.get("returned", 0),
        released=job.counts.get("released", 0),
        forced=job.counts.get("forced", 0),
        requests=sum(report.taken for report in told),
        answered=sum(report.answered for report in told),
        refused=sum(report.all_refused for report in told),
        open=still_open,
        lost=seen(lost),
        doubled=seen(doubled),
        reordered=seen(reordered),
        disconnected=seen(disconnected),
        longest_pause_ms=max((report.longest_pause_ms for report in told), default=0),
        gates=sum(1 for gate in reports if gate not in notes),
        is_complete=is_complete,
        missing=sorted(gate for gate in notes if gate),
        notes=[f"{gate} {why}".strip() for gate, why in sorted(notes.items())],
        holds=is_complete and not (lost or doubled or reordered or disconnected or still_open),
    )


def _notes(
    reports: Mapping[str, GateReport], expected: Collection[str], late: Collection[str]
) -> dict[str, str]:
    """Gate → why what it told does not cover the whole job."""
    notes: dict[str, str] = {}
    for gate in {*reports, *expected, *late}:
        report = reports.get(gate)
        if report is None:
            notes[gate] = "told nothing"
        elif why := _fault_of(report):
            notes[gate] = why
        elif gate in late:
            notes[gate] = "began to count after the first move"
    return notes


def _fault_of(report: GateReport) -> str:
    if not report.adds_up:
        return "told counts that do not add up"
    if not report.is_final:
        return "did not tell its last report"
    if report.uncounted:
        return f"could not follow {report.uncounted} users more"
    return ""
