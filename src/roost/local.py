"""What the processes of one machine know of each other, by `up.json` and `token` in the data folder."""

from __future__ import annotations

import base64
import json
import os
import secrets
import time
from pathlib import Path

from roost.settings import Settings

DEFAULT_URL = "http://127.0.0.1:8400"


def write_up_file(settings: Settings, url: str | None) -> None:
    """Say where `roost up` listens, for the commands that follow."""
    fresh = settings.up_file.with_suffix(".new")
    fresh.write_text(json.dumps({"url": url, "pid": os.getpid()}), encoding="utf-8")
    fresh.replace(settings.up_file)


def running_url(settings: Settings) -> str:
    """Where the `roost up` of this data folder listens; empty if none runs."""
    try:
        return str(json.loads(settings.up_file.read_text(encoding="utf-8"))["url"])
    except (OSError, ValueError, KeyError):
        return ""


def gateway_url(settings: Settings) -> str:
    """The setting, else the running `roost up`, else the default port."""
    return settings.url.rstrip("/") or running_url(settings) or DEFAULT_URL


def api_token(settings: Settings) -> str:
    if settings.api_token:
        return settings.api_token
    try:
        return settings.token_file.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def describe_token(settings: Settings) -> str:
    """Where the token is, never what it is."""
    return "from ROOST_API_TOKEN" if settings.api_token else f"in {_short(settings.token_file)}"


def _short(path: Path) -> str:
    home = str(Path.home())
    return str(path).replace(home, "~", 1) if str(path).startswith(home + "/") else str(path)


def fresh_secrets() -> dict[str, str]:
    """A new value for each setting that every Roost outside profile dev needs and that nobody else gives."""
    kid = f"{time.strftime('%Y%m%d', time.gmtime())}:"
    plain = {name: secrets.token_urlsafe(32) for name in ("api_token", "read_token", "wire_secret")}
    keys = ("queue_keys", "ticket_keys")
    return plain | {name: kid + base64.b64encode(secrets.token_bytes(32)).decode() for name in keys}
