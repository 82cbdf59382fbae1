"""Flags that say of which servers a command speaks."""

from __future__ import annotations

from typing import Annotated

import typer

Type = Annotated[str, typer.Option("--type", help="Service type; * for any.")]
OneType = Annotated[str, typer.Option("--type", help="Service type.")]
Group = Annotated[str, typer.Option("--group", help="Group; * for any.")]
