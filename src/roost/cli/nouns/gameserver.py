"""`roost gameserver`: the reference game server."""

from __future__ import annotations

from typing import Annotated

import typer

from roost.cli.context import Context, takes
from roost.cli.flags import DATA, Flag
from roost.cli.starting import CONFIG, PANEL, PROFILE, ServerId, Ttl, host

app = typer.Typer(add_completion=False)

FLAGS = (
    Flag("url", str | None, "Gateway, or store, to connect with.", "the running `roost up`", "url"),
    Flag("port", int | None, "Port for players; metrics are 1000 above.", "8420", "gameserver.port"),
    host("gameserver"),
    Flag("world", str | None, "World of the tickets.", "main", "gameserver.world"),
    Flag("capacity", int | None, "Players at once.", "100", "gameserver.capacity"),
    Flag(
        "public_url",
        str | None,
        "Where players connect: ws:// or wss://.",
        "host and port",
        "gameserver.public_url",
    ),
    *(DATA, PROFILE, CONFIG),
)


@app.command(
    rich_help_panel=PANEL,
    epilog="Examples:  roost gameserver   ·   roost gameserver --port 8421 --server-id 501 --capacity 500"
    "   ·   roost gameserver --url http://10.0.0.5:8400 --profile lan --host 0.0.0.0 "
    "--public-url wss://game.example/gameserver",
)
@takes(*FLAGS)
def gameserver(
    cli: Context,
    server_id: ServerId = "",
    type: Annotated[str, typer.Option("--type", help="Service type.")] = "game",  # noqa: A002 — the flag's name
    group: Annotated[str, typer.Option("--group", help="Group.")] = "main",
    ttl: Ttl = 0.0,
    wait: Annotated[float, typer.Option(help="Seconds to wait for a gateway that is away.")] = 30.0,
) -> None:
    """Run the reference game server: WebSocket chat for the holders of tickets."""
    from roost import roles
    from roost.servers.hosting import Identity

    roles.run(roles.gameserver(cli.start(), Identity(type, group, server_id, ttl), wait))
