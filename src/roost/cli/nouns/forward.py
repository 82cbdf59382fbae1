"""`roost forward`: what happens, told to another system."""

from __future__ import annotations

import typer

from roost.cli.context import Context, takes
from roost.cli.flags import DATA, Flag
from roost.cli.starting import CONFIG, PANEL, PROFILE, STORE, Wait, host

app = typer.Typer(add_completion=False)

FLAGS = (
    Flag(
        "to", str | None, "webhook:https://…, nats://host/prefix or kafka://host/topic.", setting="forward.to"
    ),
    STORE,
    Flag("name", str | None, "Forwarders of one name share the work.", "main", "forward.name"),
    Flag("scopes", str | None, "What to tell of: discovery,binding.", "everything", "forward.scopes"),
    Flag("port", int | None, "Port for its health and metrics.", "9460", "forward.port"),
    host("forward"),
    *(DATA, PROFILE, CONFIG),
)


@app.command(
    rich_help_panel=PANEL,
    epilog="Examples:  roost forward --to webhook:https://example.com/roost   ·   "
    "roost forward --to nats://127.0.0.1:4222/roost.events --scopes discovery,binding",
)
@takes(*FLAGS)
def forward(cli: Context, wait: Wait = 30.0) -> None:
    """Send every event to a webhook, NATS or Kafka, at least once, from where the last one was."""
    from roost import roles

    roles.run(roles.forward(cli.start(), wait))
