"""From errors to HTTP: the one table of statuses, by family. The code stands on the class."""

from __future__ import annotations

import math
import pkgutil
from importlib import import_module

import msgspec

from roost.api.errors import ErrorDetail, ErrorReply
from roost.core import errors as e

STATUSES: dict[type[e.RoostError], int] = {
    e.Mistake: 400,
    e.Unauthorized: 401,
    e.Forbidden: 403,
    e.NotFound: 404,
    e.MethodNotAllowed: 405,
    e.RequestTimeout: 408,
    e.Conflict: 409,
    e.Gone: 410,
    e.BodyTooLarge: 413,
    e.UpgradeRequired: 426,
    e.TooManyRequests: 429,
    e.Unavailable: 503,
    e.WorldClosed: 503,
    e.StoreUnavailable: 503,
    e.StoreFull: 503,
    e.StoreAccessDenied: 503,
    e.StoreRefused: 500,
    e.Internal: 500,
    e.OutcomeUnknown: 504,
}
"""The nearest class up an error's family counts; one without any is a fault of ours."""

RETRY_AFTER_S = 1.0
"""What a 429 or 503 says where the error itself does not know."""


def status_of(error: type[e.RoostError]) -> int:
    return next(STATUSES[family] for family in error.__mro__ if family in STATUSES)


def known(error: BaseException) -> e.RoostError:
    """The error as one of ours; of an unexpected one a client learns nothing but its request id."""
    if isinstance(error, e.RoostError) and any(family in STATUSES for family in type(error).__mro__):
        return error
    if isinstance(error, msgspec.ValidationError):
        return e.InvalidInput(str(error), hint="/docs shows what this address takes")
    if isinstance(error, msgspec.DecodeError):
        return e.MalformedJson(f"the body is not JSON: {error}")
    return e.Internal("something went wrong on our side", hint="tell the operator the request id")


def body_of(error: e.RoostError, request_id: str, *, for_everybody: bool = False) -> bytes:
    """`for_everybody`: it is read by somebody without a token, who learns nothing of what is behind us."""
    message, hint = error.message, error.hint
    if type(error) is e.StoreRefused:
        message = "the store refused the operation"  # the server's own words may name keys
    elif for_everybody and isinstance(error, e.StoreError):
        message, hint = _summary(type(error)), type(error).hint  # its own words may name addresses
    detail = ErrorDetail(code=error.code, message=message, hint=hint, request_id=request_id)
    return msgspec.json.encode(ErrorReply(error=detail))


def _summary(error: type[e.RoostError]) -> str:
    return (error.__doc__ or "").partition("\n")[0]


def headers_of(error: e.RoostError) -> dict[str, str]:
    """What goes along with the status, by the rules of HTTP."""
    status = status_of(type(error))
    if status in (429, 503):
        return {"Retry-After": str(math.ceil(error.retry_after_s or RETRY_AFTER_S))}
    if status == 401:
        return {"WWW-Authenticate": 'Bearer realm="roost"'}
    if isinstance(error, e.MethodNotAllowed):
        return {"Allow": ", ".join(error.allowed)}
    return {"Upgrade": "websocket"} if status == 426 else {}


def table() -> list[tuple[int, str, str]]:
    """(status, code, meaning) of every error that can reach a client, for the documentation."""
    rows = [(status_of(c), c.code, _summary(c)) for c in e.with_codes()]
    return sorted(rows)


def document() -> str:
    """The text of docs/errors.md. Loads all of Roost, because a part may define errors of its own."""
    for module in pkgutil.walk_packages(import_module("roost").__path__, "roost."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    lines = [
        "# Errors",
        "",
        'An error is `{"error": {"code", "message", "hint", "requestId"}}` on every route. `code` is stable,',
        "for programs; `message` and `hint` are for people and may say more than this table. The request id",
        "is in the `X-Request-Id` header and in the log. 429 and 503 come with `Retry-After` in seconds.",
        "",
        "Made from the error classes by `python -m roost.web.errors > docs/errors.md`.",
        "",
        "| Status | Code | Meaning | What to do |",
        "|---|---|---|---|",
    ]
    for status, code, meaning in table():
        found = e.class_of(code)
        if found.__module__.startswith("roost."):  # not what a test makes up
            lines.append(f"| {status} | `{code}` | {meaning} | {found.hint} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(document(), end="")
