"""Who may ask, and with what: signatures of the login service, receipts of places, tickets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientError

from roost.core.passes import Passes, Receipt, Ticket
from roost.core.signing import parse_keys
from roost.testing import RunningServer
from tests.acceptance.queue import (
    LIFE,
    OTHER_KEYS,
    QUEUE_KEYS,
    TICKET_KEYS,
    TOKEN,
    Gate,
    open_gate,
    settings_for,
    signature,
)

REFUSED = (401, "TOKEN_REFUSED")
REPORT_501 = "/queue/v1/worlds/main/servers/501/report"
NO_TICKET = (401, "TICKET_REFUSED")
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@pytest.fixture
async def gate(server: RunningServer, tmp_path: Path) -> AsyncIterator[Gate]:
    """Profile lan with keys: nobody enters unsigned."""
    settings = settings_for(tmp_path, "lan", queue_keys=QUEUE_KEYS, ticket_keys=TICKET_KEYS)
    async with open_gate(server, settings) as gate:
        yield gate


# -- the login service's signature


async def test_a_signed_entry_is_taken_and_an_unsigned_one_is_not(gate: Gate) -> None:
    assert (await gate.enter("ann", signature=signature("ann")))["status"] == "WAITING"
    refused = await gate.try_to_enter("bob")
    assert refused.refusal == REFUSED
    assert "sign_entry" in refused.json["error"]["hint"]


@pytest.mark.parametrize(
    "forged",
    [
        pytest.param(signature("bob"), id="of another user"),
        pytest.param(signature(world="eu-1"), id="for another world"),
        pytest.param(signature(ttl_s=-1), id="expired"),
        pytest.param(signature(keys=OTHER_KEYS), id="by a key that is not ours"),
        pytest.param(signature(keys=OTHER_KEYS.replace("q2:", "q1:")), id="by another key of the same name"),
        pytest.param(signature(keys=TICKET_KEYS), id="by the key for tickets"),
        pytest.param(signature()[:-1], id="truncated"),
        pytest.param(signature() + "A", id="with more at its end"),
        pytest.param(signature() + "=", id="padded"),
        pytest.param("v2" + signature()[2:], id="of another version"),
        pytest.param("ann", id="no token at all"),
        pytest.param("v1...", id="dots"),
        pytest.param("v1.q1.é.x", id="not ASCII"),
    ],
)
async def test_g17_a_signature_that_does_not_fit_is_refused(gate: Gate, forged: str) -> None:
    assert (await gate.try_to_enter("ann", signature=forged)).refusal == REFUSED
    assert (await gate.seen())["waiting"] == 0


async def test_the_class_is_what_was_signed_and_each_has_its_line(gate: Gate) -> None:
    await gate.enter("ann", signature=signature("ann"))
    vip = await gate.enter("bob", signature=signature("bob", class_="vip"))
    assert vip["rank"] == 1
    waiting = {one["name"]: one["waiting"] for one in (await gate.seen())["classes"]}
    assert waiting == {"vip": 1, "base": 1}
    unknown = await gate.try_to_enter("cid", signature=signature("cid", class_="emperor"))
    assert unknown.refusal == (400, "INVALID_INPUT")


async def test_a_vip_whose_ticket_ended_stands_in_the_vip_line_again(gate: Gate) -> None:
    await gate.report(capacity=1)
    promoted = await gate.enter("bob", signature=signature("bob", class_="vip"))
    assert promoted["status"] == "PROMOTED"
    await gate.govern(mode="hold")
    await gate.tick(61)
    told = await gate.status("bob", promoted["receipt"])
    assert (told["status"], told["rank"]) == ("WAITING", 1)
    assert {one["name"]: one["waiting"] for one in (await gate.seen())["classes"]} == {"vip": 1, "base": 0}


async def test_the_signature_shows_a_place_without_its_receipt(gate: Gate) -> None:
    await gate.enter("ann", signature=signature("ann"))
    headers = {"X-Queue-Signature": signature("ann")}
    assert (await gate.try_status("ann", "", headers=headers)).json["rank"] == 1
    assert (await gate.try_status("bob", "", headers=headers)).refusal == REFUSED
    nobody = await gate.try_status("bob", "", headers={"X-Queue-Signature": signature("bob")})
    assert nobody.json["status"] == "NONE"


@pytest.mark.parametrize(
    ("missing", "queue_keys"), [("ROOST_QUEUE_KEYS", ""), ("ROOST_TICKET_KEYS", QUEUE_KEYS)]
)
async def test_outside_profile_dev_it_says_which_keys_are_missing(
    server: RunningServer, tmp_path: Path, missing: str, queue_keys: str
) -> None:
    async with open_gate(server, settings_for(tmp_path, "lan", queue_keys=queue_keys)) as gate:
        refused = await gate.try_to_enter("ann", signature=signature("ann"))
        assert refused.refusal == (503, "WORLD_CLOSED")
        assert missing in refused.json["error"]["message"]
        assert (await gate.ask("GET", "/healthz")).status == 200


async def test_profile_dev_makes_its_keys_once_and_keeps_them(server: RunningServer, tmp_path: Path) -> None:
    async with open_gate(server, settings_for(tmp_path)) as gate:
        receipt = (await gate.enter("ann"))["receipt"]
    kept = tmp_path / "dev-keys"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("dev-keys")] == ["dev-keys"]
    async with open_gate(server, settings_for(tmp_path)) as gate:
        assert (await gate.status("ann", receipt))["rank"] == 1


# -- receipts


async def test_g17_a_place_is_shown_to_whoever_holds_its_receipt(gate: Gate) -> None:
    mine = (await gate.enter("ann", signature=signature("ann")))["receipt"]
    other = (await gate.enter("bob", signature=signature("bob")))["receipt"]
    assert (await gate.try_status("ann", mine)).status == 200
    for receipt in (other, "", "x", mine[:-2]):
        assert (await gate.try_status("ann", receipt)).refusal == REFUSED
        leaving = await gate.leave("ann", receipt)
        assert leaving.refusal == REFUSED
    assert (await gate.seen())["waiting"] == 2


async def test_a_receipt_of_another_person_gives_no_place(gate: Gate) -> None:
    """As when a browser still holds the cookie of another account: it is overlooked."""
    first = (await gate.enter("ann", signature=signature("ann")))["receipt"]
    await gate.enter("bob", signature=signature("bob"))
    assert (await gate.enter("cid", receipt=first, signature=signature("cid")))["rank"] == 3


async def test_the_cookie_is_a_receipt_that_scripts_cannot_read(gate: Gate) -> None:
    entered = await gate.try_to_enter("ann", signature=signature("ann"))
    cookie = entered.headers["Set-Cookie"]
    name, _, rest = cookie.partition("=")
    assert name == "roost_receipt_main"
    assert rest.partition(";")[0] == entered.json["receipt"]
    assert {"HttpOnly", "SameSite=Lax", "Path=/api/queue", "Secure"} <= {p.strip() for p in rest.split(";")}
    sent = {"Cookie": cookie.partition(";")[0]}
    told = await gate.try_status("ann", "", headers=sent)
    assert told.json["rank"] == 1
    assert told.headers["Set-Cookie"].startswith(f"roost_receipt_main={told.json['receipt']};")
    assert (await gate.try_status("bob", "", headers=sent)).refusal == REFUSED
    assert (await gate.ask("DELETE", "/api/queue/entry?userId=ann", headers=sent)).status == 204


async def test_without_a_cookie_no_cookie_is_set_by_asking(gate: Gate) -> None:
    receipt = (await gate.enter("ann", signature=signature("ann")))["receipt"]
    assert "Set-Cookie" not in (await gate.try_status("ann", receipt)).headers


async def test_g12_a_wiped_store_gives_people_their_order_back(gate: Gate) -> None:
    receipts = {}
    for user in ("ann", "bob", "cid"):
        receipts[user] = (await gate.enter(user, signature=signature(user)))["receipt"]
    gate.server.command_reply("FLUSHALL")
    gate.world.room.board.forget()
    await gate.tick()
    for user in ("cid", "ann", "bob"):
        again = await gate.enter(user, receipt=receipts[user], signature=signature(user))
        receipts[user] = again["receipt"]
    ranks = [(await gate.status(user, receipts[user]))["rank"] for user in ("ann", "bob", "cid")]
    assert ranks == [1, 2, 1]  # cid saw 1 when nobody else was back yet, and is never told more
    await gate.report(capacity=2)
    await gate.tick(31)
    for user in ("ann", "bob", "cid"):
        await gate.enter(user, signature=signature(user))
    await gate.tick(1)
    statuses = {user: (await gate.enter(user, signature=signature(user)))["status"] for user in receipts}
    assert statuses == {"ann": "PROMOTED", "bob": "PROMOTED", "cid": "WAITING"}


async def test_the_first_receipt_of_a_world_names_its_birth(gate: Gate) -> None:
    """Also where the board was read before anybody had entered."""
    gate.server.command_reply("FLUSHALL")
    gate.world.room.board.forget()
    assert (await gate.world.room.board.get()).born == 0
    receipt = (await gate.enter("ann", signature=signature("ann")))["receipt"]
    passes = gate.platform.worlds.keyring.passes
    assert passes.receipt(receipt, "main", "ann").born == (await gate.world.room.read_board()).born > 0


# -- tickets


@pytest.fixture
async def ticket(gate: Gate) -> str:
    await gate.report(capacity=5)
    return str((await gate.enter("ann", signature=signature("ann")))["ticketId"])


async def test_g17_none_can_stand_for_another(gate: Gate, ticket: str) -> None:
    receipt = (await gate.enter("ann", signature=signature("ann")))["receipt"]
    assert (await gate.consume(receipt)).refusal == NO_TICKET
    assert (await gate.consume(signature("ann"))).refusal == NO_TICKET
    for wrong in (ticket, signature("ann")):
        assert (await gate.try_status("ann", wrong)).refusal == REFUSED
    for wrong in (ticket, receipt):
        assert (await gate.try_to_enter("ann", signature=wrong)).refusal == REFUSED
    assert (await gate.consume(ticket)).status == 200


async def test_g17_a_changed_ticket_is_refused(gate: Gate, ticket: str) -> None:
    for at in range(0, len(ticket), 5):
        flipped = ticket[:at] + ("A" if ticket[at] != "A" else "B") + ticket[at + 1 :]
        assert (await gate.consume(flipped)).refusal == NO_TICKET
    for cut in (0, 1, len(ticket) // 2, len(ticket) - 1):
        assert (await gate.consume(ticket[:cut])).refusal == NO_TICKET
    assert (await gate.consume(ticket)).status == 200


async def test_g17_a_ticket_has_one_spelling(gate: Gate, ticket: str) -> None:
    last = ALPHABET.index(ticket[-1])
    assert last % 4 == 0, "43 characters for 32 bytes: two bits of the last one mean nothing"
    for bits in (1, 2, 3):
        assert (await gate.consume(ticket[:-1] + ALPHABET[last + bits])).refusal == NO_TICKET
    version, kid, payload, mac = ticket.split(".")
    for respelled in (
        f"{ticket}=",
        f" {ticket}",
        f"{ticket}\n",
        ".".join((version, kid, payload + "=", mac)),
    ):
        assert (await gate.consume(respelled)).refusal == NO_TICKET
    assert (await gate.consume(ticket)).status == 200


async def test_a_huge_token_is_refused_before_it_is_looked_at(gate: Gate) -> None:
    huge = "v1.q1." + "A" * 10_000_000
    for body in ({"ticketId": huge}, {"userId": "ann", "signature": huge}):
        path = "/api/queue/tickets/consume" if "ticketId" in body else "/api/queue/entry"
        with suppress(ClientError):  # it hangs up on whoever goes on sending
            assert (await gate.ask("POST", path, body, token=TOKEN)).refusal == (413, "BODY_TOO_LARGE")
    assert (await gate.consume(huge[:2_000_000])).refusal == (413, "BODY_TOO_LARGE")
    assert (await gate.consume(huge[:5000])).refusal == NO_TICKET
    assert (await gate.try_status("ann", huge[:5000])).refusal == REFUSED


async def test_a_ticket_of_another_world_or_of_nobody_is_refused(gate: Gate) -> None:
    await gate.report(capacity=5)
    passes = Passes(parse_keys(QUEUE_KEYS), parse_keys(TICKET_KEYS))
    assert (await gate.consume(passes.sign_ticket(Ticket("eu-1", "ann", "t", 1)))).refusal == NO_TICKET
    assert (await gate.consume(passes.sign_ticket(Ticket("main", "ann", "t", 1)))).refusal == NO_TICKET
    other = await gate.consume(passes.sign_ticket(Ticket("main", "ann", "t", 1)), world="eu-1")
    assert other.refusal == (404, "UNKNOWN_WORLD")


async def test_g17_a_receipt_that_somebody_wrote_themselves_is_refused(gate: Gate) -> None:
    mine = Passes(parse_keys(OTHER_KEYS.replace("q2:", "q1:")), parse_keys(TICKET_KEYS))
    forged = mine.sign_receipt(Receipt("main", "ann", 1, 1, "", 1))
    assert (await gate.try_status("ann", forged)).refusal == REFUSED


# -- rotation


async def rotated(
    server: RunningServer, folder: Path, queue_keys: str, ticket_keys: str, given: Any
) -> list[int]:
    """Statuses of an entry, a question and a consume with what another key signed."""
    settings = settings_for(folder, "lan", queue_keys=queue_keys, ticket_keys=ticket_keys)
    async with open_gate(server, settings) as gate:
        await gate.leader.shows("501", LIFE)
        entry = await gate.try_to_enter("bob", signature=signature("bob"))
        status = await gate.try_status("ann", given["receipt"])
        return [entry.status, status.status, (await gate.consume(given["ticketId"])).status]


async def test_g17_keys_rotate_an_old_one_verifies_and_a_removed_one_does_not(
    gate: Gate, server: RunningServer, tmp_path: Path
) -> None:
    await gate.report(capacity=5)
    given = await gate.enter("ann", signature=signature("ann"))
    new_ticket_keys = OTHER_KEYS.replace("q2:", "t2:")
    removed = await rotated(server, tmp_path, OTHER_KEYS, new_ticket_keys, given)
    assert removed == [401, 401, 401]
    both = (f"{OTHER_KEYS},{QUEUE_KEYS}", f"{new_ticket_keys},{TICKET_KEYS}")
    assert await rotated(server, tmp_path, *both, given) == [200, 200, 200]


@asynccontextmanager
async def gate_with(server: RunningServer, folder: Path, queue_keys: str) -> AsyncIterator[Gate]:
    settings = settings_for(folder, "lan", queue_keys=queue_keys, ticket_keys=TICKET_KEYS)
    async with open_gate(server, settings) as gate:
        yield gate


async def beat(gate: Gate, me: Mapping[str, str], proof: str, token: str) -> str:
    """The new proof that a beat with this one gives, if any."""
    given = {"life": me["life"], "proof": proof}
    answer = await gate.ask("POST", f"/sd/v1/instances/{me['instanceId']}/heartbeat", given, token=token)
    assert answer.status == 200, answer.body
    new = answer.json.get("proof", "")
    assert isinstance(new, str)
    return new


async def test_g17_a_server_that_beats_outlives_the_key_that_signed_its_life(
    gate: Gate, server: RunningServer, tmp_path: Path
) -> None:
    made = {"name": "fleet", "scopes": ["register", "gameserver"]}
    token = (await gate.ask("POST", "/auth/v1/tokens", made, token=TOKEN)).json["token"]
    given = {"type": "game", "group": "kr"}
    me, other = [
        (await gate.ask("POST", "/sd/v1/instances", given | {"serverId": id_}, token=token)).json
        for id_ in ("501", "502")
    ]
    assert await beat(gate, me, me["proof"], token) == "", "the first key signed it"

    async with gate_with(server, tmp_path, f"{OTHER_KEYS},{QUEUE_KEYS}") as both:
        for shown in ("", "nonsense", other["proof"], me["proof"][:-4]):
            assert await beat(both, me, shown, token) == "", "nobody gets a proof who shows none"
        renewed = await beat(both, me, me["proof"], token)

    async with gate_with(server, tmp_path, OTHER_KEYS) as new:
        assert await beat(new, me, me["proof"], token) == "", "the old key is gone"
        report = {"life": me["life"], "number": 1, "capacity": 1, "users": 0, "counted": 0}
        statuses = [
            (await new.ask("POST", REPORT_501, report | {"proof": proof}, token=token)).status
            for proof in (me["proof"], renewed)
        ]
        assert statuses == [403, 200]


# -- coming back without a new signature


async def test_who_has_a_place_comes_back_by_the_receipt_alone(gate: Gate) -> None:
    vip = await gate.enter("ann", signature=signature("ann", class_="vip"))
    back = await gate.enter("ann", receipt=vip["receipt"])
    assert (back["status"], back["rank"]) == ("WAITING", 1)
    waiting = {one["name"]: one["waiting"] for one in (await gate.seen())["classes"]}
    assert waiting == {"vip": 1, "base": 0}


async def test_a_held_place_inside_lets_its_person_in_by_the_receipt_alone(gate: Gate) -> None:
    await gate.report(capacity=1)
    promoted = await gate.enter("ann", signature=signature("ann"))
    assert (await gate.consume(promoted["ticketId"])).status == 200
    left = {"userId": "ann", "life": LIFE, "connection": "c1", "how": "dropped"}
    released = await gate.ask("POST", "/queue/v1/worlds/main/servers/501/release", left, token=TOKEN)
    assert released.status == 200
    back = await gate.enter("ann", receipt=promoted["receipt"])
    assert back["status"] == "PROMOTED"


async def test_a_receipt_gives_no_new_place_to_one_who_has_none(gate: Gate) -> None:
    entered = await gate.enter("ann", signature=signature("ann"))
    assert (await gate.leave("ann", entered["receipt"])).status == 204
    assert (await gate.try_to_enter("ann", receipt=entered["receipt"])).refusal == REFUSED
    assert (await gate.try_to_enter("bob", receipt=entered["receipt"])).refusal == REFUSED
    assert (await gate.seen())["waiting"] == 0


async def test_g17_a_receipt_gives_no_new_place_at_the_end_of_a_long_line(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where people are told about their place from the board, which does not know who has left."""
    monkeypatch.setattr("roost.waitingroom.desk.NEAR", 0)
    monkeypatch.setattr("roost.waitingroom.desk.SMALL_LINE", 0)
    receipts = [
        (await gate.enter(user, signature=signature(user)))["receipt"] for user in ("ann", "bob", "cid")
    ]
    assert (await gate.enter("cid", receipt=receipts[2]))["status"] == "WAITING"

    assert (await gate.leave("cid", receipts[2])).status == 204

    gate.world.room.board.forget()
    assert (await gate.status("cid", receipts[2]))["status"] == "WAITING", "the board says so"
    assert (await gate.try_to_enter("cid", receipt=receipts[2])).refusal == REFUSED
    assert (await gate.seen())["waiting"] == 2


async def test_the_cookie_of_a_browser_outlives_it_and_is_hidden_from_scripts(gate: Gate) -> None:
    entered = await gate.try_to_enter("ann", signature=signature("ann"))
    cookie = entered.headers["Set-Cookie"]
    for part in ("HttpOnly", "Secure", "SameSite=Lax", "Max-Age=86400", "Path=/api/queue"):
        assert part in cookie
