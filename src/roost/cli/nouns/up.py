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
    "   ·   roost up --with gameserver   ·   roost up --with entity,gate"
    "   ·   roost up --no-demo",
)
@takes(*GATEWAY)
def up(
    cli: Context,
    without: Annotated[list[str] | None, typer.Option(help="Leave a role out; may be repeated.")] = None,
    also: Annotated[
        list[str] | None,
        typer.Option("--with", help="Run roles that are off by default: gameserver, entity, gate, orders."),
    ] = None,
    demo: Annotated[
        bool,
        typer.Option(help="Show a small fleet of servers and players (profile dev, embedded store)."),
    ] = True,
) -> None:
    """Run everything on this machine, with a store of its own unless --store names one."""
    from roost import roles

    left_out, added = _named(without), _named(also)
    if unknown := {*left_out, *added} - set(roles.ROLES):
        raise InvalidInput(
            f"no role {', '.join(sorted(unknown))}", hint=f"roles are: {', '.join(roles.ROLES)}"
        )
    roles.run(roles.up(cli.start(), left_out, added, demo=demo))


def _named(given: list[str] | None) -> tuple[str, ...]:
    """The roles of a flag that may be repeated, and hold several each."""
    return tuple(name.strip() for part in given or () for name in part.split(",") if name.strip())
