from __future__ import annotations

import json

import pytest

from roost.core import errors as e
from roost.sdk.door import AlreadyConnected
from roost.servers.gameserver import for_player
from roost.web.auth import OneToken, token_in
from roost.web.errors import body_of, headers_of, status_of


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (e.TicketRefused(), 401, "TICKET_REFUSED"),
        (AlreadyConnected(), 409, "ALREADY_CONNECTED"),
        (e.ServerFull(), 409, "SERVER_FULL"),
        (e.StoreOverloaded(), 503, "STORE_OVERLOADED"),
        (e.OutcomeUnknown(), 504, "OUTCOME_UNKNOWN"),
        (e.ServerNotReported(), 503, "UNAVAILABLE"),
        (e.Forbidden("this needs a token with the scope gameserver"), 503, "UNAVAILABLE"),
        (e.NotAuthenticated(), 503, "UNAVAILABLE"),
    ],
)
def test_a_player_is_told_what_to_do_and_not_blamed_for_our_faults(
    error: e.RoostError, status: int, code: str
) -> None:
    told = for_player(error)
    detail = json.loads(body_of(told, "r-1"))["error"]
    assert (status_of(type(told)), detail["code"]) == (status, code)
    assert detail.keys() == {"code", "message", "hint", "requestId"}
    assert detail["requestId"] == "r-1"
    assert "token" not in detail["message"]
    assert ("Retry-After" in headers_of(told)) == (status == 503)


@pytest.mark.parametrize(
    ("token", "headers", "passes"),
    [
        ("secret-of-server", {"X-API-Token": "secret-of-server"}, True),
        ("secret-of-server", {"Authorization": "Bearer secret-of-server"}, True),
        ("secret-of-server", {"Authorization": "Basic secret-of-server"}, False),
        ("secret-of-server", {"X-API-Token": "another"}, False),
        ("secret-of-server", {}, False),
        ("", {"X-API-Token": ""}, False),
    ],
)
async def test_outside_profile_dev_only_the_token_opens_the_metrics(
    token: str, headers: dict[str, str], passes: bool
) -> None:
    guard, shown = OneToken(token), token_in(headers)
    if passes:
        await guard.identify(shown)
    else:
        with pytest.raises(e.NotAuthenticated):
            await guard.identify(shown)
