"""`roost audit`: what operators did."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Annotated

import msgspec
import typer

from roost.api.audit import MAX_ENTRIES, AuditEntry, AuditPage
from roost.api.events import Happening
from roost.cli.context import Context, takes
from roost.cli.flags import ASK_AND_SHOW
from roost.cli.tables import Column, Part, Styled, Table
from roost.core.errors import InvalidInput

app = typer.Typer(add_completion=False)

REMEMBERED = 2 * MAX_ENTRIES
"""Entries that were shown, by which those are known that come twice."""
COLUMNS = (
    Column("when", wrap=True),
    "who",
    "what",
    Column("to what", shorten=True),
    Column("outcome", wrap=True),
    Column("from", drop=2),
    Column("by way of", drop=1),
)


@app.command(
    epilog="Examples:  roost audit   ·   roost audit --action drain --since 2026-11-18   ·   "
    "roost audit --export > acts.jsonl   ·   roost audit --follow"
)
@takes(*ASK_AND_SHOW)
def audit(
    cli: Context,
    limit: Annotated[int, typer.Option(help="How many, at most 500.")] = 50,
    name: Annotated[str, typer.Option(help="Only by the token of this name.")] = "",
    action: Annotated[str, typer.Option(help="Only what begins so: drain, token.create …")] = "",
    target: Annotated[str, typer.Option(help="Only to what holds this.")] = "",
    since: Annotated[str, typer.Option(help="Only since this time, ISO 8601.")] = "",
    before: Annotated[str, typer.Option(help="Only before this entry: `next` of the page before.")] = "",
    export: Annotated[
        bool, typer.Option("--export", help="All that fit, as JSON lines, oldest first.")
    ] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
) -> None:
    """Show what operators did: who, when, from where, to what, and what came of it."""
    if follow and export:
        raise InvalidInput("--follow and --export do not go together")
    query = [("name", name), ("action", action), ("target", target), ("since", since)]
    query = [(key, value) for key, value in query if value]
    if export:
        from roost.cli.client import print_lines

        print_lines(cli.settings, "/audit/v1/export", query)
        return
    paging = [("limit", str(limit)), *([("before", before)] if before else [])]
    page = cli.ask("GET", "/audit/v1/entries", AuditPage, query=query + paging)
    if follow:
        _follow(cli, page, query, (name, action, target))
    else:
        cli.show(page, view)


def view(page: AuditPage) -> Iterator[Part]:
    yield Table(COLUMNS, [_row(entry) for entry in page.entries])
    if not page.entries:
        yield "nobody did anything that fits"
    if page.next:
        yield f"more: roost audit --before {page.next}"


def _row(entry: AuditEntry) -> tuple[str | Styled, ...]:
    refused = entry.outcome == "refused"
    outcome = Styled(f"refused: {entry.code}", "yellow") if refused else "done"
    when = entry.at[:19].replace("T", " ")
    return when, entry.name, entry.action, entry.target, outcome, entry.source, entry.via


def _follow(
    cli: Context, page: AuditPage, query: list[tuple[str, str]], wanted: tuple[str, str, str]
) -> None:
    """Where the stream has a gap, as it has where it begins, the log itself is asked."""
    from roost.cli import happening

    name, action, target = wanted
    shown = deque((entry.id for entry in page.entries), maxlen=REMEMBERED)
    newest = page.entries[0].at if page.entries else dict(query).get("since", "")

    def show(entry: AuditEntry) -> None:
        nonlocal newest
        if entry.id not in shown:
            shown.append(entry.id)
            newest = max(newest, entry.at)
            cli.show_line(entry, _line)

    def tell(found: Happening) -> None:
        entry = msgspec.convert(found.details, AuditEntry)
        if (not name or entry.name == name) and entry.action.startswith(action) and target in entry.target:
            show(entry)

    def fill_gap() -> None:
        since = [pair for pair in query if pair[0] != "since"] + ([("since", newest)] if newest else [])
        paging = [("limit", str(MAX_ENTRIES))]
        missed = cli.ask("GET", "/audit/v1/entries", AuditPage, query=since + paging)
        if missed.next:
            happening.tell_of_gap()
        for entry in reversed(missed.entries):
            show(entry)

    for entry in reversed(page.entries):
        cli.show_line(entry, _line)
    happening.follow(cli, ["audit"], tell, happening.NOWHERE, fill_gap)


def _line(entry: AuditEntry) -> str:
    outcome = "done" if entry.outcome == "done" else f"refused: {entry.code}"
    when = entry.at[:19].replace("T", " ")
    return f"{when}  {entry.name}  {entry.action}  {entry.target}  {outcome}  {entry.source}  {entry.via}"
