"""The command line as a client of the gateway's public HTTP API."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import msgspec

from roost.core.errors import RoostError, StartFailed
from roost.settings import Settings

TIMEOUT_S = 10.0


def gateway_url(settings: Settings) -> str:
    """The setting, else the running `roost up`, else the default port."""
    if settings.url:
        return settings.url.rstrip("/")
    try:
        return str(json.loads(settings.up_file.read_text(encoding="utf-8"))["url"])
    except (OSError, ValueError, KeyError):
        return "http://127.0.0.1:8400"


def api_token(settings: Settings) -> str:
    if settings.api_token:
        return settings.api_token
    try:
        return settings.token_file.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


class ApiError(RoostError):
    """The gateway refused."""


def get(settings: Settings, path: str, reply: type[Any]) -> Any:
    """GET from the gateway, as a message."""
    url = gateway_url(settings)
    if not url.startswith(("http://", "https://")):
        raise StartFailed(f"the gateway URL {url} must begin with http:// or https://", hint="correct --url")
    request = urllib.request.Request(url + path)  # noqa: S310 — the scheme was checked
    if token := api_token(settings):
        request.add_header("X-API-Token", token)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310
            return msgspec.json.decode(response.read(), type=reply)
    except urllib.error.HTTPError as error:
        raise _refusal(error, url) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise StartFailed(
            f"no gateway answers at {url}: {getattr(reason, 'strerror', None) or reason}",
            hint="start one with `roost up`, or name another with --url or ROOST_URL",
        ) from None
    except msgspec.DecodeError:
        raise StartFailed(f"{url} answers, but not as Roost does", hint="correct --url") from None


def _refusal(error: urllib.error.HTTPError, url: str) -> RoostError:
    try:
        detail = json.loads(error.read())["error"]
        return ApiError(f"{detail['code']}: {detail['message']}", hint=detail.get("hint", ""))
    except (ValueError, KeyError, TypeError):
        return StartFailed(f"{url} answers {error.code}, but not as Roost does", hint="correct --url")


def describe_token(settings: Settings) -> str:
    """Where the token is, never what it is."""
    return "from ROOST_API_TOKEN" if settings.api_token else f"in {_short(settings.token_file)}"


def _short(path: Path) -> str:
    home = str(Path.home())
    return str(path).replace(home, "~", 1) if str(path).startswith(home + "/") else str(path)
