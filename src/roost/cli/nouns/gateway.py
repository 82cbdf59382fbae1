"""`roost gateway`: one HTTP gateway."""

from __future__ import annotations

import typer

from roost.cli.context import Context, takes
from roost.cli.starting import GATEWAY, PANEL, Wait

app = typer.Typer(add_completion=False)


@app.command(
    rich_help_panel=PANEL,
    epilog="Example:  roost gateway --store redis+sentinel://s1,s2,s3/main --profile lan --host 0.0.0.0",
)
@takes(*GATEWAY)
def gateway(cli: Context, wait: Wait = 30.0) -> None:
    """Run one HTTP gateway; any number of them share a store."""
    from roost import roles

    roles.run(roles.role(roles.GATEWAY, cli.start(), wait))
