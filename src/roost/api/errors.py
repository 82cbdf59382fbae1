"""What every refused request gets: `{"error": {"code", "message", "hint", "requestId"}}`."""

from __future__ import annotations

from roost.api import Message


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
