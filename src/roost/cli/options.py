"""Flags that several commands share, and how they become settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from roost.settings import PROFILES, Loaded

Store = Annotated[
    str | None,
    typer.Option(help="Store URL: embedded:, redis://host, redis+sentinel://…", show_default=False),
]
Data = Annotated[Path | None, typer.Option(help="Data folder.", show_default="~/.local/state/roost")]
Port = Annotated[int | None, typer.Option(help="Port of the gateway.", show_default="8400")]
Host = Annotated[str | None, typer.Option(help="Address to listen on.", show_default="127.0.0.1")]
Profile = Annotated[str | None, typer.Option(help=f"One of {', '.join(PROFILES)}.", show_default="dev")]
Config = Annotated[Path | None, typer.Option(help="TOML file with settings.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Url = Annotated[str | None, typer.Option(help="Gateway to ask.", show_default="the running `roost up`")]


def load(**flags: Any) -> Loaded:
    """Settings with these flags on top; `gateway__port` names `gateway.port`."""
    named = {name.replace("__", "."): value for name, value in flags.items()}
    return Loaded.load({name: str(v) if isinstance(v, Path) else v for name, v in named.items()})
