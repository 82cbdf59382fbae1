"""`roost health`: which servers are healthy, and what the checkers say."""

from __future__ import annotations

from collections.abc import Iterator

import typer

from roost.api.discovery import CheckedServer, HealthReport
from roost.cli.context import Context, takes
from roost.cli.flags import ASK_AND_SHOW
from roost.cli.selecting import Group, Type
from roost.cli.tables import Cell, Column, Part, Styled, Table, age, takes_users
from roost.discovery.assignment import CHECKERS_PER_INSTANCE

app = typer.Typer(add_completion=False)

COLUMNS = (
    "server",
    Column("type", drop=4),
    Column("group", drop=3),
    "health",
    "status",
    Column("takes users", drop=2),
    Column("beat", drop=1),
    Column("probe", wrap=True),
    Column("votes", drop=5),
)


@app.command(epilog="Examples:  roost health   ·   roost health --type game   ·   roost health --json")
@takes(*ASK_AND_SHOW)
def health(
    cli: Context,
    type: Type = "*",  # noqa: A002 — the name of the flag
    group: Group = "*",
) -> None:
    """Show which servers are healthy and what the health checkers say. Exit code 1 if one is not."""
    found = cli.ask("GET", "/sd/v1/health", HealthReport, query=[("type", type), ("group", group)])
    cli.show(found, view)
    if any(map(_is_unhealthy, found.servers)):
        raise typer.Exit(1)


def view(found: HealthReport) -> Iterator[Part]:
    yield Table(COLUMNS, [_row(server, found.checkers) for server in found.servers])
    unhealthy = sum(_is_unhealthy(server) for server in found.servers)
    servers = "server" if len(found.servers) == 1 else "servers"
    word = "checker" if found.checkers == 1 else "checkers"
    yield f"{len(found.servers)} {servers}, {unhealthy} unhealthy, {found.checkers} {word}"


def _is_unhealthy(server: CheckedServer) -> bool:
    return not server.healthy and server.status != "initializing"


def _row(server: CheckedServer, checkers: int) -> tuple[Cell, ...]:
    state: Cell = Styled("healthy", "green") if server.healthy else Styled("UNHEALTHY", "red")
    if server.status == "initializing":
        state = "starting"
    probe = server.probe
    answer = "-" if probe is None else f"{probe.latency_ms:.1f} ms" if probe.ok else probe.error
    return (
        server.server_id,
        server.type,
        server.group,
        state,
        server.status,
        takes_users(server.status, server.accepting),
        age(server.last_heartbeat),
        answer,
        f"{server.votes}/{min(checkers, CHECKERS_PER_INSTANCE)}" if server.votes else "-",
    )
