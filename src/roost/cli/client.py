"""The command line as a client of the gateway's public HTTP API."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar, overload
from urllib.parse import quote, urlencode

import msgspec

from roost.api.discovery import InstanceList
from roost.api.errors import ErrorReply, error_of
from roost.core.errors import InvalidInput, RoostError, StartFailed
from roost.settings import Settings

TIMEOUT_S = 10.0
Query = Sequence[tuple[str, str]]


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


Reply = TypeVar("Reply")


@overload
def ask(
    settings: Settings, method: str, path: str, reply: type[Reply], *, query: Query = (), body: Any = None
) -> Reply: ...
@overload
def ask(
    settings: Settings, method: str, path: str, reply: None, *, query: Query = (), body: Any = None
) -> None: ...
def ask(
    settings: Settings,
    method: str,
    path: str,
    reply: type[Any] | None,
    *,
    query: Query = (),
    body: Any = None,
) -> Any:
    """One request to the gateway, its reply as a message."""
    url = gateway_url(settings)
    if not url.startswith(("http://", "https://")):
        raise StartFailed(f"the gateway URL {url} must begin with http:// or https://", hint="correct --url")
    target = f"{url}{path}?{urlencode(query)}" if query else url + path
    data = msgspec.json.encode(body) if body is not None else None
    request = urllib.request.Request(target, method=method, data=data)  # noqa: S310 — the scheme was checked
    if token := api_token(settings):
        request.add_header("X-API-Token", token)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310
            answer = response.read()
            return msgspec.json.decode(answer, type=reply) if reply is not None else None
    except urllib.error.HTTPError as error:
        raise _refusal(error, url) from None
    except msgspec.DecodeError:
        raise StartFailed(f"{url} answers, but not as Roost does", hint="correct --url") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise StartFailed(
            f"no gateway answers at {url}: {getattr(reason, 'strerror', None) or reason}",
            hint="start one with `roost up`, or name another with --url or ROOST_URL",
        ) from None


def instance_id(settings: Settings, named: str) -> str:
    """The instance that a person means: its id, or the server id of one that lives."""
    found = ask(settings, "GET", "/sd/v1/instances", InstanceList)
    bearers = [i.instance_id for i in found.instances if i.server_id == named and i.instance_id != named]
    if len(bearers) > 1:
        raise InvalidInput(
            f"{named} is the server id of {len(bearers)} types", hint=f"ids: {', '.join(bearers)}"
        )
    return quoted(bearers[0] if bearers else named)


def quoted(text: str) -> str:
    return quote(text, safe="")


def _refusal(error: urllib.error.HTTPError, url: str) -> RoostError:
    try:
        detail = msgspec.json.decode(error.read(), type=ErrorReply).error
        error_class = type(error_of(detail))
        return error_class(f"{detail.code}: {detail.message}", hint=detail.hint)
    except msgspec.DecodeError:
        return StartFailed(f"{url} answers {error.code}, but not as Roost does", hint="correct --url")


def describe_token(settings: Settings) -> str:
    """Where the token is, never what it is."""
    return "from ROOST_API_TOKEN" if settings.api_token else f"in {_short(settings.token_file)}"


def _short(path: Path) -> str:
    home = str(Path.home())
    return str(path).replace(home, "~", 1) if str(path).startswith(home + "/") else str(path)
