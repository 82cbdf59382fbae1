"""`roost token`: who may call the API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, get_args

import msgspec
import typer

from roost.api.tokens import NewToken, Scope, Token, TokenInput, TokenList
from roost.cli.client import quoted
from roost.cli.context import NOTHING, Context, takes
from roost.cli.flags import ASK, ASK_AND_SHOW
from roost.cli.tables import Column, Part, Table
from roost.core.errors import InvalidInput

app = typer.Typer(help="Who may call the API.", no_args_is_help=True, add_completion=False)

COLUMNS = (
    "id",
    Column("name", wrap=True),
    Column("scopes", wrap=True),
    Column("bound to", wrap=True),
    Column("created", drop=1),
)


@app.command(
    "create",
    epilog="Example:  roost token create game-501 --scope register --scope gameserver "
    "--world main --type game --server 501",
)
@takes(*ASK_AND_SHOW)
def create(
    cli: Context,
    name: Annotated[str, typer.Argument(help="Who uses it.")],
    scope: Annotated[list[str], typer.Option(help=f"One of {', '.join(get_args(Scope))}; may be repeated.")],
    world: Annotated[
        list[str] | None, typer.Option(help="Bind it to this world; may be repeated. Default: all.")
    ] = None,
    type: Annotated[  # noqa: A002 — the name of the flag
        list[str] | None, typer.Option(help="Bind it to this type of server; may be repeated. Default: all.")
    ] = None,
    server: Annotated[str, typer.Option(help="Bind it to the server with this id. Default: all.")] = "",
) -> None:
    """Make a token. Its secret is shown this once and kept nowhere."""
    bound = {"worlds": world or [], "types": type or [], "serverId": server}
    try:
        wanted = msgspec.convert({"name": name, "scopes": scope, **bound}, TokenInput)
    except msgspec.ValidationError:
        raise InvalidInput(f"scopes are {', '.join(get_args(Scope))}") from None
    made = cli.ask("POST", "/auth/v1/tokens", NewToken, body=wanted)
    cli.show(made, lambda made: [made.token])
    if not cli.json:  # beside the output, so that `$(roost token create …)` is the secret alone
        bound_to = f", bound to {text}" if (text := _bindings(made)) else ""
        typer.echo(
            f"id {made.id}, scopes {', '.join(made.scopes)}{bound_to}; it is not shown again", err=True
        )


@app.command("list", epilog="Example:  roost token list --json")
@takes(*ASK_AND_SHOW)
def list_tokens(cli: Context) -> None:
    """List the tokens, without their secrets."""
    cli.show(cli.ask("GET", "/auth/v1/tokens", TokenList), view)


def view(found: TokenList) -> Iterator[Part]:
    rows = [(t.id, t.name, ", ".join(t.scopes), _bindings(t) or "-", t.created_at) for t in found.tokens]
    yield Table(COLUMNS, rows)


def _bindings(token: Token | NewToken) -> str:
    parts = [f"world {name}" for name in token.worlds] + [f"type {name}" for name in token.types]
    return ", ".join([*parts, *([f"server {token.server_id}"] if token.server_id else [])])


@app.command("revoke", epilog="Example:  roost token revoke 3f2a91bc")
@takes(*ASK)
def revoke(
    cli: Context,
    token_id: Annotated[str, typer.Argument(help="Its id, as `roost token list` shows it.")],
) -> None:
    """Revoke a token; it is refused everywhere within two seconds."""
    cli.ask("DELETE", f"/auth/v1/tokens/{quoted(token_id)}", NOTHING)
    print(f"revoked {token_id}")
