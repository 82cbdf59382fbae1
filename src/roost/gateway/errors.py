"""The one table from errors to HTTP."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from roost.api.errors import ErrorDetail, ErrorReply
from roost.core import errors as e


class NotFound(e.Mistake):
    """There is nothing at this address."""


class MethodNotAllowed(e.Mistake):
    """This address does not take that method."""

    allowed: tuple[str, ...] = ()


class BodyTooLarge(e.Mistake):
    """The request body is too large."""


class Row(NamedTuple):
    status: int
    code: str


TABLE: dict[type[BaseException], Row] = {
    e.InvalidId: Row(400, "INVALID_ID"),
    e.InvalidInput: Row(400, "INVALID_INPUT"),
    msgspec.ValidationError: Row(400, "INVALID_INPUT"),
    msgspec.DecodeError: Row(400, "MALFORMED_JSON"),
    e.TokenRefused: Row(401, "TOKEN_REFUSED"),
    e.NotAuthenticated: Row(401, "UNAUTHENTICATED"),
    e.Forbidden: Row(403, "FORBIDDEN"),
    NotFound: Row(404, "NOT_FOUND"),
    e.UnknownInstance: Row(404, "UNKNOWN"),
    e.UnknownWorld: Row(404, "UNKNOWN_WORLD"),
    e.TooManyRequests: Row(429, "TOO_MANY_REQUESTS"),
    e.WorldClosed: Row(503, "WORLD_CLOSED"),
    e.TicketRefused: Row(401, "TICKET_REFUSED"),
    e.TicketUsed: Row(401, "TICKET_USED"),
    e.ServerFull: Row(409, "SERVER_FULL"),
    e.ServerNotReported: Row(409, "SERVER_NOT_REPORTED"),
    e.PolicyConflict: Row(409, "POLICY_CONFLICT"),
    e.FencedInstance: Row(409, "FENCED"),
    e.ServerIdTaken: Row(409, "SERVER_ID_TAKEN"),
    e.RemovedInstance: Row(410, "REMOVED"),
    MethodNotAllowed: Row(405, "METHOD_NOT_ALLOWED"),
    BodyTooLarge: Row(413, "BODY_TOO_LARGE"),
    e.StoreOverloaded: Row(503, "STORE_OVERLOADED"),
    e.StoreUnavailable: Row(503, "STORE_AWAY"),
    e.StoreFull: Row(503, "STORE_FULL"),
    e.StoreAccessDenied: Row(503, "STORE_ACCESS_DENIED"),
    e.StoreRefused: Row(500, "STORE_REFUSED"),
    e.OutcomeUnknown: Row(504, "OUTCOME_UNKNOWN"),
}

INTERNAL = Row(500, "INTERNAL")
RETRY_AFTER_S = "1"

_HINTS: dict[type[BaseException], str] = {
    msgspec.ValidationError: "/docs shows what this address takes",
    msgspec.DecodeError: "send a JSON object in UTF-8",
}


def row_of(error: BaseException) -> Row:
    """The nearest row up the error's family; a class without one is a fault of ours."""
    for family in type(error).__mro__:
        if family in TABLE:
            return TABLE[family]
    return INTERNAL


def render(error: BaseException, request_id: str) -> tuple[Row, bytes]:
    """Status, code and body for a client; nothing of an unexpected error but its request id."""
    row = row_of(error)
    if row is INTERNAL:
        message, hint = "something went wrong on our side", "tell the operator the request id"
    elif isinstance(error, e.RoostError):
        message, hint = error.message, error.hint
    else:
        prefix = "the body is not JSON: " if row.code == "MALFORMED_JSON" else ""
        message, hint = f"{prefix}{error}", _HINTS.get(type(error), "")
    if row.code == "STORE_REFUSED":
        message = "the store refused the operation"  # the server's own words may name keys
    detail = ErrorDetail(code=row.code, message=message, hint=hint, request_id=request_id)
    return row, msgspec.json.encode(ErrorReply(error=detail))
