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


CLASSES: dict[str, type[e.RoostError]] = {
    "INVALID_ID": e.InvalidId,
    "INVALID_INPUT": e.InvalidInput,
    "MALFORMED_JSON": e.InvalidInput,
    "BODY_TOO_LARGE": e.InvalidInput,
    "TOKEN_REFUSED": e.TokenRefused,
    "UNAUTHENTICATED": e.NotAuthenticated,
    "FORBIDDEN": e.Forbidden,
    "NOT_FOUND": e.InvalidInput,
    "METHOD_NOT_ALLOWED": e.InvalidInput,
    "UNKNOWN": e.UnknownInstance,
    "UNKNOWN_WORLD": e.UnknownWorld,
    "TOO_MANY_REQUESTS": e.TooManyRequests,
    "WORLD_CLOSED": e.WorldClosed,
    "TICKET_REFUSED": e.TicketRefused,
    "TICKET_USED": e.TicketUsed,
    "SERVER_FULL": e.ServerFull,
    "SERVER_NOT_REPORTED": e.ServerNotReported,
    "POLICY_CONFLICT": e.PolicyConflict,
    "FENCED": e.FencedInstance,
    "SERVER_ID_TAKEN": e.ServerIdTaken,
    "REMOVED": e.RemovedInstance,
    "STORE_OVERLOADED": e.StoreOverloaded,
    "STORE_AWAY": e.StoreUnavailable,
    "STORE_FULL": e.StoreFull,
    "STORE_ACCESS_DENIED": e.StoreAccessDenied,
    "STORE_REFUSED": e.StoreRefused,
    "OUTCOME_UNKNOWN": e.OutcomeUnknown,
    "INTERNAL": e.StoreRefused,
}
"""What each code means to a client: the same class that a direct call would have raised."""


def error_of(detail: ErrorDetail) -> e.RoostError:
    return CLASSES.get(detail.code, e.RoostError)(detail.message, hint=detail.hint)
