"""`roost version`."""

from __future__ import annotations

import typer

from roost.cli.context import Context, takes
from roost.cli.flags import JSON
from roost.version import __version__

app = typer.Typer(add_completion=False)


@app.command()
@takes(JSON)
def version(cli: Context) -> None:
    """Print the version."""
    cli.show({"version": __version__}, lambda found: [f"roost {found['version']}"])
