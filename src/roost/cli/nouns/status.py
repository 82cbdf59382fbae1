"""`roost status`: a running gateway and its store."""

from __future__ import annotations

from collections.abc import Iterator

import typer

from roost.api.system import Status
from roost.cli.context import Context, takes
from roost.cli.flags import ASK_AND_SHOW
from roost.cli.tables import Column, Part, Table

app = typer.Typer(add_completion=False)

COLUMNS = (
    "node",
    Column("state", wrap=True),
    Column("in flight", drop=2),
    Column("waiting", drop=1),
    Column("reconnects", drop=4),
    Column("timeouts", drop=3),
)


@app.command(epilog="Examples:  roost status   ·   roost status --json --url http://10.0.0.5:8400")
@takes(*ASK_AND_SHOW)
def status(cli: Context) -> None:
    """Show the state of a running gateway and its store."""
    found = cli.ask("GET", "/admin/v1/status", Status)
    cli.show(found, lambda found: view(found, cli.gateway_url))


def view(found: Status, url: str) -> Iterator[Part]:
    yield f"roost {found.version} at {url}, profile {found.profile}, pid {found.pid}"
    yield f"roles {', '.join(found.roles)}, since {found.started_at}"
    kept = found.store
    yield f"store {kept.server} at {kept.url} ({kept.shape}), {kept.latency_ms:g} ms"
    yield Table(
        COLUMNS,
        [
            (
                node.name,
                "connected" if node.connected else f"away: {node.why_down}",
                *map(str, (node.in_flight, node.waiting, node.reconnects, node.timeouts)),
            )
            for node in kept.nodes
        ],
    )
