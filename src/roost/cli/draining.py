"""What people see of a drain: a plan, a job under way, what it came to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from roost.api.drain import CertificateView, JobList, JobView, PlannedServer, PlanView
from roost.cli.printable import in_a_line
from roost.cli.tables import Cell, Column, Part, Styled, Table, age

BAR = 24
PINNED_SHOWN = 5
TEXT_SHOWN = 200
"""Characters of what an entity class says of a user."""

STYLES = {"done": "green", "failed": "red", "paused": "yellow", "cancelled": "yellow"}


def view_job(job: JobView) -> Iterator[Part]:
    """The whole picture, drawn again and again while it is followed."""
    yield Table((job.kind, Column(job.id, wrap=True)), list(_rows(job)))
    if job.certificate is not None:
        yield ""
        yield from view_certificate(job.certificate)


def _rows(job: JobView) -> Iterator[tuple[Cell, Cell]]:
    yield "servers", f"{', '.join(job.servers) or '-'} → {targets(job)}"
    yield "state", Styled(state(job), STYLES.get(job.state, ""))
    yield "progress", f"{bar(share(job))} {share(job):.0%}  {settled(job)} of {job.counts.users}{_left(job)}"
    yield "users", _outcomes(job)
    yield "rate", rate(job)
    pauses = job.pauses
    if job.counts.moved:
        yield (
            "pause",
            f"p50 {pauses.p50_ms:.4g} ms, p99 {pauses.p99_ms:.4g} ms, longest {pauses.max_ms:.4g} ms",
        )
    if job.pinned:
        yield "pinned", _pinned(job.pinned)


def line(job: JobView) -> str:
    """The same in a line, for where nothing can be drawn again."""
    counts = job.counts
    held = ", ".join(
        f"{count} {word}"
        for word, count in (("returned", counts.returned), ("pinned", counts.pinned + counts.later))
        if count
    )
    said = f"{job.state} {share(job):.0%} {settled(job)}/{counts.users}{', ' + held if held else ''}"
    pauses = f", p99 {job.pauses.p99_ms:.4g} ms" if counts.moved else ""
    left = f", {job.eta_seconds} s left" if _is_expected(job) else ""
    return f"{said}, {job.rate_now:.4g}/s{pauses}{left}"


def reasons(job: JobView) -> list[str]:
    """Beside `line`: why it is as it is, a line each."""
    said = [f"{job.state}: {plain(job.why)}"] if job.why else []
    said += [f"rate: {rate(job)}"] if job.rate_why else []
    return said + ([f"pinned: {_pinned(job.pinned)}"] if job.pinned else [])


def targets(job: JobView) -> str:
    where = ", ".join(job.to) or "all that take users"
    return f"{where} of version {job.version}" if job.version else where


def state(job: JobView) -> str:
    said = f"{job.state}: {plain(job.why)}" if job.why else job.state
    if job.ended_at:
        return said
    asked = f" by {plain(job.by)}" if job.by else ""
    return f"{said}, begun{asked} {age(job.started_at or job.made_at)}"


def settled(job: JobView) -> int:
    """Users that the sources need to hold no more."""
    return job.counts.moved + job.counts.released + job.counts.gone


def share(job: JobView) -> float:
    if not job.counts.users:
        return 1.0 if job.ended_at else 0.0
    return min(1.0, settled(job) / job.counts.users)


def bar(part: float) -> str:
    done = int(part * BAR)
    return "█" * done + "░" * (BAR - done)


def rate(job: JobView) -> str:
    why = f": {plain(job.rate_why)}" if job.rate_why else ""
    return f"{job.rate_now:.4g} users/s, at most {job.rate}/s a server{why}"


def _left(job: JobView) -> str:
    return f", about {job.eta_seconds} s left" if _is_expected(job) else ""


def _is_expected(job: JobView) -> bool:
    return job.eta_seconds is not None and not job.ended_at


def _outcomes(job: JobView) -> str:
    counts = job.counts
    others = (
        (counts.released, "released"),
        (counts.gone, "gone by themselves"),
        (counts.returned, "returned"),
        (counts.later, "later"),
        (counts.pinned, "pinned"),
    )
    return ", ".join([f"{counts.moved} moved", *(f"{count} {word}" for count, word in others if count)])


def _pinned(users: Mapping[str, str]) -> str:
    shown = [f"{user}: {plain(why)}" for user, why in list(users.items())[:PINNED_SHOWN]]
    more = len(users) - len(shown)
    return "; ".join([*shown, *([f"and {more} more"] if more > 0 else [])])


def plain(text: str) -> str:
    """What others wrote, without what would move the cursor."""
    return in_a_line(text if len(text) <= TEXT_SHOWN else text[:TEXT_SHOWN] + "…")


COLUMNS = (
    "job",
    Column("kind", drop=3),
    Column("servers", wrap=True),
    "state",
    "settled",
    Column("began", drop=2),
    Column("certificate", drop=1),
)


def view_jobs(found: JobList) -> Iterator[Part]:
    yield Table(COLUMNS, [_row(job) for job in found.jobs])
    count = len(found.jobs)
    yield f"{count} job{'' if count == 1 else 's'}" if count else "no job: `roost drain start 501` makes one"


def _row(job: JobView) -> tuple[Cell, ...]:
    return (
        job.id,
        job.kind,
        ", ".join(job.servers) or "-",
        Styled(job.state, STYLES.get(job.state, "")),
        f"{settled(job)}/{job.counts.users}",
        age(job.started_at or job.made_at),
        "-" if job.certificate is None else verdict(job.certificate).text,
    )


def verdict(certificate: CertificateView) -> Styled:
    if certificate.holds:
        return Styled("holds", "green")
    return Styled("does not hold", "red") if certificate.is_complete else Styled("incomplete", "yellow")


def view_certificate(certificate: CertificateView) -> Iterator[Part]:
    said = verdict(certificate)
    yield Styled(f"certificate of {certificate.job}: {said.text}", said.style)
    yield from certificate.lines


def view_plan(plan: PlanView) -> Iterator[Part]:
    yield Table(
        ("server", "", "users", "then", Column("version", drop=1)),
        [*_planned(plan.sources, "leave", -1), *_planned(plan.targets, "come", 1)],
    )
    yield ""
    yield Table(("plan", Column(f"{plan.kind}, type {plan.type}", wrap=True)), list(_plan_rows(plan)))
    yield "nothing was started"


def _plan_rows(plan: PlanView) -> Iterator[tuple[str, str]]:
    seats = "as many seats as it takes" if plan.seats is None else f"{plan.seats} seats free"
    yield "users", f"{plan.users}, about {plan.seconds:.0f} s; {seats}"
    yield "rollback", f"refused: {plan.schema_point}" if plan.schema_point else plan.rollback_until
    if plan.later:
        yield "later", f"{plan.later} cannot move just now"
    if plan.pinned:
        yield "pinned", _pinned(plan.pinned)
    for note in plan.notes:
        if not plan.schema_point or plan.schema_point not in note:
            yield "note", note


def _planned(servers: Iterable[PlannedServer], word: str, sign: int) -> Iterator[tuple[str, ...]]:
    for one in servers:
        then = str(one.users + sign * one.moves) + (f"/{one.capacity}" if one.capacity else "")
        yield one.server_id, f"{one.moves} {word}", str(one.users), then, one.version or "-"
