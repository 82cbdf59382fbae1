"""The command line as a client of the gateway's public HTTP API."""

from __future__ import annotations

import contextlib
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from http.client import HTTPException
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from roost.api.errors import ErrorReply, error_of
from roost.core.errors import RoostError, StartFailed
from roost.local import api_token, gateway_url
from roost.sdk.http.gateways import gateway_urls
from roost.settings import Settings
from roost.version import __version__

TIMEOUT_S = 10.0
USER_AGENT = f"roost-cli/{__version__}"
"""Says in the audit log that an act came by the command line."""
Reply = TypeVar("Reply")
Query = Sequence[tuple[str, str]]


def ask(
    settings: Settings, method: str, path: str, reply: type[Reply], *, query: Query = (), body: Any = None
) -> Reply:
    """One request to the gateway, its reply as a message; of several the first that answers is asked."""
    *others, last = _urls(settings)
    for url in others:
        with contextlib.suppress(_NotReached):
            return _ask(settings, url, method, path, reply, query, body)
    return _ask(settings, last, method, path, reply, query, body)


class _NotReached(StartFailed):
    """No gateway answers there, and asking another is harmless."""


def _urls(settings: Settings) -> tuple[str, ...]:
    url = gateway_url(settings)
    if not url.startswith(("http://", "https://")):
        raise StartFailed(f"the gateway URL {url} must begin with http:// or https://", hint="correct --url")
    return gateway_urls(url)


def print_lines(settings: Settings, path: str, query: Query) -> None:
    """Print what the first gateway that answers sends, line by line as it comes; no line is printed twice."""
    *others, last = _urls(settings)
    for url in others:
        with contextlib.suppress(_NotReached):
            return _print_lines(settings, url, path, query)
    return _print_lines(settings, last, path, query)


def _print_lines(settings: Settings, url: str, path: str, query: Query) -> None:
    has_begun = False
    try:
        for line in _lines(settings, url, path, query):
            has_begun = True
            print(line)
    except _NotReached:
        if not has_begun:
            raise
        raise StartFailed(f"{url} broke off: what is printed is not all of it", hint="ask again") from None


def _lines(settings: Settings, url: str, path: str, query: Query) -> Iterator[str]:
    """Apart from the printing: whoever reads what is printed may go, which is no fault of the gateway."""
    with _opened(settings, url, "GET", path, query, None) as response:
        rest = b""
        while piece := response.read1():  # unlike its lines, this tells an end from an answer that breaks off
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                yield line.decode()
        if rest:
            yield rest.decode()


def _ask(
    settings: Settings, url: str, method: str, path: str, reply: type[Reply], query: Query, body: Any
) -> Reply:
    with _opened(settings, url, method, path, query, body) as response:
        answer = response.read()
        try:
            return msgspec.json.decode(answer or b"null", type=reply)
        except msgspec.DecodeError:
            raise StartFailed(f"{url} answers, but not as Roost does", hint="correct --url") from None


@contextlib.contextmanager
def _opened(settings: Settings, url: str, method: str, path: str, query: Query, body: Any) -> Iterator[Any]:
    """The answer to one request, to be read; what goes wrong is raised as one of our errors."""
    target = f"{url}{path}?{urlencode(query)}" if query else url + path
    data = msgspec.json.encode(body) if body is not None else None
    request = urllib.request.Request(target, method=method, data=data)  # noqa: S310 — the scheme was checked
    request.add_header("User-Agent", USER_AGENT)
    if token := api_token(settings):
        request.add_header("X-API-Token", token)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310
            yield response
    except urllib.error.HTTPError as error:
        raise _refusal(error, url) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        may_go_on = method == "GET" or isinstance(error, urllib.error.URLError)  # it never got there
        failure = _NotReached if may_go_on else StartFailed
        raise failure(
            f"no gateway answers at {url}: {getattr(reason, 'strerror', None) or reason}",
            hint="start one with `roost up`, or name another with --url or ROOST_URL",
        ) from None
    except HTTPException as error:  # it broke off, or is no HTTP at all
        failure = _NotReached if method == "GET" else StartFailed
        raise failure(
            f"{url} answers, but not as Roost does: {type(error).__name__}",
            hint="ask again, or correct --url",
        ) from None


def quoted(text: str) -> str:
    return quote(text, safe="")


def _refusal(error: urllib.error.HTTPError, url: str) -> RoostError:
    try:
        detail = msgspec.json.decode(error.read(), type=ErrorReply).error
        error_class = type(error_of(detail))
        return error_class(f"{detail.code}: {detail.message}", hint=detail.hint)
    except msgspec.DecodeError:
        return StartFailed(f"{url} answers {error.code}, but not as Roost does", hint="correct --url")
