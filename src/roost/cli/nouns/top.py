"""`roost top`: everything at a glance, live."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Annotated

import typer

from roost.api.overview import Overview
from roost.cli.context import Context, takes
from roost.cli.flags import ASK_AND_SHOW

app = typer.Typer(add_completion=False)

REFRESH_S = 1.0


@app.command(epilog="Examples:  roost top   ·   roost top --once   ·   roost top --json | jq .worlds")
@takes(*ASK_AND_SHOW)
def top(
    cli: Context,
    once: Annotated[
        bool, typer.Option("--once", help="Look once; so it is where there is no terminal.")
    ] = False,
) -> None:
    """Show worlds, servers, homes, jobs and orders, what needs attention and what happened last."""
    from roost.cli.overview import view

    if once or not (cli.json or sys.stdout.isatty()):
        cli.show(cli.ask("GET", "/overview/v1", Overview), view)
        return
    try:
        if cli.json:
            for found in _looks(cli):
                cli.show_line(found)
        else:
            _draw(cli)
    except KeyboardInterrupt:
        return


def _draw(cli: Context) -> None:
    from rich.live import Live

    from roost.cli.overview import view
    from roost.cli.tables import console, together

    screen = console()
    with Live(console=screen, screen=True, auto_refresh=False) as live:
        for found in _looks(cli):
            live.update(together(view(found)), refresh=True)


def _looks(cli: Context) -> Iterator[Overview]:
    """A look each second. While nobody answers, stderr says why; the first must be answered."""
    from roost.core.errors import StartFailed, StoreError, Unavailable

    found = cli.ask("GET", "/overview/v1", Overview)
    while True:
        yield found
        time.sleep(REFRESH_S)
        try:
            found = cli.ask("GET", "/overview/v1", Overview)
        except (StartFailed, StoreError, Unavailable) as error:
            print(f"roost: {error.message}", file=sys.stderr)
