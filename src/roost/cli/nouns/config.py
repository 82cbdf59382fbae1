"""`roost config`: the effective settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

import typer

from roost.cli.context import Context, takes
from roost.cli.flags import JSON
from roost.cli.starting import CONFIG
from roost.cli.tables import Column, Part, Table

app = typer.Typer(add_completion=False)

COLUMNS = ("setting", Column("value", wrap=True, shorten=True), Column("from", drop=1, wrap=True))


@app.command(
    epilog="Examples:  roost config   ·   roost config --example > roost.toml   ·   "
    "roost config --secrets > .env   ·   roost config --json"
)
@takes(CONFIG, JSON)
def config(
    cli: Context,
    show_example: Annotated[bool, typer.Option("--example", help="Print a commented TOML file.")] = False,
    make_secrets: Annotated[
        bool, typer.Option("--secrets", help="Print fresh secrets as ROOST_… lines.")
    ] = False,
) -> None:
    """Print the effective settings and where each comes from; secrets are masked."""
    from roost.local import fresh_secrets
    from roost.settings import example, variable

    if show_example:
        print(example(), end="")
        return
    if make_secrets:
        print("\n".join(f"{variable(name)}={value}" for name, value in fresh_secrets().items()))
        return
    rows = [{"name": name, "value": value, "origin": origin} for name, value, origin in cli.loaded.rows()]
    cli.show(rows, view)


def view(rows: Sequence[Mapping[str, str]]) -> Iterator[Part]:
    yield Table(COLUMNS, [(row["name"], row["value"], row["origin"]) for row in rows])
