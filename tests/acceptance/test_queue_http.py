"""The waiting room over HTTP: players, game servers and operators, as the documents say it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from roost.testing import RunningServer
from tests.acceptance.queue import LIFE, TOKEN, Gate, open_gate, settings_for


@pytest.fixture
async def gate(server: RunningServer, tmp_path: Path) -> AsyncIterator[Gate]:
    """Profile dev, no limits, nobody waits, no server has reported."""
    async with open_gate(server, settings_for(tmp_path)) as gate:
        yield gate


# -- players


async def test_g11_the_documented_entry_gives_a_place_and_again_the_same_one(gate: Gate) -> None:
    first = await gate.enter("ann", nickname="Ann", region="kr")
    assert (first["status"], first["rank"], first["ahead"]) == ("WAITING", 1, 0)
    second = await gate.enter("bob")
    assert (second["status"], second["rank"]) == ("WAITING", 2)
    assert 1700 <= second["nextPollMs"] <= 2000
    assert second["etaSeconds"] is None
    again = await gate.enter("ann")
    assert (again["status"], again["rank"]) == ("WAITING", 1)
    assert (await gate.status("bob", second["receipt"]))["rank"] == 2
    assert (await gate.seen())["waiting"] == 2


async def test_the_documented_status_is_promoted_with_a_ticket(gate: Gate) -> None:
    waiting = await gate.enter("ann")
    await gate.report(capacity=5, url="ws://game/501")
    assert await gate.tick(1) == 1
    promoted = await gate.status("ann", waiting["receipt"])
    assert (promoted["status"], promoted["rank"]) == ("PROMOTED", 0)
    assert promoted["ticketId"].startswith("v1.")
    assert 0 < promoted["expiresInMs"] <= 60_000
    assert promoted["serverUrl"] == "ws://game/501"
    again = await gate.enter("ann")
    assert again["status"] == "PROMOTED"
    assert again["ticketId"] == promoted["ticketId"]
    assert (await gate.seen())["tickets"] == 1


async def test_where_nobody_waits_and_there_is_room_the_ticket_comes_at_once(gate: Gate) -> None:
    await gate.report(capacity=1)
    assert (await gate.enter("ann"))["status"] == "PROMOTED"
    assert (await gate.enter("bob"))["status"] == "WAITING"


async def test_who_leaves_has_no_place_any_more(gate: Gate) -> None:
    receipt = (await gate.enter("ann"))["receipt"]
    assert (await gate.leave("ann", receipt)).status == 204
    assert (await gate.status("ann", receipt))["status"] == "NONE"
    assert (await gate.leave("ann", receipt)).status == 204


async def test_unknown_fields_are_accepted_and_named(gate: Gate) -> None:
    answer = await gate.enter("ann", colour="red")
    assert (answer["status"], answer["warnings"]) == ("WAITING", ["unknown field colour"])


async def test_g12_who_was_put_aside_comes_back_to_the_old_place(gate: Gate) -> None:
    receipts = await gate.crowd(3)
    await gate.tick(9)
    for user in ("u001", "u002"):
        await gate.status(user, receipts[user])
    await gate.tick(3)
    assert (await gate.seen())["away"] == 1
    told = await gate.status("u001", receipts["u001"])
    assert (told["rank"], told["awayAhead"]) == (1, 1)

    back = await gate.status("u000", receipts["u000"])

    assert (back["status"], back["rank"], back["wasAway"]) == ("WAITING", 1, True)
    assert (await gate.status("u001", told["receipt"]))["rank"] == 1
    assert (await gate.status("u000", receipts["u000"]))["wasAway"] is False


async def test_who_dropped_out_of_the_game_is_held_a_place_and_gets_a_ticket_at_once(gate: Gate) -> None:
    await gate.report(capacity=1)
    entered = await gate.enter("ann")
    assert (await gate.consume(entered["ticketId"])).status == 200
    assert (await gate.status("ann", entered["receipt"]))["status"] == "ENTERED"
    given = {"userId": "ann", "life": LIFE, "connection": "c1", "how": "dropped"}
    path = "/queue/v1/worlds/main/servers/501/release"
    released = await gate.ask("POST", path, given, token=TOKEN)
    assert released.json == {"heldMs": 120_000}
    await gate.report(capacity=1, users=0, counted=1)
    await gate.enter("bob")
    assert await gate.tick(1) == 0
    assert (await gate.status("ann", entered["receipt"]))["status"] == "ENTERED"
    assert (await gate.enter("ann"))["status"] == "PROMOTED"


async def test_whoever_is_inside_leaves_through_the_game(gate: Gate) -> None:
    await gate.report(capacity=1)
    entered = await gate.enter("ann")
    await gate.consume(entered["ticketId"])
    left = await gate.leave("ann", entered["receipt"])
    assert left.refusal == (400, "INVALID_INPUT")
    kicked = await gate.ask("DELETE", "/queue/v1/worlds/main/people/ann", token=TOKEN)
    assert kicked.refusal == (400, "INVALID_INPUT")


@pytest.mark.parametrize("user", ["a{b}", "{}", "", "a b", "a\nb", "a\x00b", "x" * 129, "é" * 65, "\ud800"])
async def test_a_bad_user_id_is_refused(gate: Gate, user: str) -> None:
    answer = await gate.try_to_enter(user)
    assert answer.status == 400
    assert answer.json["error"]["code"] in ("INVALID_ID", "MALFORMED_JSON", "INVALID_INPUT")
    assert (await gate.seen())["waiting"] == 0


@pytest.mark.parametrize("user", ["x" * 128, "홍길동", "a:b/c", "*?[a-z]", "%7B", "a\"b'c"])
async def test_an_odd_user_id_is_a_user_id(gate: Gate, user: str) -> None:
    entered = await gate.enter(user)
    assert entered["status"] == "WAITING"
    answer = await gate.session.get(
        "/api/queue/status", params={"userId": user}, headers={"X-Queue-Receipt": entered["receipt"]}
    )
    assert (await answer.json())["rank"] == 1


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"nickname": "n" * 64}, 200),
        ({"nickname": "닉" * 64}, 200),
        ({"nickname": "n" * 65}, 400),
        ({"nickname": "a\u0007b"}, 400),
        ({"region": "r" * 65}, 400),
        ({"nickname": 5}, 400),
        ({"world": "nowhere"}, 404),
        ({"world": "ma{in}"}, 404),
        ({"world": ""}, 404),
    ],
)
async def test_an_entry_is_checked_field_by_field(gate: Gate, change: dict[str, Any], status: int) -> None:
    assert (await gate.try_to_enter("ann", **change)).status == status


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/queue/status?userId=ann&world=nowhere"),
        ("DELETE", "/api/queue/entry?userId=ann&world=nowhere"),
        ("GET", "/queue/v1/worlds/nowhere"),
        ("DELETE", "/queue/v1/worlds/nowhere/people/ann"),
    ],
)
async def test_an_unknown_world_is_a_404(gate: Gate, method: str, path: str) -> None:
    assert (await gate.ask(method, path, token=TOKEN)).refusal == (404, "UNKNOWN_WORLD")


@pytest.mark.parametrize("query", ["", "userId=ann&colour=red", "user=ann"])
async def test_an_odd_question_is_refused(gate: Gate, query: str) -> None:
    assert (await gate.ask("GET", f"/api/queue/status?{query}")).refusal == (400, "INVALID_INPUT")


async def test_a_full_line_asks_to_come_later(server: RunningServer, tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    async with open_gate(server, settings) as gate:
        object.__setattr__(gate.world.room.policy, "most_waiting", 1)
        await gate.enter("ann")
        refused = await gate.try_to_enter("bob")
        assert refused.refusal == (503, "WORLD_CLOSED")
        assert refused.headers["Retry-After"] == "30"
        assert (await gate.enter("ann"))["rank"] == 1


async def test_while_the_store_is_away_everybody_is_told_to_come_again(
    valkey: RunningServer, tmp_path: Path
) -> None:
    async with open_gate(valkey, settings_for(tmp_path)) as gate:
        receipt = (await gate.enter("ann"))["receipt"]
        valkey.kill()
        for answer in (await gate.try_to_enter("ann"), await gate.try_status("ann", receipt)):
            assert answer.refusal == (503, "STORE_AWAY")
            assert int(answer.headers["Retry-After"]) >= 1


# -- game servers


async def test_g17_only_a_game_server_may_consume_and_report(gate: Gate) -> None:
    made = await gate.ask(
        "POST", "/auth/v1/tokens", {"name": "x", "scopes": ["read", "register"]}, token=TOKEN
    )
    mine = await gate.ask("POST", "/auth/v1/tokens", {"name": "g", "scopes": ["gameserver"]}, token=TOKEN)
    body = {"ticketId": "t", "serverId": "501", "life": LIFE, "connection": "c"}
    for token, refusal in ((made.json["token"], (403, "FORBIDDEN")), ("", (401, "UNAUTHENTICATED"))):
        assert (await gate.ask("POST", "/api/queue/tickets/consume", body, token=token)).refusal == refusal
        for verb in ("report", "release"):
            path = f"/queue/v1/worlds/main/servers/501/{verb}"
            assert (await gate.ask("POST", path, {}, token=token)).refusal == refusal
        assert (await gate.ask("PATCH", "/queue/v1/worlds/main", {}, token=token)).refusal == refusal
        kick = "/queue/v1/worlds/main/people/ann"
        assert (await gate.ask("DELETE", kick, token=token)).refusal == refusal
    answer = await gate.ask("POST", "/api/queue/tickets/consume", body, token=mine.json["token"])
    assert answer.refusal == (403, "FORBIDDEN"), "its life is not proved"


async def test_g11_a_ticket_is_good_once_and_a_retry_gets_the_same_answer(gate: Gate) -> None:
    await gate.report(capacity=5)
    ticket = (await gate.enter("ann", nickname="Ann", region="kr"))["ticketId"]
    first = await gate.consume(ticket)
    assert first.status == 200
    told = first.json
    assert (told["userId"], told["nickname"], told["region"], told["number"]) == ("ann", "Ann", "kr", 1)
    assert 0 < told["leftMs"] <= 60_000
    retry = await gate.consume(ticket)
    assert (retry.status, retry.json["number"]) == (200, 1)
    assert (await gate.consume(ticket, conn="c2")).refusal == (401, "TICKET_USED")
    await gate.report("502", capacity=5)
    assert (await gate.consume(ticket, server="502")).refusal == (401, "TICKET_USED")
    assert (await gate.seen())["inside"] == 1


async def test_g11_of_two_servers_that_race_for_a_ticket_exactly_one_gets_it(gate: Gate) -> None:
    for server in ("501", "502"):
        await gate.report(server, capacity=20)
    for n in range(20):
        ticket = (await gate.enter(f"u{n}"))["ticketId"]
        answers = await asyncio.gather(
            *(gate.consume(ticket, server=server, conn=f"c-{server}") for server in ("501", "502"))
        )
        assert sorted(answer.status for answer in answers) == [200, 401]
    assert (await gate.seen())["inside"] == 20


async def test_a_full_or_unknown_server_refuses_and_the_ticket_stays_good(gate: Gate) -> None:
    await gate.report("501", capacity=1, users=1)
    await gate.report("502", capacity=1)
    ticket = (await gate.enter("ann"))["ticketId"]
    assert (await gate.consume(ticket, server="501")).refusal == (409, "SERVER_FULL")
    assert (await gate.consume(ticket, server="503")).refusal == (409, "SERVER_NOT_REPORTED")
    assert (await gate.consume(ticket, server="502", life="8")).refusal == (409, "SERVER_NOT_REPORTED")
    assert (await gate.consume(ticket, server="502")).status == 200


async def test_g12_a_ticket_that_has_ended_is_refused_and_its_holder_is_next(gate: Gate) -> None:
    await gate.report(capacity=1)
    entered = await gate.enter("ann")
    await gate.enter("bob")
    await gate.govern(mode="hold")
    await gate.tick(61)
    assert (await gate.consume(entered["ticketId"])).refusal == (401, "TICKET_REFUSED")
    told = await gate.status("ann", entered["receipt"])
    assert (told["status"], told["rank"]) == ("WAITING", 1)


@pytest.mark.parametrize(
    "change",
    [
        {"users": -1},
        {"capacity": -1},
        {"counted": -1},
        {"number": -1},
        {"users": 2**31 + 1},
        {"capacity": 2**63},
        {"users": 1.5},
        {"users": "5"},
        {"life": ""},
        {"life": "-1"},
        {"life": "9" * 17},
        {"life": "١٢"},
        {"url": "ws://x y"},
        {"url": "w" * 256},
        {"url": "ws://a\tb"},
        {"url": "javascript:alert(1)"},
        {"url": "//game.example/501"},
        {"url": "data:text/html,x"},
        {"url": "game.example:8420"},
        {"url": "wss://"},
    ],
)
async def test_a_bad_report_is_refused_and_changes_nothing(gate: Gate, change: dict[str, Any]) -> None:
    assert (await gate.report(capacity=5)).status == 200
    answer = await gate.report(**{"capacity": 7, **change})
    assert answer.refusal == (400, "INVALID_INPUT")
    assert (await gate.seen())["capacity"] == 5


async def test_a_report_of_an_earlier_life_is_fenced(gate: Gate) -> None:
    await gate.report(capacity=5)
    await gate.report(capacity=5, life="8")
    assert (await gate.report(capacity=9, life=LIFE)).refusal == (409, "FENCED")
    assert (await gate.seen())["capacity"] == 5


# -- operators


async def test_every_mode_does_what_it_says(gate: Gate) -> None:
    await gate.report(capacity=10)
    assert (await gate.govern(mode="hold", message="maintenance")).json["mode"] == "hold"
    held = await gate.enter("ann")
    assert (held["status"], held["message"]) == ("WAITING", "maintenance")
    assert await gate.tick(1) == 0
    await gate.govern(mode="closing")
    assert (await gate.try_to_enter("bob")).refusal == (503, "WORLD_CLOSED")
    assert (await gate.enter("ann"))["status"] == "WAITING"
    assert await gate.tick(1) == 1
    await gate.govern(mode="queue-all", message=None)
    queued = await gate.enter("cid")
    assert (queued["status"], queued["message"]) == ("WAITING", "")
    assert await gate.tick(1) == 1
    await gate.govern(mode="off", limit=3)
    assert (await gate.enter("dan"))["status"] == "PROMOTED"
    assert (await gate.try_to_enter("eve")).refusal == (503, "WORLD_CLOSED")
    await gate.govern(mode="auto", limit=None)
    assert (await gate.enter("eve"))["status"] == "PROMOTED"


async def test_limit_and_rate_are_set_kept_and_lifted(gate: Gate) -> None:
    await gate.report(capacity=10)
    seen = (await gate.govern(limit=2, rate=0.5)).json
    assert (seen["limit"], seen["rate"], seen["capacity"], seen["revision"]) == (2, 0.5, 2, 1)
    seen = (await gate.govern(message="hello")).json
    assert (seen["limit"], seen["rate"], seen["message"]) == (2, 0.5, "hello")
    seen = (await gate.govern(limit=None, rate=None)).json
    assert (seen["limit"], seen["rate"], seen["capacity"]) == (None, None, 10)
    assert seen["message"] == "hello"


@pytest.mark.parametrize(
    "patch",
    [
        {"limit": -2},
        {"rate": 0},
        {"rate": -3},
        {"rate": 1e7},
        {"mode": "party"},
        {"message": "m" * 501},
        {"limit": 1.5},
    ],
)
async def test_a_bad_order_is_refused_and_changes_nothing(gate: Gate, patch: dict[str, Any]) -> None:
    assert (await gate.govern(**patch)).refusal == (400, "INVALID_INPUT")
    assert (await gate.seen())["revision"] == 0


async def test_of_writers_with_the_same_revision_one_wins(gate: Gate) -> None:
    assert (await gate.govern(limit=1)).json["revision"] == 1
    assert (await gate.govern(limit=2, revision=0)).refusal == (409, "POLICY_CONFLICT")
    answers = await asyncio.gather(*(gate.govern(limit=10 + n, revision=1) for n in range(12)))
    won = [answer for answer in answers if answer.status == 200]
    assert len(won) == 1
    assert {answer.status for answer in answers} == {200, 409}
    seen = await gate.seen()
    assert (seen["revision"], seen["limit"]) == (2, won[0].json["limit"])


async def test_who_is_kicked_has_no_place_and_starts_behind(gate: Gate) -> None:
    receipt = (await gate.enter("a/b"))["receipt"]
    await gate.enter("bob")
    kick = "/queue/v1/worlds/main/people/a%2Fb"
    assert (await gate.ask("DELETE", kick, token=TOKEN)).status == 204
    assert (await gate.seen())["waiting"] == 1
    assert (await gate.enter("a/b", receipt=receipt))["rank"] == 2
    braces = await gate.ask("DELETE", "/queue/v1/worlds/main/people/%7B%7D", token=TOKEN)
    assert braces.status == 400


async def test_a_world_shows_its_classes_servers_and_counters(gate: Gate) -> None:
    await gate.report(capacity=1, url="ws://game/501")
    await gate.consume((await gate.enter("ann"))["ticketId"])
    await gate.enter("bob")
    (listed,) = (await gate.ask("GET", "/queue/v1/worlds", token=TOKEN)).json["worlds"]
    assert listed == await gate.seen()
    assert {one["name"]: one["share"] for one in listed["classes"]} == {"vip": 0.25, "base": 0.75}
    assert listed["servers"] == [
        {
            "serverId": "501",
            "life": LIFE,
            "capacity": 1,
            "users": 1,
            "url": "ws://game/501",
            "inDoubt": False,
            "open": True,
        }
    ]
    assert (listed["waiting"], listed["inside"], listed["free"]) == (1, 1, 0)
    counters = listed["counters"]
    assert (counters["entries"], counters["issued"], counters["consumed"], counters["overadmit"]) == (
        2,
        1,
        1,
        0,
    )


async def test_g17_no_token_reaches_a_log(gate: Gate, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    await gate.report(capacity=1)
    promoted = await gate.enter("ann")
    waiting = await gate.enter("bob")
    await gate.status("bob", waiting["receipt"])
    await gate.consume(promoted["ticketId"])
    await gate.consume(promoted["ticketId"], conn="c2")
    await gate.consume(promoted["receipt"])
    await gate.try_status("bob", promoted["receipt"])
    await gate.try_to_enter("cid", signature="v1.x.aaaa.bbbb")
    logged = "\n".join(f"{record.getMessage()} {vars(record)}" for record in caplog.records)
    assert '"entry"' in logged or "'entry'" in logged
    for secret in (promoted["ticketId"], promoted["receipt"], waiting["receipt"], TOKEN, "aaaa.bbbb"):
        assert secret not in logged
        assert secret.rpartition(".")[2] not in logged


async def test_g17_nobody_acts_for_a_server_but_itself(gate: Gate) -> None:
    """Its id and life can be read by everybody; an invented report under them would be taken for its own."""
    made = {"name": "fleet", "scopes": ["register", "gameserver"]}
    token = (await gate.ask("POST", "/auth/v1/tokens", made, token=TOKEN)).json["token"]
    registration = {"type": "game", "group": "kr", "serverId": "501", "capacity": 5}
    registered = (await gate.ask("POST", "/sd/v1/instances", registration, token=token)).json
    report = {"life": registered["life"], "number": 1, "capacity": 1_000_000, "users": 0, "counted": 0}
    path = "/queue/v1/worlds/main/servers/501/report"

    for proof in ("", "nonsense", registered["proof"][:-4]):
        answer = await gate.ask("POST", path, report | {"proof": proof}, token=token)
        assert answer.refusal == (403, "FORBIDDEN")
    other = (await gate.ask("POST", "/sd/v1/instances", registration | {"serverId": "502"}, token=token)).json
    answer = await gate.ask("POST", path, report | {"proof": other["proof"]}, token=token)
    assert answer.refusal == (403, "FORBIDDEN")
    consume = {"ticketId": "t", "serverId": "501", "life": registered["life"], "connection": "c"}
    answer = await gate.ask("POST", "/api/queue/tickets/consume", consume, token=token)
    assert answer.refusal == (403, "FORBIDDEN")

    answer = await gate.ask("POST", path, report | {"proof": registered["proof"]}, token=token)
    assert (answer.status, answer.json["known"]) == (200, False)


async def test_an_operator_sees_what_somebody_has_without_being_taken_for_them(gate: Gate) -> None:
    await gate.enter("ann", nickname="Ann")
    await gate.enter("bob")
    person = (await gate.ask("GET", "/queue/v1/worlds/main/people/bob", token=TOKEN)).json
    assert (person["state"], person["rank"], person["className"], person["world"]) == (
        "waiting",
        2,
        "base",
        "main",
    )
    stranger = (await gate.ask("GET", "/queue/v1/worlds/main/people/zoe", token=TOKEN)).json
    assert (stranger["state"], stranger["rank"]) == ("unknown", 0)
    assert (await gate.ask("GET", "/queue/v1/worlds/main/people/bob")).status == 401


async def test_a_forecast_tells_the_wait_and_changes_nothing(gate: Gate) -> None:
    for user in ("ann", "bob", "cid"):
        await gate.enter(user)
    before = await gate.seen()
    path = "/queue/v1/worlds/main/forecast"
    never = (await gate.ask("POST", path, token=TOKEN)).json
    assert (never["waiting"], never["free"], never["lastSeconds"]) == (3, 0, None)
    asked = {"leavingPerSecond": 0.5, "rate": 10}
    told = (await gate.ask("POST", path, asked, token=TOKEN)).json
    assert (told["lastSeconds"], told["medianSeconds"], told["issuePerSecond"]) == (6.0, 4.0, 10.0)
    assert (await gate.ask("POST", path, {"rate": 0}, token=TOKEN)).status == 400
    assert (await gate.seen())["revision"] == before["revision"]
