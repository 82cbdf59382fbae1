from __future__ import annotations

import json

import pytest
from aiohttp.test_utils import make_mocked_request

from roost.core import errors as e
from roost.sdk.door import AlreadyConnected
from roost.servers.ops import Guard
from roost.servers.refusals import refusal


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (e.TicketRefused(), 401, "TICKET_REFUSED"),
        (AlreadyConnected(), 409, "ALREADY_CONNECTED"),
        (e.ServerFull(), 409, "SERVER_FULL"),
        (e.StoreOverloaded(), 503, "STORE_AWAY"),
        (e.OutcomeUnknown(), 503, "OUTCOME_UNKNOWN"),
        (e.ServerNotReported(), 503, "UNAVAILABLE"),
        (e.Forbidden("this needs a token with the scope gameserver"), 503, "UNAVAILABLE"),
    ],
)
def test_a_player_is_told_what_to_do_and_not_blamed_for_our_faults(
    error: e.RoostError, status: int, code: str
) -> None:
    response = refusal(error)
    assert isinstance(response.body, bytes)
    detail = json.loads(response.body)["error"]
    assert (response.status, detail["code"]) == (status, code)
    assert detail.keys() == {"code", "message", "hint", "requestId"}
    assert detail["requestId"] == response.headers["X-Request-Id"]
    assert "token" not in detail["message"]
    assert ("Retry-After" in response.headers) == (status == 503)


@pytest.mark.parametrize(
    ("is_open", "token", "headers", "passes"),
    [
        (True, "", {}, True),
        (False, "secret-of-server", {"X-API-Token": "secret-of-server"}, True),
        (False, "secret-of-server", {"Authorization": "Bearer secret-of-server"}, True),
        (False, "secret-of-server", {"Authorization": "Basic secret-of-server"}, False),
        (False, "secret-of-server", {"X-API-Token": "another"}, False),
        (False, "secret-of-server", {}, False),
        (False, "", {"X-API-Token": ""}, False),
    ],
)
def test_outside_profile_dev_only_the_token_opens_the_metrics(
    is_open: bool, token: str, headers: dict[str, str], passes: bool
) -> None:
    guard = Guard(is_open, token)
    request = make_mocked_request("GET", "/metrics", headers=headers)
    if passes:
        guard.check(request)
    else:
        with pytest.raises(e.NotAuthenticated):
            guard.check(request)
