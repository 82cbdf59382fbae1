"""A gate between real clients and scripted entities: the whole way of a message, through moves and losses."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import msgspec
import pytest

import roost
from roost.core.errors import OutcomeUnknown, StoreError, StoreUnavailable
from roost.sdk.play import Player
from roost.sdk.words import GateRefused
from roost.servers.gate.session import Who
from roost.servers.gate.silence import LEASES
from roost.testing import eventually
from roost.wire.answer import Answer, refusal
from roost.wire.codes import Code
from roost.wire.connection import Call
from roost.wire.frame import Frame, encode
from tests.acceptance.gates import TYPE, GateTown, Turnstile, raw_client, token


@pytest.fixture
async def town() -> AsyncIterator[GateTown]:
    async with GateTown() as town:
        yield town


async def answers(*asked: asyncio.Future[Any]) -> list[Any]:
    return [(await one).result["done"] for one in asked]


# -- the plain way


@pytest.mark.parametrize("over", ["ws", "tcp"])
async def test_a_message_goes_to_the_home_and_its_answer_comes_back(town: GateTown, over: str) -> None:
    entity = await town.entity()
    gate = await town.gate()
    url = town.urls[0] if over == "ws" else town.tcp_urls[0]

    async with roost.play(url, token()) as player:
        reply = await player.ask({"op": "hi"})

    assert reply.result == {"done": {"op": "hi"}, "by": "501"}
    assert (reply.seq, reply.durability, reply.epoch) == (1, "write-back:1000", town.map.row().epoch)
    assert player.user == "ann"
    await eventually(lambda: [reason for *_, reason in entity.logouts] == ["closed"], "the logout")
    assert not gate.sessions


async def test_in_steady_state_the_store_is_not_asked(town: GateTown) -> None:
    await town.entity()
    await town.gate()
    async with roost.play(town.urls[0], token()) as player:
        reads, resolves = town.map.reads, len(town.map.resolves)
        for number in range(50):
            await player.request(number)
        assert (town.map.reads, len(town.map.resolves)) == (reads, resolves) == (1, 1)
    async with roost.play(town.urls[0], token()) as player:
        await player.request(1)
    assert town.map.reads == reads, "the route is remembered"


async def test_json_clients_get_what_the_contract_says(town: GateTown) -> None:
    await town.entity()
    await town.gate()
    epoch = town.map.row()

    async with raw_client(town.urls[0]) as client:
        welcome = (await client.login())["welcome"]
        await client.say(id="a-1", body={"x": [1, None, "ü"]})
        reply = await client.hear()
        await client.say(ping=[7])
        pong = await client.hear()

    assert welcome["user"] == "ann"
    standing = {"lastSeq": 0, "reason": "return", "durability": "write-back:1000", "epoch": epoch.epoch}
    assert welcome["types"] == {"entity": standing}
    assert reply == {
        "id": "a-1",
        "seq": 1,
        "type": "entity",
        "result": {"done": {"x": [1, None, "ü"]}, "by": "501"},
        "durability": "write-back:1000",
        "epoch": epoch.epoch,
    }
    assert pong == {"pong": [7]}


async def test_pushes_arrive_and_those_of_an_older_epoch_do_not(town: GateTown) -> None:
    entity = await town.entity()
    gate = await town.gate()
    async with roost.play(town.urls[0], token()) as player:
        epoch = town.map.row().epoch
        entity.push("ann", 1, "old", epoch - 1)
        entity.push("ann", 2, {"news": 1}, epoch)
        async for push in player.pushes():
            assert (push.type, push.body, push.n, push.epoch) == ("entity", {"news": 1}, 2, epoch)
            break
    assert gate.pushes == {"dropped": 1, "told": 1}


async def test_everybody_who_listens_for_pushes_hears_that_the_player_has_ended(town: GateTown) -> None:
    entity = await town.entity()
    await town.gate()
    heard: list[Any] = []

    async def listen(player: Player) -> None:
        heard.extend([push.body async for push in player.pushes()])

    async with roost.play(town.urls[0], token()) as player:
        listening = [asyncio.create_task(listen(player)) for _ in range(2)]
        assert entity.push("ann", 1, "psst", town.map.row().epoch)
        await player.ask(1)
    async with asyncio.timeout(2):
        await asyncio.gather(*listening)
        await listen(player)
    assert heard == ["psst"]


async def test_a_raising_handler_is_told_and_the_next_message_goes_on(town: GateTown) -> None:
    entity = await town.entity()
    await town.gate()

    def fail_once(call: Call, user: str, body: Any) -> Any:
        if body == "bad":
            town.map.row().last = call.sequence or 0
            return refusal(Code.FAILED, "the handler failed", epoch=town.map.row().epoch)
        return None

    entity.behave = fail_once
    async with roost.play(town.urls[0], token()) as player:
        bad, good = await player.send("bad"), await player.send("good")
        with pytest.raises(GateRefused, match="FAILED"):
            await bad
        assert (await good).seq == 2


# -- moves


async def test_a_user_who_moves_is_followed_in_order(town: GateTown) -> None:
    a, b = await town.entity("501"), await town.entity("502")
    await town.gate()
    town.map.place("ann", "501")
    async with roost.play(town.urls[0], token()) as player:
        await player.request(0)
        town.map.place("ann", "502", tell=False)
        asked = [await player.send(number) for number in range(1, 40)]
        assert await answers(*asked) == list(range(1, 40))
    assert town.map.row().log == list(range(40))
    assert any(sequence > 1 for _, sequence, _ in a.received), "the old home was asked"
    assert b.logins[0][2]["resume"] is True


async def test_the_feed_alone_takes_a_silent_user_to_the_new_home(town: GateTown) -> None:
    await town.entity("501")
    b = await town.entity("502")
    await town.gate()
    town.map.place("ann", "501")
    async with roost.play(town.urls[0], token()) as player:
        reads = town.map.reads
        town.map.place("ann", "502")
        await eventually(lambda: "ann" in b.connections, "the login at the new home")
        b.push("ann", 1, "hello from 502", town.map.row().epoch)
        async for push in player.pushes():
            assert push.body == "hello from 502"
            break
        assert town.map.reads == reads, "the feed said it all"


async def test_one_type_is_rehomed_while_the_other_stays_put(town: GateTown) -> None:
    a, b = await town.entity("501"), await town.entity("502")
    pets = await town.entity("901", "pets")
    await town.gate(types="entity,pets")
    town.map.place("ann", "501")
    async with roost.play(town.urls[0], token(), types=["entity", "pets"]) as player:
        await player.request("e1")
        await player.request("p1", type="pets")
        town.map.place("ann", "502")
        asked = [
            await player.send(f"{type_}{number}", type=type_)
            for number in range(20)
            for type_ in ("entity", "pets")
        ]
        await asyncio.gather(*asked)
    assert len(pets.logins) == 1
    assert len(b.logins) == 1
    assert [body for _, _, body in pets.received] == ["p1", *(f"pets{n}" for n in range(20))]
    assert town.map.row().log == ["e1", *(f"entity{n}" for n in range(20))]
    assert (town.map.row().last, town.map.row("ann", "pets").last) == (21, 21)
    assert len(a.received) >= 1


async def test_who_is_on_the_move_waits_and_goes_on_at_the_new_home(town: GateTown) -> None:
    await town.entity("501")
    await town.entity("502")
    gate = await town.gate()
    town.map.place("ann", "501")
    async with roost.play(town.urls[0], token()) as player:
        town.map.row().state = "M"
        asked = [await player.send(number) for number in range(5)]
        await eventually(lambda: gate.services.finder.waits > 0, "a lookup that waits")
        resolves = len(town.map.resolves)
        town.map.place("ann", "502")
        assert await answers(*asked) == [0, 1, 2, 3, 4]
    assert resolves < 10, "a thousand requests that wait cost one lookup"
    assert [reply["by"] for reply in town.map.row().replies.values()] == ["502"] * 5


async def test_a_move_that_never_ends_is_refused_with_the_reason(town: GateTown) -> None:
    await town.entity("501")
    await town.gate(wait_ms=300)
    town.map.place("ann", "501")
    async with roost.play(town.urls[0], token()) as player:
        town.map.row().state = "M"
        with pytest.raises(GateRefused, match="MIGRATING") as refused:
            await player.request(1)
        assert refused.value.retry_after_s > 0
        town.map.place("ann", "501")
        assert (await player.ask(2)).seq == 2
    assert town.map.row().log == [2]


async def test_nobody_waits_for_a_wake_up_that_came_while_the_map_was_read(town: GateTown) -> None:
    """Register, then read: the change that comes between the read's answer and the wait is heard."""
    await town.entity("501")
    await town.entity("502")
    gate = await town.gate()
    town.map.place("ann", "501")
    async with roost.play(town.urls[0], token()) as player:
        row = town.map.row()
        row.state = "M"

        def moved_just_then() -> None:
            town.map.on_read = None
            town.map.place("ann", "502", tell=False)
            row.state = "M"  # what this read still says
            asyncio.get_running_loop().call_soon(arrive)

        def arrive() -> None:
            row.state = "A"
            gate.services.finder.wake_all()

        town.map.on_read = moved_just_then
        assert (await player.ask("x")).result["by"] == "502"
        assert gate.services.finder.waits <= 2


async def test_the_highest_epoch_seen_is_passed_on_and_granted_above(town: GateTown) -> None:
    """R7: a store that lost a grant must not make every reply an old one for ever."""
    await town.entity("501")
    gate = await town.gate()
    async with roost.play(town.urls[0], token()) as player:
        await player.request(1)
        seen = town.map.row().epoch
        town.map.row().epoch = seen - 50  # a failover lost the grant
        assert (await player.ask(2)).epoch > seen
        assert seen in town.map.resolves
    assert gate.services.terms.counts.stale > 0
    assert town.map.row().log == [1, 2]


async def test_a_gap_in_the_feed_makes_the_gate_look_everybody_up(town: GateTown) -> None:
    await town.entity("501")
    b = await town.entity("502")
    gate = await town.gate()
    town.map.place("ann", "501")
    async with roost.play(town.urls[0], token()):
        town.map.place("ann", "502", tell=False)
        gate.missed()
        await eventually(lambda: "ann" in b.connections, "the login at the home that nobody told of")


async def test_a_released_user_is_placed_again_by_their_next_message(town: GateTown) -> None:
    await town.entity("501")
    await town.gate()
    async with roost.play(town.urls[0], token()) as player:
        await player.request(1)
        row = town.map.row()
        row.owner = ""
        town.map.tell("ann")
        assert (await player.ask(2)).epoch == row.epoch
    assert town.map.row().log == [1, 2]


# -- losses


async def test_a_user_who_is_released_during_their_first_login_is_let_in_elsewhere(town: GateTown) -> None:
    first, _ = await town.entity("501"), await town.entity("502")
    await town.gate()
    town.map.place("ann", "501")

    def released() -> None:
        row = town.map.row()
        row.owner, row.state = "", "R"
        town.map.servers["entity"].remove("501")
        town.map.tell("ann")

    first.on_login = released
    async with raw_client(town.urls[0]) as client:
        assert "welcome" in await client.login()
    assert town.map.row().owner == "502"


async def test_a_lost_connection_to_the_home_costs_nothing_and_doubles_nothing(town: GateTown) -> None:
    entity = await town.entity("501")
    await town.gate()
    async with roost.play(town.urls[0], token()) as player:
        await player.request(0)
        held: list[int] = []

        def execute_and_cut(call: Call, user: str, body: Any) -> Any:
            if body == 3 and not held:
                held.append(1)
                entity.execute(call, "entity", user, body)
                call.peer.cut("the test cuts it")
                return refusal(Code.FAILED, "nobody hears this")
            return None

        entity.behave = execute_and_cut
        asked = [await player.send(number) for number in range(1, 8)]
        assert await answers(*asked) == list(range(1, 8))
    assert town.map.row().log == list(range(8))
    assert len(entity.logins) == 2, "pushes need a login on the new connection"


async def test_a_home_that_dies_is_replaced_and_every_message_is_executed_once(town: GateTown) -> None:
    a = await town.entity("501")
    await town.entity("502")
    await town.gate()
    town.map.place("ann", "501")
    async with roost.play(town.urls[0], token()) as player:
        await player.request(0)
        asked = [await player.send(number) for number in range(1, 10)]
        await a.stop()
        town.map.place("ann", "502", tell=False)
        asked += [await player.send(number) for number in range(10, 20)]
        assert await answers(*asked) == list(range(1, 20))
    assert town.map.row().log == list(range(20))


async def test_no_server_at_all_is_refused_with_the_reason(town: GateTown) -> None:
    await town.gate(wait_ms=200)
    async with raw_client(town.urls[0]) as client:
        bye = (await client.login())["bye"]
    assert (bye["code"], bye["retryAfterMs"]) == ("UNAVAILABLE", 1000)
    assert "none registered" in bye["message"]


async def test_a_message_without_an_answer_ends_with_an_unknown_outcome(town: GateTown) -> None:
    entity = await town.entity()
    await town.gate(timeout_ms=300)
    entity.behave = lambda call, user, body: asyncio.sleep(60) if body == "never" else None
    async with roost.play(town.urls[0], token()) as player:
        never = await player.send("never")
        with pytest.raises(OutcomeUnknown):
            await never
        assert (await player.ask("next")).seq == 2


@pytest.mark.parametrize("by_us", [True, False])
async def test_a_home_that_hangs_is_left_when_its_lease_is_over(town: GateTown, by_us: bool) -> None:
    """Its connection stands, and would for longer than a message may take."""
    hung, other = await town.entity("501"), await town.entity("502")
    await town.gate(lease_s=0.3, timeout_ms=5000)
    hung.behave = lambda call, user, body: asyncio.sleep(60) if body != "first" else None
    async with roost.play(town.urls[0], token()) as player:
        await player.request("first")
        waiting = [await player.send(body) for body in ("second", "third")]
        await eventually(lambda: len(hung.received) == 3)
        if by_us:
            town.map.servers[TYPE].remove("501")
        else:  # somebody else asked, and the news did not come
            town.map.place("ann", "502", tell=False)

        assert await answers(*waiting) == ["second", "third"]

    assert town.map.row().log == ["first", "second", "third"]
    assert [sequence for _, sequence, _ in other.received] == [2, 3]


async def test_a_slow_handler_is_not_disturbed_and_the_store_is_asked_seldom(town: GateTown) -> None:
    entity = await town.entity()
    gate = await town.gate(lease_s=0.2)

    def slowly(call: Call, user: str, body: Any) -> Any:
        async def later() -> Any:
            await asyncio.sleep(1.0)
            return entity.execute(call, TYPE, user, body)

        return later()

    entity.behave = slowly
    async with roost.play(town.urls[0], token()) as player:
        resolves = len(town.map.resolves)
        assert (await player.request("slow"))["done"] == "slow"
        looks = len(town.map.resolves) - resolves

    assert 1 <= looks <= 1.0 / (0.2 * LEASES)
    assert len(entity.received) == len(entity.logins) == 1
    assert gate.services.terms.counts.resent == 0


# -- sessions


async def test_a_second_login_takes_over_and_the_first_one_is_told(town: GateTown) -> None:
    await town.entity()
    gate = await town.gate()
    async with raw_client(town.urls[0]) as first, raw_client(town.urls[0]) as second:
        one = (await first.login())["welcome"]
        two = (await second.login())["welcome"]
        assert (await first.hear())["bye"]["code"] == "TAKEN_OVER"
        await second.say(body=1)
        assert (await second.hear())["seq"] == 1
    assert one["session"] < two["session"]
    assert gate.ended_by["taken-over"] == 1


async def test_a_second_login_at_another_gate_takes_over_too(town: GateTown) -> None:
    await town.entity()
    await town.gate()
    await town.gate()
    async with raw_client(town.urls[0]) as first, raw_client(town.urls[1]) as second:
        await first.login()
        await second.login()
        assert (await first.hear())["bye"]["code"] == "TAKEN_OVER"
        await second.say(body=1)
        assert (await second.hear())["seq"] == 1


async def test_an_older_session_that_sends_is_told_that_it_is_one(town: GateTown) -> None:
    entity = await town.entity()
    await town.gate()
    entity.behave = lambda call, user, body: refusal(Code.NOT_OWNER, "logged in elsewhere")
    async with raw_client(town.urls[0]) as client:
        await client.login()
        await client.say(body=1)
        assert (await client.hear())["bye"] == {"code": "TAKEN_OVER", "message": "logged in elsewhere"}


@pytest.mark.parametrize("over", ["ws", "tcp"])
async def test_a_lost_client_resumes_at_another_gate_in_order_and_once(town: GateTown, over: str) -> None:
    entity = await town.entity()
    first = await town.gate()
    await town.gate()
    urls = town.urls if over == "ws" else town.tcp_urls
    async with roost.play(",".join(urls), token()) as player:
        await player.request(0)
        entity.behave = _silent_about(entity, {3, 4})  # executed, and the answers never come
        asked = [await player.send(number) for number in range(1, 6)]
        await answers(*asked[:2])
        await eventually(lambda: town.map.row().last == 6, "all are executed")
        entity.behave = None
        first.sessions["ann"].port.cut("like a cable")
        assert await answers(*asked[2:]) == [3, 4, 5]
        assert await answers(await player.send(6)) == [6]
        assert player.connects == 2
    assert town.map.row().log == list(range(7))
    assert entity.logins[-1][2]["resume"] is True


def _silent_about(entity: Any, bodies: set[int]) -> Any:
    def behave(call: Call, user: str, body: Any) -> Any:
        if body in bodies or body > max(bodies):
            answer = entity.execute(call, "entity", user, body)
            return asyncio.sleep(60, answer)
        return None

    return behave


async def test_a_gate_that_stops_sends_everybody_away_with_a_resume_token(town: GateTown) -> None:
    await town.entity()
    gate = await town.gate()
    await town.gate()
    async with raw_client(town.urls[0]) as client:
        await client.login()
        await gate.drain()
        said = await client.hear()
        assert said["bye"]["code"] == "DRAINING"
        assert await client.hear() == {}
    async with raw_client(town.urls[1]) as client:
        await client.say(login="", resume=said["resume"])
        assert (await client.hear())["welcome"]["user"] == "ann"


async def test_a_gate_that_stops_lets_replies_on_their_way_arrive(town: GateTown) -> None:
    entity = await town.entity()
    gate = await town.gate()
    release = asyncio.Event()

    def slowly(call: Call, user: str, body: Any) -> Any:
        async def later() -> Any:
            await release.wait()
            return entity.execute(call, "entity", user, body)

        return later()

    entity.behave = slowly
    async with raw_client(town.urls[0]) as client:
        await client.login()
        await client.say(body=1)
        await eventually(lambda: gate.services.terms.room.messages == 1, "the message is on its way")
        draining = asyncio.create_task(gate.drain())
        release.set()
        await draining
        assert (await client.hear())["seq"] == 1
        assert (await client.hear())["bye"]["code"] == "DRAINING"


async def test_a_fresh_resume_token_comes_before_the_old_one_ends(town: GateTown) -> None:
    await town.entity()
    gate = await town.gate(resume_seconds=2)
    async with roost.play(town.urls[0], token()) as player:
        before = player.resume
        gate.sessions["ann"].renewed_at -= 1.5
        await gate.look_after()
        await eventually(lambda: player.resume != before, "a fresh token")


# -- bad input


async def test_whoever_shows_no_good_token_is_refused(town: GateTown) -> None:
    await town.entity()
    gate = await town.gate()
    async with roost.play(town.urls[0], token("bob")) as bob:
        of_bob = bob.resume
    cases: list[tuple[dict[str, Any], str]] = [
        ({"login": "rubbish"}, "TOKEN_REFUSED"),
        ({"login": token(ttl_s=-1)}, "TOKEN_REFUSED"),
        ({"login": of_bob}, "TOKEN_REFUSED"),
        ({"login": ""}, "TOKEN_REFUSED"),
        ({"login": token("ann"), "resume": of_bob}, "TOKEN_REFUSED"),
        ({"login": token("ann"), "resume": token("ann")}, "TOKEN_REFUSED"),
        ({"login": token("ann"), "types": ["secret"]}, "INVALID_INPUT"),
        ({"login": token("a{n}n")}, "INVALID_ID"),
        ({"body": 1}, "INVALID_INPUT"),
    ]
    for said, code in cases:
        async with raw_client(town.urls[0]) as client:
            await client.say(**said)
            bye = (await client.hear())["bye"]
            assert bye["code"] == code, said
            assert "signature" not in bye["message"]
            assert await client.hear() == {}
    assert not gate.sessions
    assert gate.refused_logins["TOKEN_REFUSED"] == 6


async def test_tokens_may_narrow_the_types(town: GateTown) -> None:
    await town.entity("901", "pets")
    await town.gate(types="entity,pets")
    async with raw_client(town.urls[0]) as client:
        await client.say(login=token("ann", types=("pets",)), types=["pets"])
        assert "welcome" in await client.hear()
        await client.say(type="entity", body=1)
        assert (await client.hear())["error"]["code"] == "BAD_REQUEST"


@pytest.mark.parametrize(
    "garbage", ["{", "[]", "1", '{"body":1,"seq":-1}', '{"seq":1}', '{"body":1,"type":7}', "[" * 20_000]
)
async def test_garbage_is_answered_and_the_session_lives(town: GateTown, garbage: str) -> None:
    await town.entity()
    await town.gate()
    async with raw_client(town.urls[0]) as client:
        await client.login()
        await client.ws.send_str(garbage)
        assert (await client.hear())["error"]["code"] == "BAD_REQUEST"
        await client.say(body=1)
        assert (await client.hear())["seq"] == 1


async def test_too_much_garbage_ends_the_session(town: GateTown) -> None:
    await town.entity()
    gate = await town.gate()
    async with raw_client(town.urls[0]) as client:
        await client.login()
        for _ in range(40):
            await client.ws.send_str("rubbish")
        said = [await client.hear() for _ in range(34)]
    assert said[-1]["bye"]["code"] == "BAD_REQUEST"
    assert not gate.sessions


async def test_a_message_that_is_too_large_ends_the_connection_and_loses_nothing_else(town: GateTown) -> None:
    await town.entity()
    await town.gate(message_bytes=1000)
    async with raw_client(town.urls[0]) as client:
        await client.login()
        await client.say(body="x" * 2000)
        assert await client.hear() == {}
        assert client.ws.close_code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG
    async with roost.play(town.urls[0], token()) as player:
        assert (await player.ask(1)).seq == 1


async def test_a_frame_that_is_too_large_ends_a_tcp_session_before_it_is_buffered(town: GateTown) -> None:
    entity = await town.entity()
    gate = await town.gate(message_bytes=1000)
    host, port = town.tcp_urls[0].removeprefix("tcp://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(player_frame({"login": token()}))
    await eventually(lambda: "ann" in entity.connections, "the login")
    writer.write(player_frame({"body": "fits"}, 2))
    await eventually(lambda: town.map.row().log == ["fits"], "what fits is executed")
    writer.write(player_frame({"body": "x" * 2000}, 3)[:40])  # its head, and little of what it announces
    said = await asyncio.wait_for(reader.read(), 10)
    assert b"frame" in said
    assert not gate.sessions
    writer.close()
    async with roost.play(town.tcp_urls[0], token()) as player:
        assert (await player.ask("next")).seq == 2
    assert town.map.row().log == ["fits", "next"]


async def test_of_a_thousand_pipelined_messages_none_is_dropped_silently(town: GateTown) -> None:
    await town.entity()
    gate = await town.gate()
    async with raw_client(town.urls[0]) as client:
        await client.login()
        await asyncio.gather(*(client.say(id=number, body=number) for number in range(1000)))
        said = [await client.hear() for _ in range(1000)]
    assert sorted(one["id"] for one in said) == list(range(1000))
    refused = [one for one in said if "error" in one]
    done = [one for one in said if "result" in one]
    assert all(one["error"]["code"] == "QUEUE_FULL" and one["error"]["retryAfterMs"] for one in refused)
    assert town.map.row().log == [one["id"] for one in done]
    assert gate.services.terms.room.messages == 0


async def test_a_client_that_never_reads_is_cut(town: GateTown) -> None:
    entity = await town.entity()
    gate = await town.gate(unread_bytes=4096)
    async with raw_client(town.urls[0]) as client:
        await client.login()
        epoch = town.map.row().epoch
        big = "x" * 60_000
        for number in range(400):
            if "ann" not in gate.sessions:
                break
            entity.push("ann", number, big, epoch)
            await asyncio.sleep(0)
        await eventually(lambda: "ann" not in gate.sessions, "the cut")
    assert gate.ended_by["slow"] == 1


async def test_a_tcp_client_that_never_reads_is_cut(town: GateTown) -> None:
    entity = await town.entity()
    gate = await town.gate(unread_bytes=65_536)
    host, port = town.tcp_urls[0].removeprefix("tcp://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
    writer.write(player_frame({"login": token()}))
    await eventually(lambda: "ann" in entity.connections, "the login")
    for number in range(400):
        if "ann" not in gate.sessions:
            break
        entity.push("ann", number, "x" * 60_000, town.map.row().epoch)
        await asyncio.sleep(0.001)
    await eventually(lambda: "ann" not in gate.sessions, "the cut")
    assert gate.ended_by["slow"] == 1
    writer.close()
    assert reader is not None


async def test_a_tcp_client_that_sends_before_its_welcome_is_served_in_order(town: GateTown) -> None:
    await town.entity()
    await town.gate()
    host, port = town.tcp_urls[0].removeprefix("tcp://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    frames: list[dict[str, Any]] = [{"login": token()}, *({"body": number} for number in range(20))]
    writer.write(b"".join(player_frame(words, number) for number, words in enumerate(frames, start=1)))
    await eventually(lambda: town.map.row().log == list(range(20)), "all are executed, in order")
    writer.close()


def player_frame(words: dict[str, Any], request: int = 1) -> bytes:
    """One message of a TCP client, as docs/protocol.md has it."""
    return encode(Frame(0, 2, 1, 0, 0, request, 0, msgspec.msgpack.encode(words)))


async def test_a_client_that_says_nothing_is_closed(town: GateTown) -> None:
    await town.entity()
    gate = await town.gate(idle_seconds=60)
    async with raw_client(town.urls[0]) as client:
        await client.login()
        gate.sessions["ann"].heard_at -= 61
        await gate.look_after()
        assert (await client.hear())["bye"]["code"] == "IDLE"


async def test_a_tcp_client_that_speaks_something_else_is_shown_the_door(town: GateTown) -> None:
    await town.entity()
    gate = await town.gate()
    host, port = town.tcp_urls[0].removeprefix("tcp://").split(":")
    for garbage in (b"GET / HTTP/1.1\r\n\r\n" * 4, b"\x00" * 64, b"\xff" * 64):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(garbage)
        assert len(await asyncio.wait_for(reader.read(), 10)) < 300
        writer.close()
    assert not gate.sessions


async def test_plain_http_is_told_to_upgrade(town: GateTown) -> None:
    await town.gate()
    async with aiohttp.ClientSession() as session:
        async with session.get(town.urls[0].replace("ws://", "http://")) as answer:
            body = msgspec.json.decode(await answer.read())
    assert (answer.status, body["error"]["code"]) == (426, "UPGRADE_REQUIRED")


async def test_a_session_stays_with_the_kind_of_its_first_message(town: GateTown) -> None:
    await town.entity()
    await town.gate()
    async with raw_client(town.urls[0]) as client:
        await client.login()
        await client.ws.send_bytes(msgspec.msgpack.encode({"body": 1}))
        assert (await client.hear())["bye"]["code"] == "BAD_REQUEST"


async def test_a_result_that_json_cannot_say_is_told_as_that_of_a_message_that_was_executed(
    town: GateTown,
) -> None:
    """Another word would have the client send it again under a new number."""
    entity = await town.entity()
    await town.gate()

    def unsayable(call: Call, user: str, body: Any) -> Answer:
        done = entity.execute(call, "entity", user, body)
        assert not done.code
        return Answer(msgspec.msgpack.encode([{(1, 2): 3}, "write-back:1000"]), epoch=done.epoch)

    entity.behave = unsayable
    async with raw_client(town.urls[0]) as client:
        await client.login()
        await client.say(id="a", body=1)
        told = await client.hear()
    assert (told["id"], told["error"]["code"]) == ("a", "FAILED")
    assert "cannot be told here" in told["error"]["message"]
    assert town.map.row().log == [1]


async def test_a_push_that_json_cannot_say_is_left_out(town: GateTown) -> None:
    entity = await town.entity()
    gate = await town.gate()
    async with raw_client(town.urls[0]) as client:
        await client.login()
        entity.push("ann", 1, msgspec.msgpack.Ext(5, b"?"), town.map.row().epoch)
        entity.push("ann", 2, "fine", town.map.row().epoch)
        assert (await client.hear())["push"] == "fine"
    assert gate.pushes["dropped"] == 1


async def test_a_player_that_is_not_let_in_hears_why(town: GateTown) -> None:
    await town.entity()
    await town.gate()
    with pytest.raises(GateRefused) as refused:
        async with roost.play(town.urls[0], "rubbish"):
            pass
    assert refused.value.reason == "TOKEN_REFUSED"


async def test_a_player_who_was_taken_over_stays_away(town: GateTown) -> None:
    await town.entity()
    await town.gate()
    async with roost.play(town.urls[0], token()) as first:
        async with roost.play(town.urls[0], token()) as second:
            await eventually(lambda: first.ended is not None, "the farewell")
            assert isinstance(first.ended, GateRefused)
            assert first.ended.reason == "TAKEN_OVER"
            with pytest.raises(GateRefused):
                await first.request(1)
            assert (await second.ask(1)).seq == 1


async def test_a_client_that_left_during_its_login_is_not_logged_in_later(town: GateTown) -> None:
    gate = await town.gate(wait_ms=1500)
    async with raw_client(town.urls[0]) as client:
        await client.say(login=token())
        await eventually(lambda: gate.services.finder.waits > 0, "a login that waits for a server")
    async with aiohttp.ClientSession() as session, session.ws_connect(town.urls[0]) as ws:
        await ws.send_str(msgspec.json.encode({"login": token()}).decode())
        await eventually(lambda: len(gate.sessions) == 1, "a second login that waits")
        entity = await town.entity()
        await eventually(lambda: len(entity.logins) == 1, "the login of the one who stayed")
        first = await ws.receive()
        assert "welcome" in msgspec.json.decode(first.data)
        assert [session for _, session, _ in entity.logins] == [gate.sessions["ann"].session_id]


async def test_a_login_that_comes_too_late_is_told_that_another_took_over(town: GateTown) -> None:
    entity = await town.entity()
    gate = await town.gate()
    entity.refuse_logins = refusal(Code.NOT_OWNER, "another session of this user took over")
    async with raw_client(town.urls[0]) as client:
        assert (await client.login())["bye"]["code"] == "TAKEN_OVER"
    assert not gate.sessions


async def test_a_user_whose_state_one_version_cannot_read_is_let_in_at_another(town: GateTown) -> None:
    older, _ = await town.entity("501"), await town.entity("502")
    await town.gate()
    older.refuse_logins = refusal(Code.REFUSED, "the state needs a class of schema version 2")
    older.on_login = lambda: town.map.servers["entity"].remove("501")
    town.map.place("ann", "501")
    async with raw_client(town.urls[0]) as client:
        assert "welcome" in await client.login()
    assert town.map.row().owner == "502"


async def test_a_user_whose_state_nobody_can_read_hears_so(town: GateTown) -> None:
    entity = await town.entity()
    gate = await town.gate(wait_ms=300)
    entity.refuse_logins = refusal(Code.REFUSED, "the state needs a class of schema version 2")
    async with raw_client(town.urls[0]) as client:
        bye = (await client.login())["bye"]
        assert bye["code"] == "UNAVAILABLE"
        assert "schema version 2" in bye["message"]
    assert not gate.sessions


async def test_a_player_whose_own_earlier_attempt_took_over_comes_again(town: GateTown) -> None:
    entity = await town.entity()
    await town.gate()
    entity.refuse_logins = refusal(Code.NOT_OWNER, "another session of this user took over")
    playing = asyncio.create_task(_play_once(town.urls[0]))
    await eventually(lambda: entity.refused_logins >= 2, "it tries again")
    entity.refuse_logins = None
    assert (await playing).connects == 1


async def _play_once(url: str) -> roost.Player:
    async with roost.play(url, token()) as player:
        await player.request(1)
        return player


async def test_a_body_that_no_gate_takes_is_refused_before_it_is_sent(town: GateTown) -> None:
    await town.entity()
    await town.gate(message_bytes=1000)
    async with roost.play(town.urls[0], token()) as player:
        for body in ("x" * 1000, object(), 2**70):
            with pytest.raises(roost.Mistake):
                await player.send(body)
        assert (await player.ask("fine")).seq == 1, "no number was spent"
        assert player.connects == 1


async def test_numbers_go_on_where_a_session_cannot_be_resumed_and_the_home_forgot_some(
    town: GateTown,
) -> None:
    """A number that was used before would get the reply of another message, should the home find it again."""
    await town.entity()
    gate = await town.gate()
    async with roost.play(town.urls[0], token()) as player:
        for number in (1, 2, 3):
            await player.request(number)
        town.map.row().last = 1
        player.resume = "older than any key"
        gate.sessions["ann"].port.cut("like a cable")
        await eventually(lambda: player.connects == 2, "a new session")
        assert player.types["entity"].last_seq == 1
        assert (await player.ask("next")).seq == 4


async def test_messages_sent_while_the_player_resumes_arrive_in_order(town: GateTown) -> None:
    await town.entity()
    first = await town.gate()
    await town.gate()
    async with roost.play(",".join(town.urls), token()) as player:
        await player.request(0)
        asked = [await player.send(number) for number in range(1, 60)]
        first.sessions["ann"].port.cut("like a cable")
        for number in range(60, 400):
            asked.append(await player.send(number))
            await asyncio.sleep(0)
        assert await answers(*asked) == list(range(1, 400))
        assert player.connects == 2
    assert town.map.row().log == list(range(400))


# -- what was sent again, and refused


def _executes_silently(entity: Any) -> Any:
    """Every message is executed, and its answer never comes."""
    return lambda call, user, body: asyncio.sleep(60, entity.execute(call, "entity", user, body))


@pytest.mark.parametrize(
    ("code", "limits"),
    [
        ("GATE_FULL", {"total_bytes": 1024}),
        ("QUEUE_FULL", {"queue_bytes": 1024}),
        ("MIGRATING", {"wait_ms": 300}),
    ],
)
async def test_what_was_sent_before_a_reconnect_is_not_refused_as_if_nothing_was_executed(
    town: GateTown, code: str, limits: dict[str, Any]
) -> None:
    """The gate that refuses knows nothing of the first attempt; a caller who believes it does it twice."""
    entity = await town.entity()
    first, _ = await town.gate(), await town.gate(**limits)
    body = "x" * 2000
    async with roost.play(",".join(town.urls), token()) as player:
        entity.behave = _executes_silently(entity)
        asked = await player.send(body)
        await eventually(lambda: town.map.row().last == 1, "it is executed")
        entity.behave = lambda call, user, body: _moving(town)
        first.sessions["ann"].port.cut("like a cable")
        with pytest.raises(OutcomeUnknown, match=code):
            await asked
        assert player.connects == 2
        with pytest.raises(GateRefused, match=code):
            await player.request(body)  # its first attempt: nothing was executed
    assert town.map.row().log == [body]


def _moving(town: GateTown) -> Any:
    town.map.row().state = "M"
    return refusal(Code.MIGRATING, "not here")


async def test_a_message_that_waited_for_the_reconnect_was_not_sent_before(town: GateTown) -> None:
    entity = await town.entity()
    first, _ = await town.gate(), await town.gate(total_bytes=1024)
    logins, is_away, may_log_in = itertools.count(1), asyncio.Event(), asyncio.Event()

    async def fresh() -> str:
        if next(logins) > 1:
            is_away.set()
            await may_log_in.wait()
        return token()

    async with roost.play(",".join(town.urls), fresh) as player:
        entity.behave = _executes_silently(entity)
        before = await player.send("x" * 2000)
        await eventually(lambda: town.map.row().last == 1, "it is executed")
        first.sessions["ann"].port.cut("like a cable")
        await is_away.wait()
        meanwhile = await player.send("x" * 2001)
        may_log_in.set()
        with pytest.raises(OutcomeUnknown):
            await before
        with pytest.raises(GateRefused, match="GATE_FULL"):
            await meanwhile


async def test_what_failed_at_the_home_is_told_so_after_a_reconnect(town: GateTown) -> None:
    """The home has judged that number: the outcome is known."""
    entity = await town.entity()
    first, _ = await town.gate(), await town.gate()
    async with roost.play(",".join(town.urls), token()) as player:
        entity.behave = _executes_silently(entity)
        asked = await player.send("bad")
        await eventually(lambda: town.map.row().last == 1, "it is executed")
        failed = refusal(Code.FAILED, "the handler failed", epoch=town.map.row().epoch)
        entity.behave = lambda call, user, body: failed
        first.sessions["ann"].port.cut("like a cable")
        with pytest.raises(GateRefused, match="FAILED"):
            await asked
        assert player.connects == 2


async def test_whoever_asks_again_under_the_same_number_learns_what_became_of_it(town: GateTown) -> None:
    """As docs/clients.md tells clients of other languages: on another connection, for here it is spent."""
    entity = await town.entity()
    gate = await town.gate(wait_ms=300)
    async with raw_client(town.urls[0]) as client:
        resume = (await client.login())["welcome"]["resume"]
        entity.behave = _executes_silently(entity)
        await client.say(seq=1, body="x")
        await eventually(lambda: town.map.row().last == 1, "it is executed")
    await eventually(lambda: not gate.sessions, "the gate noticed")
    entity.behave = lambda call, user, body: _moving(town)
    async with raw_client(town.urls[0]) as client:
        resume = (await client.login(resume=resume))["welcome"]["resume"]
        await client.say(seq=1, body="x")
        assert (await client.hear())["error"]["code"] == "MIGRATING"
        await client.say(seq=1, body="x")
        assert (await client.hear())["error"]["code"] == "BAD_SEQUENCE"
    entity.behave = None
    town.map.place("ann", "501")
    async with raw_client(town.urls[0]) as client:
        await client.login(resume=resume)
        await client.say(seq=1, body="x")
        assert (await client.hear())["result"] == {"done": "x", "by": "501"}
    assert town.map.row().log == ["x"]


# -- by ticket


async def test_a_ticket_is_used_up_and_its_place_given_back_when_the_player_leaves(town: GateTown) -> None:
    await town.entity()
    turnstile = Turnstile()
    await town.gate(turnstile)
    async with roost.play(town.urls[0], "ticket:ann:1") as player:
        assert (await player.ask(1)).seq == 1
        assert turnstile.inside == ["ann"]
    await eventually(lambda: turnstile.left == [("ann", "closed")], "the place is given back")
    for bad in ("ticket:ann:1", token("ann"), "", "rubbish"):
        with pytest.raises(GateRefused, match="TICKET"):
            async with roost.play(town.urls[0], bad):
                pass
    assert turnstile.inside == []


class Away(Turnstile):
    """A waiting room whose store does not answer at first."""

    def __init__(self, *faults: type[StoreError]) -> None:
        super().__init__()
        self.faults = list(faults)

    async def enter(self, ticket: str, types: tuple[str, ...]) -> Who:
        if self.faults:
            raise self.faults.pop()
        return await super().enter(ticket, types)


@pytest.mark.parametrize("over", ["ws", "tcp"])
async def test_a_player_comes_again_where_the_waiting_room_did_not_answer(town: GateTown, over: str) -> None:
    await town.entity()
    turnstile = Away(StoreUnavailable, OutcomeUnknown)
    await town.gate(turnstile)
    url = town.urls[0] if over == "ws" else town.tcp_urls[0]
    async with roost.play(url, fresh_tickets("ann")) as player:
        assert (await player.ask(1)).seq == 1
    assert turnstile.faults == []


async def test_a_second_ticket_takes_over_with_a_place_of_its_own(town: GateTown) -> None:
    await town.entity()
    turnstile = Turnstile()
    await town.gate(turnstile)
    async with roost.play(town.urls[0], "ticket:ann:1") as first:
        async with roost.play(town.urls[0], "ticket:ann:2") as second:
            await eventually(lambda: first.ended is not None, "the first one is told")
            assert (await second.ask(1)).seq == 1
            assert turnstile.inside == ["ann"]
    assert turnstile.left[0] == ("ann", "taken-over")


async def test_a_login_that_fails_after_the_ticket_gives_the_place_back(town: GateTown) -> None:
    turnstile = Turnstile()
    await town.gate(turnstile, wait_ms=200)
    async with raw_client(town.urls[0]) as client:
        await client.say(login="ticket:ann:1")
        assert (await client.hear())["bye"]["code"] == "UNAVAILABLE"
    assert turnstile.left == [("ann", "failed")]


async def test_a_login_that_asks_for_too_much_uses_no_ticket_up(town: GateTown) -> None:
    await town.entity()
    turnstile = Turnstile()
    await town.gate(turnstile)
    async with raw_client(town.urls[0]) as client:
        await client.say(login="ticket:bob:1")
        of_bob = (await client.hear())["welcome"]["resume"]
    await eventually(lambda: turnstile.inside == [], "bob left")
    refused: tuple[tuple[dict[str, Any], str], ...] = (
        ({"types": ["bogus"]}, "INVALID_INPUT"),
        ({"resume": of_bob}, "TOKEN_REFUSED"),
    )
    for more, code in refused:
        async with raw_client(town.urls[0]) as client:
            await client.say(login="ticket:ann:1", **more)
            assert (await client.hear())["bye"]["code"] == code
        assert turnstile.inside == []
    async with raw_client(town.urls[0]) as client:
        await client.say(login="ticket:ann:1")
        assert "welcome" in await client.hear()


async def test_logins_that_find_the_gate_full_behind_the_turnstile_give_their_places_back(
    town: GateTown,
) -> None:
    await town.entity()
    turnstile = Turnstile()
    turnstile.is_open.clear()
    gate = await town.gate(turnstile, capacity=1)
    async with raw_client(town.urls[0]) as ann, raw_client(town.urls[0]) as bob:
        for user, client in (("ann", ann), ("bob", bob)):
            await client.say(login=f"ticket:{user}:1")
        await eventually(lambda: turnstile.waiting == 2, "both saw that there is room")
        turnstile.is_open.set()
        heard = [await ann.hear(), await bob.hear()]
        assert sum("welcome" in one for one in heard) == 1
        assert turnstile.inside == list(gate.sessions)
        assert [reason for _, reason in turnstile.left] == ["failed"]


async def test_a_resume_that_asks_for_too_much_leaves_the_session_its_place(town: GateTown) -> None:
    await town.entity()
    turnstile = Turnstile()
    await town.gate(turnstile)
    async with raw_client(town.urls[0]) as first, raw_client(town.urls[0]) as second:
        await first.say(login="ticket:ann:1")
        welcome = (await first.hear())["welcome"]
        await second.say(login="", resume=welcome["resume"], types=["bogus"])
        assert (await second.hear())["bye"]["code"] == "INVALID_INPUT"
        await first.say(seq=1, body=1)
        assert (await first.hear())["seq"] == 1
        assert turnstile.inside == ["ann"]
    await eventually(lambda: turnstile.inside == [], "the place is given back")


async def test_a_resume_into_an_open_session_needs_no_ticket_and_keeps_the_place(town: GateTown) -> None:
    await town.entity()
    turnstile = Turnstile()
    await town.gate(turnstile)
    async with raw_client(town.urls[0]) as first, raw_client(town.urls[0]) as second:
        await first.say(login="ticket:ann:1")
        welcome = (await first.hear())["welcome"]
        await second.say(login="", resume=welcome["resume"])
        assert (await second.hear())["welcome"]["user"] == "ann"
        assert (await first.hear())["bye"]["code"] == "TAKEN_OVER"
        assert (turnstile.inside, turnstile.left) == (["ann"], [])
    await eventually(lambda: turnstile.inside == [], "the place is given back once")
    async with raw_client(town.urls[0]) as late:
        await late.say(login="", resume=welcome["resume"])
        assert (await late.hear())["bye"]["code"] == "TICKET_REFUSED"
    async with raw_client(town.urls[0]) as late:
        await late.say(login="ticket:ann:2", resume=welcome["resume"])
        assert (await late.hear())["welcome"]["user"] == "ann"


@pytest.mark.parametrize("over", ["ws", "tcp"])
async def test_a_fresh_ticket_resumes_at_another_gate_of_the_world_in_order_and_once(
    town: GateTown, over: str
) -> None:
    entity = await town.entity()
    doors = [Turnstile(), Turnstile()]
    first, second = [await town.gate(door) for door in doors]
    urls = town.urls if over == "ws" else town.tcp_urls
    async with roost.play(",".join(urls), fresh_tickets("ann")) as player:
        await player.request(0)
        entity.behave = _silent_about(entity, {3, 4})  # executed, and the answers never come
        asked = [await player.send(number) for number in range(1, 6)]
        await answers(*asked[:2])
        await eventually(lambda: town.map.row().last == 6, "all are executed")
        entity.behave = None
        first.sessions["ann"].port.cut("like a cable")
        asked += [await player.send(number) for number in range(6, 40)]
        assert await answers(*asked[2:]) == list(range(3, 40))
        assert player.connects == 2
        assert [door.inside for door in doors] == [[], ["ann"]]
        assert second.sessions["ann"].session_id > entity.logins[0][1]
    assert town.map.row().log == list(range(40))
    assert entity.logins[-1][2]["resume"] is True
    assert doors[0].left == [("ann", "dropped")]


async def test_a_session_that_is_still_open_at_the_first_gate_ends_when_a_ticket_resumes_it_elsewhere(
    town: GateTown,
) -> None:
    """The first gate has not noticed yet that its client is gone; its place goes back, what it had in flight
    is executed once, and nothing that it still holds is executed behind the second gate's messages."""
    entity = await town.entity()
    doors = [Turnstile(), Turnstile()]
    first, second = [await town.gate(door) for door in doors]
    async with raw_client(town.urls[0]) as old, raw_client(town.urls[1]) as new:
        await old.say(login="ticket:ann:1")
        welcome = (await old.hear())["welcome"]
        entity.behave = _silent_about(entity, {1})
        for number in (1, 2, 3):
            await old.say(id=number, seq=number, body=number)
        await eventually(lambda: town.map.row().last == 3, "all are executed, and nobody has an answer")
        entity.behave = None
        await new.say(login="ticket:ann:2", resume=welcome["resume"])
        assert (await new.hear())["welcome"]["types"]["entity"]["lastSeq"] == 3
        assert (await old.hear())["bye"]["code"] == "TAKEN_OVER"
        for number in (1, 2, 3, 4):
            await new.say(id=number, seq=number, body=number)
        said = [await new.hear() for _ in range(4)]
        assert [(one["seq"], one["result"]["done"]) for one in said] == [(n, n) for n in (1, 2, 3, 4)]
        assert [door.inside for door in doors] == [[], ["ann"]]
        assert list(second.sessions) == ["ann"]
        assert not first.sessions
    assert town.map.row().log == [1, 2, 3, 4]


async def test_a_resume_token_alone_opens_no_other_gate_of_the_world(town: GateTown) -> None:
    """Its place is held by the first gate; the second asks for a ticket, and costs nobody anything."""
    await town.entity()
    doors = [Turnstile(), Turnstile()]
    for door in doors:
        await town.gate(door)
    async with raw_client(town.urls[0]) as here, raw_client(town.urls[1]) as there:
        await here.say(login="ticket:ann:1")
        welcome = (await here.hear())["welcome"]
        await there.say(login="", resume=welcome["resume"])
        assert (await there.hear())["bye"]["code"] == "TICKET_REFUSED"
        await here.say(body=1)
        assert (await here.hear())["seq"] == 1
    assert doors[1].inside == []


def fresh_tickets(user: str) -> Callable[[], Awaitable[str]]:
    """A player's way to a waiting room that has a ticket whenever it is asked."""
    numbers = itertools.count(1)

    async def ticket() -> str:
        return f"ticket:{user}:{next(numbers)}"

    return ticket
