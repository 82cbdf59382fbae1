"""Servers that drain, end and come back; what their callers are told."""

from __future__ import annotations

import asyncio

import pytest

from roost.core.errors import NotSent, OutcomeUnknown, PortTaken
from roost.testing.waiting import eventually
from roost.wire.client import Peer
from roost.wire.limits import Limits
from roost.wire.server import Answer, WireServer
from tests.wire.serving import BUDGET_MS, ECHO, SECRET, WAIT, Town, listening, talking, town


async def test_a_draining_server_ends_its_work_and_takes_nothing_new() -> None:
    async with talking() as (one, peer):
        working = asyncio.ensure_future(peer.call(1, WAIT, b"mine", budget_ms=BUDGET_MS))
        await eventually(lambda: one.waiting == 1, "the call at work")
        draining = asyncio.ensure_future(one.server.drain())
        await asyncio.sleep(0)
        with pytest.raises(NotSent, match="CLOSING: the server takes no new calls"):
            await peer.call(1, ECHO, b"", budget_ms=BUDGET_MS)
        assert not draining.done()
        one.release.set()
        assert (await working).payload == b"mine"
        await draining
        assert one.server.in_flight == 0


async def test_an_idle_server_is_drained_at_once() -> None:
    async with town() as one:
        await one.server.drain()


async def test_a_close_waits_for_work_for_as_long_as_it_is_told_and_then_ends_it() -> None:
    async with talking() as (one, peer):
        working = asyncio.ensure_future(peer.call(1, WAIT, b"", budget_ms=BUDGET_MS))
        await eventually(lambda: one.waiting == 1, "the call at work")
        await one.server.close(grace_s=0.05)
        assert one.cancelled == 1
        end = (await asyncio.gather(working, return_exceptions=True))[0]
        assert isinstance(end, (OutcomeUnknown, Answer))
        assert not peer.is_open


async def test_answers_that_were_given_before_a_close_arrive() -> None:
    async with talking() as (one, peer):
        working = [asyncio.ensure_future(peer.call(1, WAIT, bytes(50_000), budget_ms=0)) for _ in range(50)]
        await eventually(lambda: one.waiting == 50, "the calls at work")
        closing = asyncio.ensure_future(one.server.close(grace_s=5.0))
        one.release.set()
        assert [len((await call).payload) for call in working] == [50_000] * 50
        await closing


async def test_a_server_that_dies_leaves_its_calls_unknown_and_new_ones_wait_for_the_next() -> None:
    lost: list[str] = []
    opened: list[bool] = []
    async with town() as one:
        peer = one.peer(limits=Limits(wait_s=10.0), on_lost=lost.append, on_open=lambda: opened.append(True))
        written = [asyncio.ensure_future(peer.call(1, WAIT, b"", budget_ms=BUDGET_MS)) for _ in range(3)]
        await eventually(lambda: one.waiting == 3, "the calls at work")
        for connection in list(one.server.connections):
            connection.cut("killed")
        ends = await asyncio.gather(*written, return_exceptions=True)
        assert [type(end) for end in ends] == [OutcomeUnknown] * 3
        assert len(lost) == 1
        await one.server.close(0.0)

        waits = asyncio.ensure_future(peer.call(1, ECHO, b"again", budget_ms=BUDGET_MS))
        await eventually(lambda: "refused" in fault_of(peer), "an attempt in vain")
        assert not waits.done()
        next_life = WireServer(secret=SECRET, role="entity")
        next_life.register(1, ECHO, lambda call: Answer(call.payload))
        await next_life.start(listening(one.port))
        assert (await waits).payload == b"again"
        assert opened == [True, True]
        await peer.close()
        await next_life.close()


def fault_of(peer: Peer) -> str:
    return peer.last_fault.lower()


async def test_a_call_to_nobody_is_not_sent_and_says_why() -> None:
    sock = listening()
    one = Town(Limits(wait_s=0.1))
    one.port = sock.getsockname()[1]  # bound, nobody listens
    peer = one.peer()
    with pytest.raises(NotSent, match="Connection refused"):
        await peer.call(1, ECHO, b"", budget_ms=BUDGET_MS)
    with pytest.raises(NotSent):
        await peer.call(1, ECHO, b"", budget_ms=20)
    await peer.close()
    sock.close()


async def test_a_name_that_is_none_is_not_sent_either() -> None:
    peer = Peer("no such host!.invalid", 1, secret=SECRET, role="gate", limits=Limits(wait_s=0.1))
    with pytest.raises(NotSent):
        await peer.call(1, ECHO, b"", budget_ms=BUDGET_MS)
    await peer.close()


async def test_calls_that_were_not_written_when_the_connection_went_are_not_sent() -> None:
    async with talking() as (one, peer):
        await peer.connect()
        ends: list[object] = []
        peer.send(1, WAIT, b"", budget_ms=BUDGET_MS, done=ends.append)
        await eventually(lambda: one.waiting == 1, "the call at work")
        peer.cut("pulled out")
        peer.send(1, WAIT, b"", budget_ms=BUDGET_MS, done=ends.append)
        await eventually(lambda: len(ends) == 2, "the ends")
        assert [type(end) for end in ends] == [OutcomeUnknown, NotSent]
        assert one.waiting == 1


async def test_a_closed_peer_takes_no_calls() -> None:
    async with talking() as (_, peer):
        await peer.call(1, ECHO, b"", budget_ms=BUDGET_MS)
        await peer.close()
        await peer.close()
        with pytest.raises(NotSent, match="was closed"):
            await peer.call(1, ECHO, b"", budget_ms=BUDGET_MS)
        with pytest.raises(NotSent, match="was closed"):
            await peer.connect()


async def test_a_peer_that_is_closed_while_it_connects_fails_its_calls() -> None:
    sock = listening()
    sock.listen()
    one = Town(Limits())
    one.port = sock.getsockname()[1]
    peer = one.peer()
    call = asyncio.ensure_future(peer.call(1, ECHO, b"", budget_ms=BUDGET_MS))
    await asyncio.sleep(0)
    await peer.close()
    with pytest.raises(NotSent, match="was closed"):
        await call
    sock.close()


async def test_a_port_that_is_taken_is_named() -> None:
    async with town() as one:
        other = WireServer(secret=SECRET, role="entity")
        with pytest.raises(PortTaken, match=str(one.port)):
            await other.start(("127.0.0.1", one.port))
