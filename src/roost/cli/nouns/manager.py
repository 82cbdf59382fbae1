"""`roost manager`: the loops that one of them runs at a time."""

from __future__ import annotations

import typer

from roost.cli.context import Context, takes
from roost.cli.flags import DATA, Flag
from roost.cli.starting import CONFIG, PANEL, PROFILE, STORE, Wait, host

app = typer.Typer(add_completion=False)

PORT = Flag("port", int | None, "Port for health and metrics.", "9400", "manager.port")


@app.command(
    rich_help_panel=PANEL,
    epilog="Example:  roost manager --store redis+sentinel://s1,s2,s3/main --profile lan",
)
@takes(STORE, DATA, PORT, host("manager"), PROFILE, CONFIG)
def manager(cli: Context, wait: Wait = 30.0) -> None:
    """Run one manager: it lets people in and sees to servers that ended; one of them leads at a time."""
    from roost import roles

    roles.run(roles.role(roles.MANAGER, cli.start(), wait))
