"""`roost entity_hotfix 501,502`: the order of document 001, the same as `roost drain start 501 502`."""

from __future__ import annotations

from typing import Annotated

import typer

from roost.api.drain import DrainInput
from roost.cli.context import Context, takes
from roost.cli.flags import ASK_AND_SHOW
from roost.cli.nouns.drain import Follow, begin, split

app = typer.Typer(add_completion=False)


@app.command(epilog="Example:  roost entity_hotfix 501,502")
@takes(*ASK_AND_SHOW)
def entity_hotfix(
    cli: Context,
    servers: Annotated[list[str], typer.Argument(help="Server ids.", metavar="ID,ID")],
    follow: Follow = None,
) -> None:
    """Move all users off these servers: `roost drain start` by its name in document 001."""
    begin(cli, DrainInput(split(servers), by="entity_hotfix"), follow)
