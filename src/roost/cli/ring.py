"""`roost ring`: which server a key belongs to, and what a change of the fleet would move."""

from __future__ import annotations

from typing import Annotated

import typer

from roost.api.balancing import Explained, NodeInput, Preview, PreviewInput, Ring
from roost.cli import client, output
from roost.cli.options import Data, Json, Url, load
from roost.core.errors import InvalidInput

app = typer.Typer(help="Which server a key belongs to, and what a change would move.", no_args_is_help=True)

Type = Annotated[str, typer.Option("--type", help="Service type.")]
Group = Annotated[str, typer.Option("--group", help="Group; * for any.")]


@app.command("show", epilog="Example:  roost ring show --type game --group kr-1")
def show(type: Type, group: Group = "*", url: Url = None, data: Data = None, json: Json = False) -> None:  # noqa: A002
    """Show the share of keys of every server."""
    settings = load(url=url, data=data).settings
    found = client.ask(settings, "GET", "/lb/v1/ring", Ring, query=[("type", type), ("group", group)])
    if json:
        output.print_json(found)
        return
    rows = [(n.server_id, str(n.weight), f"{n.share:.2%}", n.why_not or "takes users") for n in found.nodes]
    output.print_table(("server", "weight", "keys", "state"), rows)


@app.command(
    "preview", epilog="Example:  roost ring preview --type game --add 503 --add 504=200 --remove 501"
)
def preview(
    type: Type,  # noqa: A002
    group: Group = "*",
    add: Annotated[list[str] | None, typer.Option(help="Server id, or id=weight; may be repeated.")] = None,
    remove: Annotated[list[str] | None, typer.Option(help="Server id; may be repeated.")] = None,
    url: Url = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show which share of keys a change of the fleet would move, before anything is changed."""
    if not add and not remove:
        raise InvalidInput("say what would change: --add or --remove")
    wanted = PreviewInput(type, group, [_node(text) for text in add or ()], list(remove or ()))
    found = client.ask(load(url=url, data=data).settings, "POST", "/lb/v1/preview", Preview, body=wanted)
    if json:
        output.print_json(found)
        return
    print(f"{found.moved:.2%} of all keys would move")
    output.print_table(
        ("from", "to", "keys"), [(m.source or "-", m.target or "-", f"{m.share:.2%}") for m in found.moves]
    )


def _node(text: str) -> NodeInput:
    name, equals, weight = text.partition("=")
    if equals and not weight.isdecimal():
        raise InvalidInput(f"--add {text!r} must be a server id or id=weight")
    return NodeInput(name, int(weight) if equals else 100)


@app.command("explain", epilog="Example:  roost ring explain user-42 --type game")
def explain(
    key: Annotated[str, typer.Argument(help="A user, or whatever is hashed.")],
    type: Type,  # noqa: A002
    group: Group = "*",
    strategy: Annotated[str, typer.Option(help="How to choose.")] = "consistent_hash",
    url: Url = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show which server a key gets, who was considered, and who was refused and why."""
    query = [("key", key), ("type", type), ("group", group), ("strategy", strategy)]
    told = client.ask(load(url=url, data=data).settings, "GET", "/lb/v1/explain", Explained, query=query)
    if json:
        output.print_json(told)
        return
    print(f"{told.key} → {told.chosen}" if told.chosen else f"{told.key} → nobody: {told.refusal}")
    output.print_table(
        ("server", "state"), [(c.server_id, c.why_not or "takes users") for c in told.considered]
    )
