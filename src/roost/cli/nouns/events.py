"""`roost events`: what happens in all of Roost, in words."""

from __future__ import annotations

from typing import Annotated

import typer

from roost.api.events import EVENT_SCOPES
from roost.api.overview import Overview
from roost.cli.context import Context, takes
from roost.cli.flags import ASK_AND_SHOW
from roost.core.errors import InvalidInput

app = typer.Typer(add_completion=False)

SCOPES = tuple(scope for scope in EVENT_SCOPES if scope != "overview")


@app.command(
    epilog="Examples:  roost events   ·   roost events --follow --scope discovery --scope drain   ·   "
    "roost events --follow --json | jq .text"
)
@takes(*ASK_AND_SHOW)
def events(
    cli: Context,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    scope: Annotated[
        list[str] | None,
        typer.Option("--scope", help=f"Only of these: {', '.join(SCOPES)}; may be repeated."),
    ] = None,
) -> None:
    """Show what happened last, and with --follow what happens. With --json one object per line."""
    from roost.cli import happening

    wanted = scope or list(SCOPES)
    if unknown := [name for name in wanted if name not in SCOPES]:
        raise InvalidInput(f"there is no scope {unknown[0][:40]!r}", hint=f"scopes: {', '.join(SCOPES)}")
    overview = cli.ask("GET", "/overview/v1", Overview)
    for found in reversed(overview.recent):
        if found.scope in wanted:
            happening.show(cli, found)
    if follow:
        happening.follow(cli, wanted, lambda found: happening.show(cli, found), overview.event_id)
