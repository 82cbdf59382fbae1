"""`roost gate`: keeps players' connections and takes their messages to the servers that hold them."""

from __future__ import annotations

from typing import Annotated

import typer

from roost.cli.context import Context, takes
from roost.cli.flags import DATA, Flag
from roost.cli.starting import CONFIG, PANEL, PROFILE, STORE, ServerId, Ttl, Wait, host

app = typer.Typer(add_completion=False)

FLAGS = (
    STORE,
    Flag("port", int | None, "Port for WebSocket clients; metrics are 1000 above.", "8410", "gate.port"),
    Flag("tcp_port", int | None, "Port for TCP clients; 0: none.", "8411", "gate.tcp_port"),
    host("gate"),
    Flag("types", str | None, "Service types that clients may name: entity,pets.", "entity", "gate.types"),
    Flag("world", str | None, "World whose tickets log clients in.", "login tokens", "gate.world"),
    Flag("capacity", int | None, "Clients at once.", "10000", "gate.capacity"),
    Flag(
        "public_url",
        str | None,
        "Where clients connect: ws:// or wss://.",
        "host and port",
        "gate.public_url",
    ),
    *(DATA, PROFILE, CONFIG),
)


@app.command(
    rich_help_panel=PANEL,
    epilog="Examples:  roost gate   ·   roost gate --port 8412 --tcp-port 8413   ·   roost gate --world main",
)
@takes(*FLAGS)
def gate(
    cli: Context,
    server_id: ServerId = "",
    type_: Annotated[str, typer.Option("--type", help="Its own service type in discovery.")] = "gate",
    group: Annotated[str, typer.Option("--group", help="Group.")] = "main",
    ttl: Ttl = 0.0,
    wait: Wait = 30.0,
) -> None:
    """Run a gate: players log in once and stay connected; each message goes to the user's home."""
    from roost import roles
    from roost.servers.gate.hosting import Identity

    roles.run(roles.gate(cli.start(), Identity(type_, group, server_id, ttl), wait))
