"""`roost instances`: who is there, and what the operator orders."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Annotated

import msgspec
import typer

from roost.api.discovery import Change, Instance, InstanceDetail, InstanceList, Order
from roost.cli import client, output
from roost.cli.options import Data, Json, Url, load
from roost.core.errors import InvalidInput, UnknownInstance

app = typer.Typer(help="Who is there, and what the operator orders.", no_args_is_help=True)

Type = Annotated[str, typer.Option("--type", help="Service type; * for any.")]
Group = Annotated[str, typer.Option("--group", help="Group; * for any.")]
Label = Annotated[
    list[str] | None, typer.Option("--label", help="name=value that must hold; may be repeated.")
]
InstanceArgument = Annotated[str, typer.Argument(help="Instance id, or a server id that is unique.")]


@app.command(
    "list", epilog="Examples:  roost instances list   ·   roost instances list --type game --verify --json"
)
def list_instances(
    type: Type = "*",  # noqa: A002 — the name of the flag
    group: Group = "*",
    label: Label = None,
    verify: Annotated[bool, typer.Option("--verify", help="Probe each instance at its own address.")] = False,
    url: Url = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """List live instances."""
    query = [("type", type), ("group", group), *(("label", one) for one in label or ())]
    found = client.ask(
        load(url=url, data=data).settings,
        "GET",
        "/sd/v1/instances",
        InstanceList,
        query=[*query, *([("verify", "true")] if verify else [])],
    )
    if json:
        output.print_json(found)
        return
    rows = [_row(instance, verify) for instance in found.instances]
    columns = ("instance", "server", "type", "group", "status", "takes users", "load", "beat", "address")
    output.print_table((*columns, "probe") if verify else columns, rows)
    print(f"{len(rows)} instance{'' if len(rows) == 1 else 's'}, revision {found.revision}")


def _row(instance: Instance, verified: bool) -> tuple[str, ...]:
    ports = ",".join(f"{name}={port}" for name, port in instance.ports.items())
    load = f"{instance.load}/{instance.capacity}" if instance.capacity else str(instance.load)
    row = (
        instance.instance_id,
        instance.server_id or "-",
        instance.type,
        instance.group,
        instance.status + _ordered(instance.order),
        "yes" if instance.accepting else "no",
        load,
        age(instance.last_heartbeat),
        f"{instance.private_ip or instance.public_ip or instance.hostname} {ports}".strip(),
    )
    if not verified:
        return row
    probe = instance.probe
    answer = "no health check" if probe is None else f"{probe.latency_ms:.1f} ms" if probe.ok else probe.error
    return (*row, answer)


def _ordered(order: Order | None) -> str:
    if order is None:
        return ""
    words = [
        word for word, held in (("drain", order.drain), ("out of service", order.out_of_service)) if held
    ]
    words += [f"weight {order.weight}"] if order.weight is not None else []
    return f" ({', '.join(words)})" if words else ""


def age(iso: str) -> str:
    age = (datetime.now(UTC) - datetime.fromisoformat(iso)).total_seconds()
    return f"{max(0.0, age):.0f} s ago"


@app.command("show", epilog="Examples:  roost instances show 501   ·   roost instances show 01J8… --json")
def show(instance: InstanceArgument, url: Url = None, data: Data = None, json: Json = False) -> None:
    """Show one instance, living or gone, with its history."""
    settings = load(url=url, data=data).settings
    detail = client.ask(
        settings, "GET", f"/sd/v1/instances/{client.instance_id(settings, instance)}", InstanceDetail
    )
    if json:
        output.print_json(detail)
        return
    print(f"status: {detail.status}")
    if detail.instance is not None:
        for name, value in msgspec.to_builtins(detail.instance).items():
            if value not in ("", None, {}, []):
                print(f"{name}: {value}")
    output.print_table(
        ("when", "what", "life", "status"), [(h.at, h.event, h.life, h.status) for h in detail.history]
    )


@app.command(
    "override",
    epilog="Examples:  roost instances override 501 --drain   ·   roost instances override 501 --lift",
)
def override(
    instance: InstanceArgument,
    drain: Annotated[bool, typer.Option("--drain", help="Keep its users, take no new ones.")] = False,
    out_of_service: Annotated[bool, typer.Option("--out-of-service", help="Take no users at all.")] = False,
    weight: Annotated[int | None, typer.Option(help="Weight in place of its own, 0 to 10000.")] = None,
    lift: Annotated[bool, typer.Option("--lift", help="Lift every order.")] = False,
    url: Url = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Order something for an instance; the order survives its restart."""
    order = Order(drain, out_of_service, weight)
    if lift == (order != Order()):
        raise InvalidInput("say what to order (--drain, --out-of-service, --weight), or --lift")
    settings = load(url=url, data=data).settings
    path = f"/sd/v1/instances/{client.instance_id(settings, instance)}/override"
    detail = client.ask(settings, "PUT", path, InstanceDetail, body=order)
    if json:
        output.print_json(detail)
    else:
        assert detail.instance is not None
        ordered = _ordered(detail.instance.order) or " (no order)"
        print(f"{detail.instance.instance_id}: {detail.status}{ordered}")


@app.command("remove", epilog="Example:  roost instances remove 501")
def remove(
    instance: InstanceArgument,
    missing_ok: Annotated[bool, typer.Option("--missing-ok", help="Be content if it is not there.")] = False,
    url: Url = None,
    data: Data = None,
) -> None:
    """Take an instance out; it does not come back by itself."""
    settings = load(url=url, data=data).settings
    path = f"/sd/v1/instances/{client.instance_id(settings, instance)}"
    try:
        client.ask(settings, "DELETE", path, None, query=[("cause", "removed")])
        print(f"removed {instance}")
    except UnknownInstance:
        if not missing_ok:
            raise


@app.command(
    "watch", epilog="Examples:  roost instances watch --type game   ·   roost instances watch --json"
)
def watch(
    type: Type = "*",  # noqa: A002
    group: Group = "*",
    url: Url = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Print every change as it happens, until Ctrl-C. With --json one object per line."""
    settings = load(url=url, data=data).settings

    async def follow() -> None:
        from roost.sdk.connect import connect

        where, token = client.gateway_url(settings), client.api_token(settings)
        async with connect(where, token=token, cache_folder=settings.data / "cache") as roost:
            async for change in roost.watch(type, group):
                print(msgspec.json.encode(change).decode() if json else _line(change), flush=True)

    try:
        asyncio.run(follow())
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def _line(change: Change) -> str:
    at = (
        datetime.fromtimestamp(int(change.revision_at) / 1e6).strftime("%H:%M:%S") if change.revision else "-"
    )
    if change.event == "snapshot":
        return f"{at}  {len(change.instances or ())} instances, revision {change.revision}"
    who = f"{change.server_id:12} {change.status:12} {change.instance_id}"
    where = f"  {change.instance.type}/{change.instance.group}" if change.instance else ""
    return f"{at}  {change.event:8} {who}{where}"
