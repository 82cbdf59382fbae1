"""`roost acl`: the users of the store, one for each role."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roost.cli.context import Context, takes
from roost.cli.starting import CONFIG

app = typer.Typer(add_completion=False)

Roles = Annotated[list[str] | None, typer.Option("--role", help="Only this role; may be given again.")]
Secrets = Annotated[
    Path | None,
    typer.Option(help="Folder with a password for each user, in a file of its name; makes what is missing."),
]
Commands = Annotated[
    bool, typer.Option("--commands", help="Print ACL SETUSER commands, for a store that runs.")
]


@app.command(epilog="Examples:  roost acl --secrets /etc/roost/users > users.acl   ·   roost acl --role gate")
@takes(CONFIG)
def acl(cli: Context, role: Roles = None, secrets: Secrets = None, commands: Commands = False) -> None:
    """Print the users of the store with the rights that each role needs, as an ACL file."""
    from roost.cli.store_users import printed

    print(printed(cli.settings, tuple(role or ()), secrets, as_commands=commands), end="")
