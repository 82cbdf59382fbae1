"""`roost entity`: a server that holds users."""

from __future__ import annotations

from typing import Annotated

import typer

from roost.cli.context import Context, takes
from roost.cli.flags import DATA, Flag
from roost.cli.starting import CONFIG, PANEL, PROFILE, STORE, Ttl, Wait, host

app = typer.Typer(add_completion=False)

FLAGS = (
    STORE,
    Flag("database", str | None, "Database for users' state.", "SQLite in the data folder", "database"),
    Flag("class_", str | None, "The class of its users, module:Class.", "the reference", "entity.class_name"),
    Flag("port", int | None, "Port for gates; metrics are 1000 above.", "8430", "entity.port"),
    host("entity"),
    Flag("capacity", int | None, "Users at once.", "10000", "entity.capacity"),
    *(DATA, PROFILE, CONFIG),
)


@app.command(
    rich_help_panel=PANEL,
    epilog="Examples:  roost entity --id 501   ·   roost entity --id 502 --port 8431 --version 2.0"
    "   ·   roost entity --id 501 --class game.player:Player",
)
@takes(*FLAGS)
def entity(
    cli: Context,
    server_id: Annotated[str, typer.Option("--id", help="Server id, unique among the live ones.")] = "501",
    version: Annotated[str, typer.Option("--version", help="Version of the program.")] = "1.0",
    type_: Annotated[str, typer.Option("--type", help="Service type.")] = "entity",
    group: Annotated[str, typer.Option("--group", help="Group.")] = "main",
    ttl: Ttl = 0.0,
    wait: Wait = 30.0,
) -> None:
    """Run an entity server: it holds users and answers for them, each on one server at a time."""
    from roost import roles
    from roost.servers.entity.serving import EntityIdentity

    identity = EntityIdentity(server_id, version, type_, group, ttl)
    roles.run(roles.entity(cli.start(), identity, wait))
