"""What every refused request gets: `{"error": {"code", "message", "hint", "requestId"}}`."""

from __future__ import annotations

from roost.api import Message
from roost.core import errors as e


class ErrorDetail(Message):
    code: str
    """Stable word for programs, such as STORE_AWAY."""
    message: str
    """What happened, for people."""
    hint: str
    """What to do next; may be empty."""
    request_id: str


class ErrorReply(Message):
    error: ErrorDetail


def error_of(detail: ErrorDetail, retry_after: str = "") -> e.RoostError:
    """The error that a direct call would have raised; `retry_after` is the header as it came."""
    error = e.class_of(detail.code)(detail.message, hint=detail.hint)
    if retry_after.isascii() and retry_after.isdecimal():
        error.retry_after_s = float(retry_after)
    return error
