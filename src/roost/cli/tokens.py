"""`roost token`: who may call the API."""

from __future__ import annotations

from typing import Annotated, get_args

import msgspec
import typer

from roost.api.tokens import NewToken, Scope, TokenInput, TokenList
from roost.cli import client, output
from roost.cli.options import Data, Json, Url, load
from roost.core.errors import InvalidInput

app = typer.Typer(help="Who may call the API.", no_args_is_help=True)


@app.command("create", epilog="Example:  roost token create game-servers --scope register --scope read")
def create(
    name: Annotated[str, typer.Argument(help="Who uses it.")],
    scope: Annotated[list[str], typer.Option(help=f"One of {', '.join(get_args(Scope))}; may be repeated.")],
    url: Url = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Make a token. Its secret is shown this once and kept nowhere."""
    try:
        wanted = msgspec.convert({"name": name, "scopes": scope}, TokenInput)
    except msgspec.ValidationError:
        raise InvalidInput(f"scopes are {', '.join(get_args(Scope))}") from None
    made = client.ask(load(url=url, data=data).settings, "POST", "/auth/v1/tokens", NewToken, body=wanted)
    if json:
        output.print_json(made)
    else:
        print(made.token)
        typer.echo(f"id {made.id}, scopes {', '.join(made.scopes)}; it is not shown again", err=True)


@app.command("list", epilog="Example:  roost token list --json")
def list_tokens(url: Url = None, data: Data = None, json: Json = False) -> None:
    """List the tokens, without their secrets."""
    found = client.ask(load(url=url, data=data).settings, "GET", "/auth/v1/tokens", TokenList)
    if json:
        output.print_json(found)
    else:
        rows = [(t.id, t.name, ", ".join(t.scopes), t.created_at) for t in found.tokens]
        output.print_table(("id", "name", "scopes", "created"), rows)


@app.command("revoke", epilog="Example:  roost token revoke 3f2a91bc")
def revoke(
    token_id: Annotated[str, typer.Argument(help="Its id, as `roost token list` shows it.")],
    url: Url = None,
    data: Data = None,
) -> None:
    """Revoke a token; it is refused everywhere within two seconds."""
    client.ask(
        load(url=url, data=data).settings, "DELETE", f"/auth/v1/tokens/{client.quoted(token_id)}", None
    )
    print(f"revoked {token_id}")
