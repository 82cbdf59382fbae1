"""`roost bindings`: which server holds a user, and whom a server holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
import typer

from roost.api.binding import ENTITY, HeldUsers, Holder, HolderList, Home, HomeHistory, UnknownBinding
from roost.api.drain import MoveList, MoveView
from roost.cli.client import quoted
from roost.cli.context import NOTHING, Context, takes
from roost.cli.flags import ASK, ASK_AND_SHOW
from roost.cli.selecting import OneType
from roost.cli.tables import Column, Part, Table, age

app = typer.Typer(help="Which server holds a user.", no_args_is_help=True, add_completion=False)

ServerArgument = Annotated[str, typer.Argument(help="Server id.")]
UserArgument = Annotated[str, typer.Argument(help="User id.")]


class Told(msgspec.Struct):
    """What `explain` shows."""

    home: Home | None
    """None: nothing is known of them any more but what follows."""
    changes: HomeHistory
    moves: MoveList


@app.command("of", epilog="Examples:  roost bindings of 501   ·   roost bindings of 7 --type room --json")
@takes(*ASK_AND_SHOW)
def of(cli: Context, server: ServerArgument, type: OneType = ENTITY) -> None:  # noqa: A002 — the name of the flag
    """List the users that a server holds."""
    cli.show(_held(cli, server, type), view_held)


def _held(cli: Context, server: str, type_: str) -> HeldUsers:
    """All pages."""
    path, users, cursor = f"/bind/v1/servers/{quoted(server)}/users", list[str](), ""
    while True:
        query = [("type", type_), *([("cursor", cursor)] if cursor else [])]
        page = cli.ask("GET", path, HeldUsers, query=query)
        users += page.users
        cursor = page.cursor
        if not cursor:
            return HeldUsers(users, "")


def view_held(held: HeldUsers) -> Iterator[Part]:
    yield from held.users
    yield f"{len(held.users)} user{'' if len(held.users) == 1 else 's'}"


def _home(cli: Context, user: str, type_: str) -> Home:
    return cli.ask("GET", f"/bind/v1/users/{quoted(user)}", Home, query=[("type", type_)])


def view_home(home: Home) -> Iterator[Part]:
    where = f"{home.server_id} (life {home.life})" if home.server_id else "nobody"
    yield f"{home.user_id} → {where}, {home.state}: {home.why}, {age(home.since)}, epoch {home.epoch}"


@app.command(
    "servers", epilog="Examples:  roost bindings servers   ·   roost bindings servers --type room --json"
)
@takes(*ASK_AND_SHOW)
def servers(cli: Context, type: OneType = ENTITY) -> None:  # noqa: A002
    """List the servers that hold users: who takes new ones, and how many each has."""
    cli.show(cli.ask("GET", "/bind/v1/servers", HolderList, query=[("type", type)]), view_servers)


COLUMNS = (
    "server",
    Column("life", drop=2),
    "users",
    Column("takes users", wrap=True),
    Column("version", drop=1),
)


def view_servers(found: HolderList) -> Iterator[Part]:
    yield Table(COLUMNS, [_row(one) for one in found.servers])
    users = sum(one.users for one in found.servers)
    yield f"{len(found.servers)} server{'' if len(found.servers) == 1 else 's'}, {users} users"


def _row(one: Holder) -> tuple[str, ...]:
    users = f"{one.users}/{one.capacity}" if one.capacity else str(one.users)
    return one.server_id, one.life, users, _takes(one), one.version or "-"


def _takes(one: Holder) -> str:
    if one.accepting:
        return "yes"
    if not one.alive:
        return "no: its lease is over"
    return "no: full" if one.open else "no: discovery says so"


@app.command("release", epilog="Example:  roost bindings release ann")
@takes(*ASK)
def release(cli: Context, user: UserArgument, type: OneType = ENTITY) -> None:  # noqa: A002
    """Take a user away from the server that holds them; what it has not saved may be lost."""
    cli.ask("DELETE", f"/bind/v1/users/{quoted(user)}", NOTHING, query=[("type", type)])
    print(f"{user}: released")


@app.command("explain", epilog="Example:  roost bindings explain ann")
@takes(*ASK_AND_SHOW)
def explain(cli: Context, user: UserArgument, type: OneType = ENTITY) -> None:  # noqa: A002
    """Show where a user is, how they came there, and what became of each move; newest first."""
    path, query = f"/bind/v1/users/{quoted(user)}", [("type", type)]
    changes = cli.ask("GET", f"{path}/history", HomeHistory, query=query)
    moves = cli.ask("GET", f"{path}/moves", MoveList, query=query)
    try:
        home = _home(cli, user, type)
    except UnknownBinding:  # a released one is forgotten before the feed and the moves are
        if not changes.changes and not moves.moves:
            raise
        home = None
    cli.show(Told(home, changes, moves), view_told)


def view_told(told: Told) -> Iterator[Part]:
    yield from view_home(told.home) if told.home else ("nobody holds them; what is known of before:",)
    rows = [(c.at, c.why, c.source or "-", c.server_id or "-", str(c.epoch)) for c in told.changes.changes]
    yield Table(("at", "why", "from", "to", Column("epoch", drop=1)), rows)
    if told.moves.moves:
        yield ""
        yield Table(MOVES, [_move(one) for one in told.moves.moves])


MOVES = (
    "moved at",
    "outcome",
    "from",
    "to",
    Column("held up"),
    Column("of that", drop=2, wrap=True),
    Column("why", drop=3, wrap=True),
    Column("job", drop=1),
)


def _move(one: MoveView) -> tuple[str, ...]:
    phases = ", ".join(f"{name} {ms:.3g}" for name, ms in one.phases.items() if name in BLOCKING)
    held = f"{one.phases['total']:.3g} ms" if "total" in one.phases else "-"
    return one.at, one.outcome, one.source or "-", one.target or "-", held, phases or "-", one.why, one.job


BLOCKING = ("quiesce", "freeze", "flush", "accept")
"""Phases of a move while which the user waits; the flush before them is not among them."""
