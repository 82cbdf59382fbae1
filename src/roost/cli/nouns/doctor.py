"""`roost doctor`: everything that Roost depends on, and what to do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from roost.cli.context import Context, takes
from roost.cli.flags import DATA, JSON
from roost.cli.starting import CONFIG, PORT, PROFILE, STORE
from roost.cli.tables import Column, Part, Styled, Table

if TYPE_CHECKING:
    from roost.store.inspect import Finding

app = typer.Typer(add_completion=False)

COLUMNS = (
    "",
    "what",
    Column("found", wrap=True, shorten=True),
    Column("what to do", wrap=True, shorten=True),
)
MARKS = {"ok": Styled("ok", "green"), "warn": Styled("warn", "yellow"), "fail": Styled("FAIL", "red")}


Role = Annotated[
    str, typer.Option(help="Whose rights the store's user should have.", show_default="its name")
]


@app.command(
    epilog="Examples:  roost doctor   ·   roost doctor --store redis://10.0.0.7 --profile lan --json"
)
@takes(STORE, DATA, PORT, PROFILE, CONFIG, JSON)
def doctor(cli: Context, role: Role = "") -> None:
    """Look at everything that Roost depends on and say what to do. Exit code 1 if something is broken."""
    from roost.cli.doctor import examine

    findings = asyncio.run(examine(cli.start(log_level="error"), role))
    cli.show(findings, view)
    if any(finding.state == "fail" for finding in findings):
        raise typer.Exit(1)


def view(findings: Sequence[Finding]) -> Iterator[Part]:
    rows = [(MARKS[f.state], f.what, f.found, "" if f.state == "ok" else f.advice) for f in findings]
    advice_is_needed = any(finding.state != "ok" for finding in findings)
    yield Table(COLUMNS, rows) if advice_is_needed else Table(COLUMNS[:3], [row[:3] for row in rows])
