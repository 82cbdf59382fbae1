"""How much one person and one address may ask, and how people far back are answered without the store."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from http.cookies import SimpleCookie
from pathlib import Path

import pytest
from aiohttp import ClientResponse

from roost.core.passes import Passes
from roost.core.signing import parse_keys
from roost.gateway.settings import GatewaySettings
from roost.testing import RunningServer
from roost.waitingroom import desk
from roost.waitingroom.settings import QueueSettings
from tests.acceptance.queue import QUEUE_KEYS, TICKET_KEYS, TOKEN, Gate, open_gate, settings_for, signature

LIMITED = (429, "TOO_MANY_REQUESTS")


# -- limits


async def test_a_person_may_ask_ten_times_at_once_and_no_more(server: RunningServer, tmp_path: Path) -> None:
    async with open_gate(server, settings_for(tmp_path, queue=QueueSettings(ip_per_second=10_000))) as gate:
        receipt = (await gate.enter("ann"))["receipt"]
        answers = await asyncio.gather(*(gate.try_status("ann", receipt) for _ in range(30)))
        passed = [answer for answer in answers if answer.status == 200]
        assert 9 <= len(passed) <= 14, "the entry was the first of ten"
        refused = next(answer for answer in answers if answer.status != 200)
        assert refused.refusal == LIMITED
        assert int(refused.headers["Retry-After"]) >= 1
        assert (await gate.try_to_enter("ann")).refusal == LIMITED
        assert (await gate.enter("bob"))["status"] == "WAITING"
        assert (await gate.seen())["waiting"] == 2


async def test_fifty_accounts_behind_one_address_pass(server: RunningServer, tmp_path: Path) -> None:
    async with open_gate(server, settings_for(tmp_path, queue=QueueSettings())) as gate:
        answers = await asyncio.gather(*(gate.try_to_enter(f"u{n}") for n in range(50)))
        assert {answer.status for answer in answers} == {200}


async def times(gate: Gate, count: int, *forwarded: str) -> list[int]:
    """Statuses of so many calls that come through a load balancer."""
    headers = [("X-Forwarded-For", line) for line in forwarded]
    path = "/api/queue/status?userId=ann"
    return [(await gate.ask("GET", path, headers=headers)).status for _ in range(count)]


SLOW = QueueSettings(ip_per_second=1)
"""Two calls at once, then one in a second."""


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (("203.0.113.9",), ("203.0.113.9",), True),
        (("203.0.113.9",), ("203.0.113.10",), False),
        (("2001:db8:1:2::1",), ("2001:db8:1:2:ffff::9",), True),
        (("2001:db8:1:2::1",), ("2001:db8:1:3::1",), False),
        (("::ffff:203.0.113.9",), ("203.0.113.9",), True),
        (("1.1.1.1, 203.0.113.9",), ("2.2.2.2, 203.0.113.9",), True),
        (("1.1.1.1", "203.0.113.9"), ("2.2.2.2", "203.0.113.9"), True),
        (("203.0.113.9, 127.0.0.5",), ("203.0.113.9",), True),
        (("garbage",), ("other garbage",), True),
    ],
)
async def test_one_address_is_limited_behind_a_trusted_proxy(
    server: RunningServer, tmp_path: Path, first: tuple[str, ...], second: tuple[str, ...], same: bool
) -> None:
    settings = settings_for(tmp_path, queue=SLOW, trusted_proxies="127.0.0.0/8")
    async with open_gate(server, settings) as gate:
        assert await times(gate, 3, *first) == [401, 401, 429]
        assert await times(gate, 1, *second) == [429 if same else 401]


async def test_nobody_else_is_believed_about_their_address(server: RunningServer, tmp_path: Path) -> None:
    async with open_gate(server, settings_for(tmp_path, queue=SLOW)) as gate:
        assert await times(gate, 2, "203.0.113.1") == [401, 401]
        assert await times(gate, 1, "203.0.113.2") == [429]


async def open_streams(gate: Gate, users: list[str], receipts: dict[str, str]) -> list[int]:
    """Statuses of streams that are all asked for at once, and stay open until the last is answered."""

    async def ask(user: str) -> ClientResponse:
        headers = {"X-Queue-Receipt": receipts[user]}
        return await gate.session.get(f"/api/queue/events?userId={user}", headers=headers)

    answers = await asyncio.gather(*map(ask, users))
    for answer in answers:
        answer.close()
    return sorted(answer.status for answer in answers)


async def test_a_person_has_three_streams_however_fast_they_ask(gate: Gate) -> None:
    receipts = await gate.crowd(1)
    assert await open_streams(gate, ["u000"] * 12, receipts) == [200] * 3 + [429] * 9


async def test_an_address_has_as_many_streams_as_connections(server: RunningServer, tmp_path: Path) -> None:
    own = GatewaySettings(trusted_proxies="127.0.0.0/8", connections_per_address=5)
    keys = {"queue_keys": QUEUE_KEYS, "ticket_keys": TICKET_KEYS}
    settings = dataclasses.replace(settings_for(tmp_path, "lan", queue=SMALL, **keys), gateway=own)
    async with open_gate(server, settings) as gate:
        users = [f"u{n}" for n in range(12)]
        receipts = {u: (await gate.enter(u, signature=signature(u)))["receipt"] for u in users}
        assert await open_streams(gate, list(receipts), receipts) == [200] * 5 + [429] * 7


async def test_who_has_no_token_learns_no_address_of_the_store(valkey: RunningServer, tmp_path: Path) -> None:
    async with open_gate(valkey, settings_for(tmp_path)) as gate:
        receipt = (await gate.enter("ann"))["receipt"]
        valkey.kill()
        for answer in (
            await gate.try_to_enter("bob"),
            await gate.try_status("ann", receipt),
            await gate.ask("GET", "/readyz"),
        ):
            assert answer.status in (503, 504) or answer.json == {"status": "ready", "store": "away"}
            text = answer.body.decode()
            for told in (str(valkey.port), "127.0.0.1", ".sock"):
                assert told not in text


async def test_garbage_costs_the_store_nothing(server: RunningServer, tmp_path: Path) -> None:
    async with open_gate(server, settings_for(tmp_path)) as gate:
        before = gate.calls
        await gate.try_status("ann", "v1.x.y.z")
        await gate.try_to_enter("ann", signature="v1.x.y.z")
        await gate.consume("v1.x.y.z")
        assert gate.calls == before


# -- far back


@pytest.fixture
def nobody_is_near(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of a few is answered as one of a hundred thousand."""
    monkeypatch.setattr(desk, "NEAR", 5)
    monkeypatch.setattr(desk, "SMALL_LINE", 10)


SMALL = QueueSettings(ip_per_second=100_000, user_per_second=1000, user_burst=10_000, gone_seconds=120)


@pytest.fixture
async def gate(server: RunningServer, tmp_path: Path) -> AsyncIterator[Gate]:
    async with open_gate(server, settings_for(tmp_path, queue=SMALL)) as gate:
        yield gate


async def read_the_board(gate: Gate) -> None:
    """From now on it is known, and spares the store a question for a second."""
    gate.world.room.board.forget()
    await gate.world.room.board.get()


@pytest.mark.usefixtures("nobody_is_near")
async def test_a_far_poll_asks_the_store_nothing_and_still_counts_as_being_there(gate: Gate) -> None:
    receipts = await gate.crowd(40)
    await read_the_board(gate)
    before = gate.calls

    told = await gate.status("u020", receipts["u020"])

    assert (told["status"], told["rank"], gate.calls - before) == ("WAITING", 21, 0)
    assert told["receipt"]
    await gate.tick(9)
    gate.world.room.board.forget()
    await gate.status("u020", told["receipt"])
    await gate.world.presence.flush()
    await gate.tick(3)
    seen = await gate.seen()
    assert (seen["waiting"], seen["away"]) == (1, 39)


@pytest.mark.usefixtures("nobody_is_near")
async def test_near_the_front_the_store_is_asked(gate: Gate) -> None:
    receipts = await gate.crowd(40)
    await gate.report(capacity=1)
    await gate.tick(1)
    assert (await gate.status("u000", receipts["u000"]))["status"] == "PROMOTED"
    before = gate.calls
    await gate.status("u002", receipts["u002"])
    assert gate.calls > before


async def test_where_the_board_is_coarse_the_store_is_asked(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody before the second mark: the board cannot tell them apart."""
    monkeypatch.setattr(desk, "NEAR", 0)
    monkeypatch.setattr(desk, "SMALL_LINE", 10)
    receipts = await gate.crowd(200)
    await read_the_board(gate)
    asked = {}
    for user in ("u001", "u003", "u004", "u150"):
        before = gate.calls
        await gate.status(user, receipts[user])
        asked[user] = gate.calls > before
    assert asked == {"u001": True, "u003": True, "u004": False, "u150": False}


@pytest.mark.usefixtures("nobody_is_near")
async def test_a_vip_whose_ticket_ended_is_not_told_a_place_in_the_base_line(
    server: RunningServer, tmp_path: Path
) -> None:
    settings = settings_for(tmp_path, "lan", queue=SMALL, queue_keys=QUEUE_KEYS, ticket_keys=TICKET_KEYS)
    async with open_gate(server, settings) as gate:
        users = [f"u{n:03}" for n in range(40)]
        passes = Passes(parse_keys(QUEUE_KEYS), parse_keys(TICKET_KEYS))
        receipts = [(await gate.enter(user, signature=signature(user)))["receipt"] for user in users]
        seqs = [passes.receipt(shown, "main", user).seq for user, shown in zip(users, receipts, strict=True)]
        await gate.enter("vip", signature=signature("vip", class_="vip"))
        await gate.report(capacity=5)
        assert await gate.tick(1) == 5
        promoted = await gate.enter("vip", signature=signature("vip", class_="vip"))
        assert promoted["status"] == "PROMOTED"
        await gate.govern(mode="hold")
        await gate.tick(61)
        await gate.world.room.touch([(user, seq, 60_000) for user, seq in zip(users, seqs, strict=True)])
        gate.world.room.board.forget()
        told = await gate.status("vip", promoted["receipt"])
        assert (told["status"], told["rank"]) == ("WAITING", 1)


@pytest.mark.usefixtures("nobody_is_near")
async def test_who_lost_the_place_learns_it_also_far_back(gate: Gate) -> None:
    receipts = await gate.crowd(40)
    kicked = [f"u{n:03}" for n in (15, 20, 21, 39)]
    for user in kicked:
        await gate.ask("DELETE", f"/queue/v1/worlds/main/people/{user}", token=TOKEN)
    gate.world.room.board.forget()
    for user in receipts:
        await gate.status(user, receipts[user])
    await gate.world.presence.flush()
    statuses = {user: (await gate.status(user, receipts[user]))["status"] for user in receipts}
    assert [user for user, status in statuses.items() if status == "NONE"] == kicked
    assert (await gate.status("u020", receipts["u020"]))["status"] == "NONE"
    again = await gate.enter("u020")
    assert (await gate.status("u020", again["receipt"]))["status"] == "WAITING"
    stale = await gate.status("u020", receipts["u020"])
    assert (stale["status"], stale["rank"]) == ("WAITING", again["rank"]), (
        "their old receipt is worth nothing"
    )
    before = gate.calls
    await gate.world.room.board.get()
    assert (await gate.status("u020", again["receipt"]))["status"] == "WAITING"
    assert gate.calls == before


@pytest.mark.usefixtures("nobody_is_near")
async def test_far_polls_are_limited_too(server: RunningServer, tmp_path: Path) -> None:
    queue = QueueSettings(ip_per_second=100_000)
    async with open_gate(server, settings_for(tmp_path, queue=queue)) as gate:
        receipts = await gate.crowd(30)
        await read_the_board(gate)
        answers = [await gate.try_status("u020", receipts["u020"]) for _ in range(30)]
        assert 10 <= sum(answer.status == 200 for answer in answers) <= 20
        assert answers[-1].refusal == LIMITED


@pytest.mark.parametrize(("far", "browser"), [(False, False), (True, False), (True, True)])
async def test_g12_the_rank_that_somebody_sees_never_rises(
    gate: Gate, far: bool, browser: bool, request: pytest.FixtureRequest
) -> None:
    if far:
        request.getfixturevalue("nobody_is_near")
    receipts = await gate.crowd(40)
    ranks: list[int] = []

    async def look(user: str = "u030") -> None:
        gate.world.room.board.forget()
        cookie = {"Cookie": f"roost_receipt_main={receipts[user]}"}
        answer = await gate.try_status(
            user, "" if browser else receipts[user], headers=cookie if browser else {}
        )
        if browser:
            receipts[user] = SimpleCookie(answer.headers["Set-Cookie"])["roost_receipt_main"].value
        else:
            receipts[user] = answer.json["receipt"]
        if user == "u030":
            ranks.append(answer.json["rank"])

    await look()
    await gate.tick(9)
    for n in range(20, 40):
        await look(f"u{n:03}")
    await gate.world.presence.flush()
    await gate.tick(4)
    assert (await gate.seen())["away"] == 20
    await look()
    assert ranks[-1] <= 11
    for n in range(20):
        await look(f"u{n:03}")
    await gate.world.presence.flush()
    assert (await gate.seen())["waiting"] == 40
    await look()
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[0] == 31
