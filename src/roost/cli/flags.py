"""Flags that several commands share. Each sets a setting, but for --json."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer


@dataclass(frozen=True, slots=True)
class Flag:
    """`--name`, which sets `setting`. A name that Python reserves ends with an underscore."""

    name: str
    type: Any
    help: str
    shown: str | bool = False
    """What --help shows as the default; False: nothing."""
    setting: str = ""
    """Dotted name, such as gateway.port; empty: no setting."""

    @property
    def annotation(self) -> Any:
        option = typer.Option(
            f"--{self.name.rstrip('_').replace('_', '-')}", help=self.help, show_default=self.shown
        )
        return Annotated[self.type, option]


URL = Flag("url", str | None, "Gateway to ask.", "the running `roost up`", "url")
DATA = Flag("data", Path | None, "Data folder.", "~/.local/state/roost", "data")
JSON = Flag("json", bool, "Print JSON.")

ASK = (URL, DATA)
"""Of a command that asks the gateway and has nothing to show."""
ASK_AND_SHOW = (*ASK, JSON)
