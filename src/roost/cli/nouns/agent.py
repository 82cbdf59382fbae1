"""`roost agent`: Roost for a program that knows nothing of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from roost.cli.context import Context, takes
from roost.cli.flags import ASK
from roost.cli.starting import PANEL, ServerId, Ttl
from roost.core.errors import InvalidInput

if TYPE_CHECKING:
    from roost.api.discovery import EndCause
    from roost.settings import Settings

app = typer.Typer(add_completion=False)


@app.command(
    rich_help_panel=PANEL,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    epilog="Example:  roost agent --type game --group kr-1 --health http:8080/health -- ./server args",
)
@takes(*ASK)
def agent(
    cli: Context,
    type: Annotated[str, typer.Option("--type", help="Service type.")],  # noqa: A002 — the name of the flag
    group: Annotated[str, typer.Option("--group", help="Group.")],
    port: Annotated[list[str] | None, typer.Option("--port", help="name=number; may be repeated.")] = None,
    health: Annotated[str, typer.Option(help=r"kind:port\[/path]: http, tcp, grpc or udp.")] = "",
    server_id: ServerId = "",
    capacity: Annotated[int, typer.Option(help="Users it can take; 0: no limit.")] = 0,
    label: Annotated[list[str] | None, typer.Option(help="name=value; may be repeated.")] = None,
    zone: Annotated[str, typer.Option(help="Where it runs.")] = "",
    program_version: Annotated[str, typer.Option("--program-version", help="Version of the program.")] = "",
    ttl: Ttl = 0.0,
    on_drain: Annotated[
        str, typer.Option("--on-drain", help="Signal (SIGUSR1) or command when an operator wants it empty.")
    ] = "",
    on_removed: Annotated[
        str, typer.Option("--on-removed", help="Signal or command when it was removed; empty: nothing.")
    ] = "SIGTERM",
    finish: Annotated[
        str,
        typer.Option(
            help="For a stop hook, in place of a program: remove what a killed agent left. `success` is a "
            "clean stop, anything else a crash.",
            metavar="RESULT",
        ),
    ] = "",
    command: Annotated[
        list[str] | None, typer.Argument(help="The program and its arguments, after --.")
    ] = None,
) -> None:
    """Register, beat and remove for a program in any language; pass signals and its exit code on."""
    from roost.cli import agent as running
    from roost.cli.program import parse_action

    settings = cli.start()
    if finish:
        _finish(settings, type, server_id, finish)
        return
    if not command:
        raise InvalidInput(
            "name the program after --", hint="roost agent --type game --group kr-1 -- ./server"
        )
    orders = running.Orders(parse_action(on_drain, "--on-drain"), parse_action(on_removed, "--on-removed"))
    ports = running.parse_ports(port or [])
    fields = {
        "type": type,
        "group": group,
        "health": running.parse_health(health, ports),
        "ports": ports,
        "server_id": server_id,
        "capacity": capacity,
        "labels": dict(one.partition("=")[::2] for one in label or ()),
        "zone": zone,
        "version": program_version,
    }
    raise typer.Exit(asyncio.run(running.run_agent(settings, command, fields, ttl, orders)))


def _finish(settings: Settings, type_: str, server_id: str, result: str) -> None:
    from roost.cli import leaving

    cause: EndCause = "terminated" if result == "success" else "crashed"
    if left := asyncio.run(leaving.finish(settings, type_, server_id, cause)):
        print(f"removed {left}, which its agent left: {cause}")
