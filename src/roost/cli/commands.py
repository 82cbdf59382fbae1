"""The verbs of `roost`. Each parses its flags, calls one function, and prints."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

import typer

from roost.cli import drill, instances, queue, ring, tokens
from roost.cli.options import Config, Data, Host, Json, Port, Profile, Store, Url, load
from roost.core.errors import InvalidInput
from roost.settings import Settings, example
from roost.version import __version__

app = typer.Typer(
    name="roost",
    help="A session control plane for stateful servers: who may enter, where each user lives.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _start(**flags: Any) -> Settings:
    from roost.logs import start_logging

    settings = load(**flags).settings
    start_logging(settings.log_level, settings.log_format)
    return settings


app.add_typer(drill.app, name="drill")
app.add_typer(instances.app, name="instances")
app.add_typer(ring.app, name="ring")
app.add_typer(queue.app, name="queue")
app.add_typer(tokens.app, name="token")


@app.command(
    epilog="Examples:  roost up   ·   roost up --port 9000 --data ./state   ·   roost up --store redis://127.0.0.1"
    "   ·   roost up --with gameserver"
)
def up(
    store: Store = None,
    data: Data = None,
    port: Port = None,
    host: Host = None,
    profile: Profile = None,
    config: Config = None,
    without: Annotated[list[str] | None, typer.Option(help="Leave a role out; may be repeated.")] = None,
    also: Annotated[
        list[str] | None, typer.Option("--with", help="Run a role that is off by default: gameserver.")
    ] = None,
) -> None:
    """Run everything on this machine, with a store of its own unless --store names one."""
    from roost.cli import up as running

    left_out, added = tuple(without or ()), tuple(also or ())
    if unknown := {*left_out, *added} - set(running.ROLES):
        raise InvalidInput(
            f"no role {', '.join(sorted(unknown))}", hint=f"roles are: {', '.join(running.ROLES)}"
        )
    settings = _start(
        store=store, data=data, gateway__port=port, gateway__host=host, profile=profile, config=config
    )
    running.run(running.up(settings, left_out, added))


@app.command(
    epilog="Example:  roost gateway --store redis+sentinel://s1,s2,s3/main --profile lan --host 0.0.0.0"
)
def gateway(
    store: Store = None,
    data: Data = None,
    port: Port = None,
    host: Host = None,
    profile: Profile = None,
    config: Config = None,
    wait: Annotated[float, typer.Option(help="Seconds to wait for a store that is away.")] = 30.0,
) -> None:
    """Run one HTTP gateway; any number of them share a store."""
    from roost.cli import up as running

    settings = _start(
        store=store, data=data, gateway__port=port, gateway__host=host, profile=profile, config=config
    )
    running.run(running.gateway(settings, wait))


@app.command(epilog="Example:  roost manager --store redis+sentinel://s1,s2,s3/main --profile lan")
def manager(
    store: Store = None,
    data: Data = None,
    port: Annotated[
        int | None, typer.Option(help="Port for health and metrics.", show_default="9400")
    ] = None,
    host: Host = None,
    profile: Profile = None,
    config: Config = None,
    wait: Annotated[float, typer.Option(help="Seconds to wait for a store that is away.")] = 30.0,
) -> None:
    """Run one manager: it lets people in and sees to servers that ended; one of them leads at a time."""
    from roost.cli import up as running

    settings = _start(
        store=store, data=data, manager__port=port, manager__host=host, profile=profile, config=config
    )
    running.run(running.manager(settings, wait))


@app.command(
    epilog="Examples:  roost gameserver   ·   roost gameserver --port 8421 --server-id 501 --capacity 500"
    "   ·   roost gameserver --url http://10.0.0.5:8400 --profile lan --host 0.0.0.0 "
    "--public-url wss://game.example/gameserver"
)
def gameserver(
    url: Annotated[
        str | None,
        typer.Option(help="Gateway, or store, to connect with.", show_default="the running `roost up`"),
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port for players; metrics are 1000 above.", show_default="8420")
    ] = None,
    host: Host = None,
    world: Annotated[str | None, typer.Option(help="World of the tickets.", show_default="main")] = None,
    capacity: Annotated[int | None, typer.Option(help="Players at once.", show_default="100")] = None,
    public_url: Annotated[
        str | None, typer.Option(help="Where players connect: ws:// or wss://.", show_default="host and port")
    ] = None,
    server_id: Annotated[str, typer.Option(help="Stable name, unique among the live ones of the type.")] = "",
    type: Annotated[str, typer.Option("--type", help="Service type.")] = "game",  # noqa: A002 — the flag's name
    group: Annotated[str, typer.Option("--group", help="Group.")] = "main",
    ttl: Annotated[
        float, typer.Option(help="Seconds of silence after which it is dead.", show_default="the profile's")
    ] = 0.0,
    data: Data = None,
    profile: Profile = None,
    config: Config = None,
    wait: Annotated[float, typer.Option(help="Seconds to wait for a gateway that is away.")] = 30.0,
) -> None:
    """Run the reference game server: WebSocket chat for whoever has a ticket of the waiting room."""
    from roost.cli import up as running
    from roost.servers.hosting import Identity

    settings = _start(
        url=url,
        data=data,
        profile=profile,
        config=config,
        gameserver__port=port,
        gameserver__host=host,
        gameserver__world=world,
        gameserver__capacity=capacity,
        gameserver__public_url=public_url,
    )
    running.run(running.gameserver(settings, Identity(type, group, server_id, ttl), wait))


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    epilog="Example:  roost agent --type game --group kr-1 --health http:8080/health -- ./server args",
)
def agent(
    command: Annotated[list[str], typer.Argument(help="The program and its arguments, after --.")],
    type: Annotated[str, typer.Option("--type", help="Service type.")],  # noqa: A002 — the name of the flag
    group: Annotated[str, typer.Option("--group", help="Group.")],
    port: Annotated[list[str] | None, typer.Option("--port", help="name=number; may be repeated.")] = None,
    health: Annotated[str, typer.Option(help="kind:port[/path]: http, tcp, grpc or udp.")] = "",
    server_id: Annotated[str, typer.Option(help="Stable name, unique among the live ones of the type.")] = "",
    capacity: Annotated[int, typer.Option(help="Users it can take; 0: no limit.")] = 0,
    label: Annotated[list[str] | None, typer.Option(help="name=value; may be repeated.")] = None,
    zone: Annotated[str, typer.Option(help="Where it runs.")] = "",
    program_version: Annotated[str, typer.Option("--program-version", help="Version of the program.")] = "",
    ttl: Annotated[
        float, typer.Option(help="Seconds of silence after which it is dead.", show_default="the profile's")
    ] = 0.0,
    url: Url = None,
    data: Data = None,
) -> None:
    """Register, beat and remove for a program in any language; pass signals and its exit code on."""
    from roost.cli import agent as running

    settings = _start(url=url, data=data)
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
    raise typer.Exit(asyncio.run(running.run_agent(settings, command, fields, ttl)))


@app.command(epilog="Examples:  roost health   ·   roost health --type game   ·   roost health --json")
def health(
    type: instances.Type = "*",  # noqa: A002 — the name of the flag
    group: instances.Group = "*",
    url: Url = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show which servers are well and what the health checkers say. Exit code 1 if one is not."""
    from roost.cli import health as report

    if not report.health(load(url=url, data=data).settings, type, group, json=json):
        raise typer.Exit(1)


@app.command(epilog="Examples:  roost status   ·   roost status --json --url http://10.0.0.5:8400")
def status(url: Url = None, data: Data = None, json: Json = False) -> None:
    """Show the state of a running gateway and its store."""
    from roost.api.system import Status
    from roost.cli import client, output

    settings = load(url=url, data=data).settings
    found = client.ask(settings, "GET", "/admin/v1/status", Status)
    if json:
        output.print_json(found)
        return
    print(
        f"roost {found.version} at {client.gateway_url(settings)}, profile {found.profile}, pid {found.pid}"
    )
    print(f"roles {', '.join(found.roles)}, since {found.started_at}")
    kept = found.store
    print(f"store {kept.server} at {kept.url} ({kept.shape}), {kept.latency_ms:g} ms")
    output.print_table(
        ("node", "state", "in flight", "waiting", "reconnects", "timeouts"),
        [
            (
                node.name,
                "connected" if node.connected else f"away: {node.why_down}",
                *map(str, (node.in_flight, node.waiting, node.reconnects, node.timeouts)),
            )
            for node in kept.nodes
        ],
    )


@app.command(
    epilog="Examples:  roost doctor   ·   roost doctor --store redis://10.0.0.7 --profile lan --json"
)
def doctor(
    store: Store = None,
    data: Data = None,
    port: Port = None,
    profile: Profile = None,
    config: Config = None,
    json: Json = False,
) -> None:
    """Look at everything that Roost depends on and say what to do. Exit code 1 if something is broken."""
    from roost.cli import doctor as examination
    from roost.cli import output
    from roost.logs import start_logging

    settings = load(store=store, data=data, gateway__port=port, profile=profile, config=config).settings
    start_logging("error", settings.log_format)
    findings = asyncio.run(examination.examine(settings))
    if json:
        output.print_json(findings)
    else:
        marks = {"ok": "[green]ok[/]", "warn": "[yellow]warn[/]", "fail": "[red]FAIL[/]"}
        rows = [(marks[f.state], f.what, f.found, "" if f.state == "ok" else f.advice) for f in findings]
        output.print_table(("", "what", "found", "what to do"), rows)
    if any(finding.state == "fail" for finding in findings):
        raise typer.Exit(1)


@app.command(
    epilog="Examples:  roost config   ·   roost config --example > roost.toml   ·   roost config --json"
)
def config(
    file: Annotated[
        Path | None, typer.Option("--config", help="TOML file with settings.", show_default=False)
    ] = None,
    show_example: Annotated[bool, typer.Option("--example", help="Print a commented TOML file.")] = False,
    json: Json = False,
) -> None:
    """Print the effective settings and where each comes from; secrets are masked."""
    from roost.cli import output

    if show_example:
        print(example(), end="")
        return
    rows = list(load(config=file).rows())
    if json:
        output.print_json([{"name": name, "value": value, "origin": origin} for name, value, origin in rows])
    else:
        output.print_table(("setting", "value", "from"), rows)


@app.command()
def version(json: Json = False) -> None:
    """Print the version."""
    from roost.cli import output

    if json:
        output.print_json({"version": __version__})
    else:
        print(f"roost {__version__}")
