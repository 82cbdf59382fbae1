"""`roost up`: everything on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from roost.cli.context import Context, takes
from roost.cli.starting import GATEWAY, PANEL
from roost.core.errors import InvalidInput

app = typer.Typer(add_completion=False)


@app.command(
    rich_help_panel=PANEL,
    epilog="Examples:  roost up   ·   roost up --port 9000 --data ./state   ·   roost up --store redis://127.0.0.1"
    "   ·   roost up --with gameserver",
)
@takes(*GATEWAY)
def up(
    cli: Context,
    without: Annotated[list[str] | None, typer.Option(help="Leave a role out; may be repeated.")] = None,
    also: Annotated[
        list[str] | None, typer.Option("--with", help="Run a role that is off by default: gameserver.")
    ] = None,
) -> None:
    """Run everything on this machine, with a store of its own unless --store names one."""
    from roost import roles

    left_out, added = tuple(without or ()), tuple(also or ())
    if unknown := {*left_out, *added} - set(roles.ROLES):
        raise InvalidInput(
            f"no role {', '.join(sorted(unknown))}", hint=f"roles are: {', '.join(roles.ROLES)}"
        )
    roles.run(roles.up(cli.start(), left_out, added))
