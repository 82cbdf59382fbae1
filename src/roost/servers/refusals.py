"""What a player is told who is not let in: a status, and the error body that all of Roost has."""

from __future__ import annotations

import logging
import secrets
from typing import NamedTuple

import msgspec
from aiohttp import web

from roost.api.errors import ErrorDetail, ErrorReply
from roost.core import errors as e
from roost.sdk.door import AlreadyConnected

log = logging.getLogger("roost.gameserver")


class UpgradeRequired(e.Mistake):
    """This address speaks WebSocket."""

    hint = "connect with a WebSocket client; the ticket was not used"


class NotFound(e.Mistake):
    """There is nothing at this address."""


class Row(NamedTuple):
    status: int
    code: str


TABLE: dict[type[e.RoostError], Row] = {
    e.TicketRefused: Row(401, "TICKET_REFUSED"),
    e.TicketUsed: Row(401, "TICKET_USED"),
    e.NotAuthenticated: Row(401, "UNAUTHENTICATED"),
    NotFound: Row(404, "NOT_FOUND"),
    AlreadyConnected: Row(409, "ALREADY_CONNECTED"),
    e.ServerFull: Row(409, "SERVER_FULL"),
    UpgradeRequired: Row(426, "UPGRADE_REQUIRED"),
    e.StoreUnavailable: Row(503, "STORE_AWAY"),
    e.OutcomeUnknown: Row(503, "OUTCOME_UNKNOWN"),
}

UNAVAILABLE = Row(503, "UNAVAILABLE")
"""Whatever else goes wrong is between this server and the waiting room: no fault of the player."""


def row_of(error: e.RoostError) -> Row:
    for family in type(error).__mro__:
        if family in TABLE:
            return TABLE[family]
    return UNAVAILABLE


def refusal(error: e.RoostError) -> web.Response:
    """The answer; what is no fault of the player is logged here under the request id."""
    row, request_id = row_of(error), secrets.token_hex(6)
    message, hint = error.message, error.hint
    if row is UNAVAILABLE:
        log.error("cannot let people in", extra={"requestId": request_id, "reason": message})
        message, hint = "this server cannot let people in just now", "try again shortly"
    detail = ErrorDetail(row.code, message, hint, request_id)
    response = web.Response(
        body=msgspec.json.encode(ErrorReply(detail)),
        status=row.status,
        content_type="application/json",
        headers={"X-Request-Id": request_id},
    )
    if row.status == 503:
        response.headers["Retry-After"] = "1"
    if row.status == 426:
        response.headers["Upgrade"] = "websocket"
    return response
