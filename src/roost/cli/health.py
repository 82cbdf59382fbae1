"""`roost health`: which servers are well, and what the checkers say."""

from __future__ import annotations

from roost.api.discovery import CheckedServer, HealthReport
from roost.cli import client, output
from roost.cli.instances import age
from roost.settings import Settings


def health(settings: Settings, type_: str, group: str, *, json: bool) -> bool:
    """Print the report; whether everybody is well."""
    query = [("type", type_), ("group", group)]
    found = client.ask(settings, "GET", "/sd/v1/health", HealthReport, query=query)
    if json:
        output.print_json(found)
    else:
        output.print_table(
            ("server", "type", "group", "health", "status", "takes users", "beat", "probe", "votes"),
            [_row(server, found.checkers) for server in found.servers],
        )
        ill = sum(_is_ill(server) for server in found.servers)
        servers = "server" if len(found.servers) == 1 else "servers"
        word = "checker" if found.checkers == 1 else "checkers"
        print(f"{len(found.servers)} {servers}, {ill} unhealthy, {found.checkers} {word}")
    return not any(map(_is_ill, found.servers))


def _is_ill(server: CheckedServer) -> bool:
    return not server.healthy and server.status != "initializing"


def _row(server: CheckedServer, checkers: int) -> tuple[str, ...]:
    state = "[green]well[/]" if server.healthy else "[red]UNHEALTHY[/]"
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
        "yes" if server.accepting else "no",
        age(server.last_heartbeat),
        answer,
        f"{server.votes}/{checkers}" if server.votes else "-",
    )
