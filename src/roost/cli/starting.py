"""What commands share that start a process or look at what it would start with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roost.cli.flags import DATA, Flag
from roost.settings import PROFILES

PANEL = "Processes"
"""Under which heading `roost --help` lists them."""

STORE = Flag("store", str | None, "Store URL: embedded:, redis://host, redis+sentinel://…", setting="store")
PORT = Flag("port", int | None, "Port of the gateway.", "8400", "gateway.port")
PROFILE = Flag("profile", str | None, f"One of {', '.join(PROFILES)}.", "dev", "profile")
CONFIG = Flag("config", Path | None, "TOML file with settings.", setting="config")


def host(role: str) -> Flag:
    return Flag("host", str | None, "Address to listen on.", "127.0.0.1", f"{role}.host")


GATEWAY = (STORE, DATA, PORT, host("gateway"), PROFILE, CONFIG)

Wait = Annotated[float, typer.Option(help="Seconds to wait for a store that is away.")]
Ttl = Annotated[
    float, typer.Option(help="Seconds of silence after which it is dead.", show_default="the profile's")
]
ServerId = Annotated[str, typer.Option(help="Stable name, unique among the live ones of the type.")]
