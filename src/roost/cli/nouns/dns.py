"""`roost dns`: discovery as DNS."""

from __future__ import annotations

import typer

from roost.cli.context import Context, takes
from roost.cli.flags import DATA, Flag
from roost.cli.starting import CONFIG, PANEL, PROFILE, STORE, Wait, host

app = typer.Typer(add_completion=False)

FLAGS = (
    STORE,
    Flag("port", int | None, "Port, UDP and TCP; metrics are 1000 above.", "8453", "dns.port"),
    host("dns"),
    Flag("zone", str | None, "Zone that it answers for.", "roost", "dns.zone"),
    *(DATA, PROFILE, CONFIG),
)


@app.command(
    rich_help_panel=PANEL,
    epilog="Examples:  roost dns   ·   dig @127.0.0.1 -p 8453 kr-1.game.roost   ·   "
    "dig @127.0.0.1 -p 8453 _ws._tcp.game.roost SRV",
)
@takes(*FLAGS)
def dns(cli: Context, wait: Wait = 30.0) -> None:
    """Run a DNS server that names the servers which take users: SRV and addresses by type and group."""
    from roost import roles

    roles.run(roles.dns(cli.start(), wait))
