"""`roost ring`: which server a key belongs to, and what a change of the fleet would move."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from roost.api.balancing import Explained, NodeInput, Preview, PreviewInput, Ring
from roost.cli.context import Context, takes
from roost.cli.flags import ASK_AND_SHOW
from roost.cli.selecting import Group, OneType
from roost.cli.tables import Column, Part, Table
from roost.core.errors import InvalidInput

app = typer.Typer(
    help="Which server a key belongs to, and what a change would move.",
    no_args_is_help=True,
    add_completion=False,
)

STATE = Column("state", wrap=True)
TAKES_USERS = "takes users"


@app.command("show", epilog="Example:  roost ring show --type game --group kr-1")
@takes(*ASK_AND_SHOW)
def show(cli: Context, type: OneType, group: Group = "*") -> None:  # noqa: A002 — the name of the flag
    """Show the share of keys of every server."""
    query = [("type", type), ("group", group)]
    cli.show(cli.ask("GET", "/lb/v1/ring", Ring, query=query), view)


def view(found: Ring) -> Iterator[Part]:
    rows = [(n.server_id, str(n.weight), f"{n.share:.2%}", n.why_not or TAKES_USERS) for n in found.nodes]
    yield Table(("server", "weight", "keys", STATE), rows)


@app.command(
    "preview", epilog="Example:  roost ring preview --type game --add 503 --add 504=200 --remove 501"
)
@takes(*ASK_AND_SHOW)
def preview(
    cli: Context,
    type: OneType,  # noqa: A002
    group: Group = "*",
    add: Annotated[list[str] | None, typer.Option(help="Server id, or id=weight; may be repeated.")] = None,
    remove: Annotated[list[str] | None, typer.Option(help="Server id; may be repeated.")] = None,
) -> None:
    """Show which share of keys a change of the fleet would move, before anything is changed."""
    if not add and not remove:
        raise InvalidInput("say what would change: --add or --remove")
    wanted = PreviewInput(type, group, [_node(text) for text in add or ()], list(remove or ()))
    cli.show(cli.ask("POST", "/lb/v1/preview", Preview, body=wanted), view_preview)


def view_preview(found: Preview) -> Iterator[Part]:
    yield f"{found.moved:.2%} of all keys would move"
    rows = [(m.source or "-", m.target or "-", f"{m.share:.2%}") for m in found.moves]
    yield Table(("from", "to", "keys"), rows)


def _node(text: str) -> NodeInput:
    name, equals, weight = text.partition("=")
    if equals and not weight.isdecimal():
        raise InvalidInput(f"--add {text!r} must be a server id or id=weight")
    return NodeInput(name, int(weight) if equals else 100)


@app.command("explain", epilog="Example:  roost ring explain user-42 --type game")
@takes(*ASK_AND_SHOW)
def explain(
    cli: Context,
    key: Annotated[str, typer.Argument(help="A user, or whatever is hashed.")],
    type: OneType,  # noqa: A002
    group: Group = "*",
    strategy: Annotated[str, typer.Option(help="How to choose.")] = "consistent_hash",
) -> None:
    """Show which server a key gets, who was considered, and who was refused and why."""
    query = [("key", key), ("type", type), ("group", group), ("strategy", strategy)]
    cli.show(cli.ask("GET", "/lb/v1/explain", Explained, query=query), view_explained)


def view_explained(told: Explained) -> Iterator[Part]:
    yield f"{told.key} → {told.chosen}" if told.chosen else f"{told.key} → nobody: {told.refusal}"
    yield Table(("server", STATE), [(c.server_id, c.why_not or TAKES_USERS) for c in told.considered])
