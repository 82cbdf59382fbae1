"""`roost instances`: who is there, and what the operator overrides."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated

import msgspec
import typer

from roost.api.discovery import Change, Instance, InstanceDetail, InstanceList, Override
from roost.cli.client import quoted
from roost.cli.context import NOTHING, Context, takes
from roost.cli.flags import ASK, ASK_AND_SHOW
from roost.cli.selecting import Group, Type
from roost.cli.tables import Column, Part, Table, age, takes_users
from roost.core.errors import InvalidInput, UnknownInstance

app = typer.Typer(
    help="Who is there, and what the operator overrides.", no_args_is_help=True, add_completion=False
)

Label = Annotated[
    list[str] | None, typer.Option("--label", help="name=value that must hold; may be repeated.")
]
InstanceArgument = Annotated[str, typer.Argument(help="Instance id, or a server id that is unique.")]


@app.command(
    "list", epilog="Examples:  roost instances list   ·   roost instances list --type game --verify --json"
)
@takes(*ASK_AND_SHOW)
def list_instances(
    cli: Context,
    type: Type = "*",  # noqa: A002 — the name of the flag
    group: Group = "*",
    label: Label = None,
    verify: Annotated[bool, typer.Option("--verify", help="Probe each instance at its own address.")] = False,
) -> None:
    """List live instances."""
    query = [("type", type), ("group", group), *(("label", one) for one in label or ())]
    query += [("verify", "true")] if verify else []
    found = cli.ask("GET", "/sd/v1/instances", InstanceList, query=query)
    cli.show(found, lambda found: view(found, verify))


COLUMNS = (
    "instance",
    "server",
    Column("type", drop=6),
    Column("group", drop=5),
    Column("status", wrap=True),
    Column("takes users", drop=4),
    Column("load", drop=3),
    Column("beat", drop=1),
    Column("address", drop=2, wrap=True),
)
PROBE = Column("probe", wrap=True)


def view(found: InstanceList, verified: bool) -> Iterator[Part]:
    rows = [_row(instance, verified) for instance in found.instances]
    yield Table((*COLUMNS, PROBE) if verified else COLUMNS, rows)
    yield f"{len(rows)} instance{'' if len(rows) == 1 else 's'}, revision {found.revision}"


def _row(instance: Instance, verified: bool) -> tuple[str, ...]:
    ports = ",".join(f"{name}={port}" for name, port in instance.ports.items())
    load = f"{instance.load}/{instance.capacity}" if instance.capacity else str(instance.load)
    row = (
        instance.instance_id,
        instance.server_id or "-",
        instance.type,
        instance.group,
        instance.status + _overridden(instance.override),
        takes_users(instance.status, instance.accepting),
        load,
        age(instance.last_heartbeat),
        f"{instance.private_ip or instance.public_ip or instance.hostname} {ports}".strip(),
    )
    if not verified:
        return row
    probe = instance.probe
    answer = "no health check" if probe is None else f"{probe.latency_ms:.1f} ms" if probe.ok else probe.error
    return (*row, answer)


def _overridden(override: Override | None) -> str:
    if override is None:
        return ""
    words = [
        word
        for word, held in (("drain", override.drain), ("out of service", override.out_of_service))
        if held
    ]
    words += [f"weight {override.weight}"] if override.weight is not None else []
    return f" ({', '.join(words)})" if words else ""


def _path(cli: Context, named: str) -> str:
    """Of the instance that a person means: by its id, or by the server id of one that lives."""
    found = cli.ask("GET", "/sd/v1/instances", InstanceList)
    holders = [i.instance_id for i in found.instances if i.server_id == named and i.instance_id != named]
    if len(holders) > 1:
        raise InvalidInput(
            f"{named} is the server id of {len(holders)} types", hint=f"ids: {', '.join(holders)}"
        )
    return f"/sd/v1/instances/{quoted(holders[0] if holders else named)}"


@app.command("show", epilog="Examples:  roost instances show 501   ·   roost instances show 01J8… --json")
@takes(*ASK_AND_SHOW)
def show(cli: Context, instance: InstanceArgument) -> None:
    """Show one instance, living or gone, with its history."""
    cli.show(cli.ask("GET", _path(cli, instance), InstanceDetail), view_detail)


def view_detail(detail: InstanceDetail) -> Iterator[Part]:
    from roost.discovery.rules import STATES

    meaning = next(
        (text for state, text in STATES.items() if state == detail.status), "An operator removed it."
    )
    yield f"status: {detail.status}. {meaning}"
    if detail.instance is not None:
        for name, value in msgspec.to_builtins(detail.instance).items():
            if value not in ("", None, {}, []):
                yield f"{name}: {value}"
    rows = [(h.at, h.event, h.life, h.status) for h in detail.history]
    yield Table(("when", "what", Column("life", drop=1), "status"), rows)


@app.command(
    "override",
    epilog="Examples:  roost instances override 501 --drain   ·   roost instances override 501 --lift",
)
@takes(*ASK_AND_SHOW)
def override(
    cli: Context,
    instance: InstanceArgument,
    drain: Annotated[bool, typer.Option("--drain", help="Keep its users, take no new ones.")] = False,
    out_of_service: Annotated[bool, typer.Option("--out-of-service", help="Take no users at all.")] = False,
    weight: Annotated[int | None, typer.Option(help="Weight in place of its own, 0 to 10000.")] = None,
    lift: Annotated[bool, typer.Option("--lift", help="Lift every override.")] = False,
) -> None:
    """Override something for an instance; the override survives its restart."""
    override = Override(drain, out_of_service, weight)
    if lift == (override != Override()):
        raise InvalidInput("say what to override (--drain, --out-of-service, --weight), or --lift")
    detail = cli.ask("PUT", f"{_path(cli, instance)}/override", InstanceDetail, body=override)
    cli.show(detail, view_override)


def view_override(detail: InstanceDetail) -> Iterator[Part]:
    assert detail.instance is not None
    overridden = _overridden(detail.instance.override) or " (no override)"
    yield f"{detail.instance.instance_id}: {detail.status}{overridden}"


@app.command("remove", epilog="Example:  roost instances remove 501")
@takes(*ASK)
def remove(
    cli: Context,
    instance: InstanceArgument,
    missing_ok: Annotated[bool, typer.Option("--missing-ok", help="Be content if it is not there.")] = False,
) -> None:
    """Take an instance out; it does not come back by itself."""
    try:
        cli.ask("DELETE", _path(cli, instance), NOTHING, query=[("cause", "removed")])
        print(f"removed {instance}")
    except UnknownInstance:
        if not missing_ok:
            raise


@app.command(
    "watch", epilog="Examples:  roost instances watch --type game   ·   roost instances watch --json"
)
@takes(*ASK_AND_SHOW)
def watch(
    cli: Context,
    type: Type = "*",  # noqa: A002
    group: Group = "*",
) -> None:
    """Print every change as it happens, until Ctrl-C. With --json one object per line."""

    async def follow() -> None:
        from roost.sdk.connect import connect

        cache = cli.settings.data / "cache"
        async with connect(cli.gateway_url, token=cli.api_token, cache_folder=cache) as roost:
            async for change in roost.watch(type, group):
                cli.show_line(change, _line)

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(follow())


def _line(change: Change) -> str:
    at = (
        datetime.fromtimestamp(int(change.revision_at) / 1e6).strftime("%H:%M:%S") if change.revision else "-"
    )
    if change.event == "snapshot":
        return f"{at}  {len(change.instances or ())} instances, revision {change.revision}"
    who = f"{change.server_id:12} {change.status:12} {change.instance_id}"
    where = f"  {change.instance.type}/{change.instance.group}" if change.instance else ""
    return f"{at}  {change.event:8} {who}{where}"
