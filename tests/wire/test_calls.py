"""Calls over a real socket: answers, refusals, deadlines, order, pushes."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from roost.core.errors import InvalidInput, NotSent, OutcomeUnknown
from roost.testing.waiting import eventually
from roost.wire.client import Peer
from roost.wire.codes import Code
from roost.wire.connection import Call
from roost.wire.frame import Frame
from roost.wire.limits import Limits
from roost.wire.server import Answer, Connection, WireServer, refusal
from tests.wire.serving import BUDGET_MS, ECHO, FAIL, WAIT, Town, talking, town

SHORT_MS = 200
"""Over before an answer comes, but enough for a busy machine to send the call on a line that is up."""


async def test_a_call_is_answered_with_its_payload_and_epoch() -> None:
    async with talking() as (_, peer):
        answer = await peer.call(1, ECHO, b"hello", epoch=2**63, budget_ms=BUDGET_MS)
        assert answer == Answer(b"hello", Code.OK, 2**63)


async def test_sequence_oldest_and_what_is_left_of_the_budget_travel() -> None:
    seen: list[Call] = []

    def look(call: Call) -> Answer:
        seen.append(call)
        return Answer()

    async with talking() as (one, peer):
        one.server.register(2, 7, look)
        await peer.call(2, 7, b"", sequence=9, oldest=8, budget_ms=1234, traceparent=b"00-ab-cd-01")
        await peer.call(2, 7, b"", budget_ms=0)
    call, bare = seen
    assert (call.sequence, call.oldest, call.traceparent) == (9, 8, b"00-ab-cd-01")
    assert 0 < call.budget_ms <= 1234
    assert call.peer.peer_role == "gate"
    assert (bare.sequence, bare.oldest, bare.traceparent, bare.budget_ms) == (None, None, None, 0)


async def test_a_thousand_pipelined_calls_are_answered_in_the_order_in_which_they_were_made() -> None:
    order: list[int] = []
    done = asyncio.Event()

    def note(answer: Answer | Exception) -> None:
        assert isinstance(answer, Answer)
        order.append(int(answer.payload))
        if len(order) == 1000:
            done.set()

    async with talking(Limits(max_in_flight=64)) as (_, peer):
        for number in range(1000):
            peer.send(1, ECHO, str(number).encode(), budget_ms=BUDGET_MS, done=note)
        assert order == [], "never inside send"
        await done.wait()
    assert order == list(range(1000))


async def test_a_thousand_calls_that_wait_are_all_answered_and_never_more_at_work_than_allowed() -> None:
    async with talking(Limits(max_in_flight=100)) as (one, peer):
        await peer.connect()
        calls = [asyncio.ensure_future(peer.call(1, WAIT, b"%d" % n, budget_ms=0)) for n in range(1000)]
        await eventually(lambda: one.waiting == 100, "the first hundred at work")
        assert one.server.in_flight == 100
        one.release.set()
        answers = await asyncio.gather(*calls)
    assert [int(answer.payload) for answer in answers] == list(range(1000))


async def test_a_slow_call_delays_no_other() -> None:
    async with talking() as (one, peer):
        slow = asyncio.ensure_future(peer.call(1, WAIT, b"slow", budget_ms=BUDGET_MS))
        await eventually(lambda: one.waiting == 1, "the slow call at work")
        assert (await peer.call(1, ECHO, b"quick", budget_ms=BUDGET_MS)).payload == b"quick"
        assert not slow.done()
        one.release.set()
        assert (await slow).payload == b"slow"


async def test_an_unknown_method_is_refused_and_the_connection_lives() -> None:
    async with talking() as (_, peer):
        answer = await peer.call(1, 99, b"", budget_ms=BUDGET_MS)
        assert answer.code is Code.UNKNOWN_METHOD
        assert answer.message == "no method 99 of service 1 here"
        assert (await peer.call(1, ECHO, b"on", budget_ms=BUDGET_MS)).payload == b"on"


async def test_a_handler_that_raises_answers_failed_and_says_nothing_of_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with talking() as (one, peer):
        answer = await peer.call(1, FAIL, b"", budget_ms=BUDGET_MS)
        assert answer.code is Code.FAILED
        assert "business" not in answer.message
        assert one.server.counts["failed"] == 1
        assert (await peer.call(1, ECHO, b"on", budget_ms=BUDGET_MS)).payload == b"on"
    assert "a handler failed" in caplog.text


async def test_a_refusal_of_the_application_is_a_value_with_its_fields() -> None:
    async with talking() as (one, peer):
        one.server.register(
            1,
            50,
            lambda _: refusal(Code.MOVED, "lives elsewhere", retry_after_ms=30, epoch=5, serverId="502"),
        )
        answer = await peer.call(1, 50, b"", budget_ms=BUDGET_MS)
    assert (answer.code, answer.message, answer.retry_after_ms) == (Code.MOVED, "lives elsewhere", 30)
    assert answer.epoch == 5
    assert b"serverId\xa3502" in answer.payload


async def test_a_handler_that_answers_with_nonsense_has_failed() -> None:
    async def nonsense(call: Call) -> Answer:
        return b"not an answer"  # type: ignore[return-value]

    async with talking() as (one, peer):
        one.server.register(1, 51, nonsense)
        one.server.register(1, 52, nonsense, in_task=True)
        for method in (51, 52):
            assert (await peer.call(1, method, b"", budget_ms=BUDGET_MS)).code is Code.FAILED


async def test_a_handler_that_awaits_what_was_cancelled_has_failed() -> None:
    async def unlucky(call: Call) -> Answer:
        ended: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        ended.cancel()
        return await ended

    async with talking() as (one, peer):
        one.server.register(1, 56, unlucky)
        one.server.register(1, 57, unlucky, in_task=True)
        for method in (56, 57):
            assert (await peer.call(1, method, b"", budget_ms=BUDGET_MS)).code is Code.FAILED
        assert (await peer.call(1, ECHO, b"on", budget_ms=BUDGET_MS)).payload == b"on"


async def test_a_handler_in_a_task_may_use_what_needs_one() -> None:
    async def careful(call: Call) -> Answer:
        async with asyncio.timeout(5):
            return Answer(b"in time")

    async with talking() as (one, peer):
        one.server.register(1, 53, careful, in_task=True)
        assert (await peer.call(1, 53, b"", budget_ms=BUDGET_MS)).payload == b"in time"


async def test_a_handler_that_never_ends_is_ended_with_the_budget() -> None:
    async with talking() as (one, peer):
        await peer.connect()
        with pytest.raises(OutcomeUnknown):
            await peer.call(1, WAIT, b"", budget_ms=SHORT_MS)
        await eventually(lambda: one.server.in_flight == 0, "the handler's end")
        assert (one.cancelled, one.executed) == (1, 0)
        assert one.server.counts["late"] == 1
        assert (await peer.call(1, ECHO, b"on", budget_ms=BUDGET_MS)).payload == b"on"


async def test_a_handler_that_will_not_end_counts_as_at_work_until_it_does() -> None:
    release = asyncio.Event()

    async def stubborn(call: Call) -> Answer:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                pass
        return Answer(b"too late")

    async with talking(Limits(max_in_flight=1)) as (one, peer):
        one.server.register(1, 54, stubborn)
        await peer.connect()
        with pytest.raises(OutcomeUnknown):
            await peer.call(1, 54, b"", budget_ms=SHORT_MS)
        await eventually(lambda: one.server.counts["late"] == 1, "the deadline")
        with pytest.raises(NotSent, match="OVERLOADED") as refused:
            await peer.call(1, ECHO, b"", budget_ms=BUDGET_MS)
        assert refused.value.retry_after_s > 0
        release.set()
        await eventually(lambda: one.server.in_flight == 0, "the handler's end")
        assert (await peer.call(1, ECHO, b"on", budget_ms=BUDGET_MS)).payload == b"on"


async def test_a_server_full_of_work_refuses_without_executing() -> None:
    limits = Limits(max_in_flight_total=2)
    async with talking(limits) as (one, peer):
        other = one.peer()
        calls = [asyncio.ensure_future(p.call(1, WAIT, b"", budget_ms=BUDGET_MS)) for p in (peer, other)]
        await eventually(lambda: one.server.in_flight == 2, "two at work")
        for asked in (peer, other):
            with pytest.raises(NotSent, match="OVERLOADED: too many calls are in flight"):
                await asked.call(1, WAIT, b"", budget_ms=BUDGET_MS)
        one.release.set()
        await asyncio.gather(*calls)
        assert one.executed == 2
        await other.close()


async def test_a_peer_that_cannot_take_more_says_so_at_once() -> None:
    async with talking(Limits(max_in_flight=1, max_waiting=1)) as (_, peer):
        first = [asyncio.ensure_future(peer.call(1, WAIT, b"", budget_ms=BUDGET_MS)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(NotSent, match="too many calls wait"):
            await peer.call(1, WAIT, b"", budget_ms=BUDGET_MS)
        await peer.close()
        ends = await asyncio.gather(*first, return_exceptions=True)
        assert all(isinstance(end, (NotSent, OutcomeUnknown)) for end in ends)


async def test_a_payload_that_is_too_large_does_not_leave() -> None:
    async with talking(Limits(max_frame_bytes=1000)) as (one, peer):
        answer = await peer.call(1, ECHO, bytes(1000), budget_ms=BUDGET_MS)
        assert answer.code is Code.TOO_LARGE
        assert (await peer.call(1, ECHO, bytes(972), budget_ms=BUDGET_MS)).payload == bytes(972)
        assert one.server.connections


async def test_the_smaller_of_both_limits_holds() -> None:
    async with town(Limits(max_frame_bytes=600)) as one:
        peer = one.peer(limits=Limits())
        await peer.connect()
        answer = await peer.call(1, ECHO, bytes(700), budget_ms=BUDGET_MS)
        assert answer.code is Code.TOO_LARGE
        await peer.close()


async def test_an_answer_that_is_too_large_for_the_caller_is_an_error_for_it_alone() -> None:
    async with town() as one:
        one.server.register(1, 55, lambda _: Answer(bytes(5000)))
        peer = one.peer(limits=Limits(max_frame_bytes=1000))
        answer = await peer.call(1, 55, b"", budget_ms=BUDGET_MS)
        assert answer.code is Code.TOO_LARGE
        assert (await peer.call(1, ECHO, b"on", budget_ms=BUDGET_MS)).payload == b"on"
        await peer.close()


async def test_pushes_arrive_in_order_and_end_with_the_connection() -> None:
    pushed: list[Frame] = []
    connections: list[Connection] = []
    closed: list[Connection] = []

    async with town(on_open=connections.append) as one:
        peer = one.peer(on_push=pushed.append)
        await peer.connect()
        await eventually(lambda: bool(connections), "the connection")
        (connection,) = connections
        connection.on_close(closed.append)
        for number in range(100):
            assert connection.push(1, 1, b"%d" % number, epoch=3)
        await eventually(lambda: len(pushed) == 100, "the pushes")
        assert [int(frame.payload) for frame in pushed] == list(range(100))
        assert {(frame.service, frame.method, frame.epoch) for frame in pushed} == {(1, 1, 3)}
        assert not connection.push(1, 1, bytes(2 * 1024 * 1024)), "larger than a frame may be"
        await peer.close()
        await eventually(lambda: closed == [connection], "the end")
        assert not connection.push(1, 1, b"")


async def test_a_callback_that_fails_keeps_no_other_from_its_answer(caplog: pytest.LogCaptureFixture) -> None:
    def bad(answer: object) -> None:
        raise RuntimeError("a caller's fault")

    async with talking(on_push=bad) as (_, peer):
        peer.send(1, ECHO, b"", budget_ms=BUDGET_MS, done=bad)
        assert (await peer.call(1, ECHO, b"on", budget_ms=BUDGET_MS)).payload == b"on"
    assert "a callback failed" in caplog.text


async def test_a_caller_that_goes_away_leaves_the_rest_in_peace() -> None:
    async with talking() as (one, peer):
        call = asyncio.ensure_future(peer.call(1, WAIT, b"", budget_ms=BUDGET_MS))
        await eventually(lambda: one.waiting == 1, "the call at work")
        call.cancel()
        assert (await peer.call(1, ECHO, b"on", budget_ms=BUDGET_MS)).payload == b"on"
        one.release.set()
        await eventually(lambda: one.executed == 1, "the handler's end")


async def test_two_peers_and_a_server_share_a_process() -> None:
    async with town() as one, town() as another:
        peers: list[tuple[Town, Peer]] = [(one, one.peer()), (another, another.peer())]
        for number, (_, peer) in enumerate(peers):
            assert (await peer.call(1, ECHO, b"%d" % number, budget_ms=BUDGET_MS)).payload == b"%d" % number
            await peer.close()


async def test_handlers_are_registered_once_and_not_for_the_connections_own_service() -> None:
    server = WireServer(secret=None)
    server.register(1, 1, lambda _: Answer())
    for service, method in ((1, 1), (0, 1), (65536, 1), (1, 65536)):
        with pytest.raises(InvalidInput):
            server.register(service, method, lambda _: Answer())


async def test_without_a_secret_no_handshake_is_asked_for() -> None:
    async with town(secret=None) as one:
        peer = one.peer(secret=None, limits=replace(one.limits, handshake_s=2.0))
        assert (await peer.call(1, ECHO, b"player", budget_ms=BUDGET_MS)).payload == b"player"
        await peer.close()


async def test_a_call_may_be_answered_after_its_handler_returned() -> None:
    calls: list[Call] = []

    async with talking() as (one, peer):
        one.server.register(1, 70, calls.append)
        asked = asyncio.ensure_future(peer.call(1, 70, b"", budget_ms=BUDGET_MS))
        await eventually(lambda: bool(calls), "the call")
        assert one.server.in_flight == 1
        calls[0].reply(Answer(b"later", epoch=4))
        calls[0].reply(Answer(b"twice"))
        assert await asked == Answer(b"later", Code.OK, 4)
        assert one.server.in_flight == 0
        assert (await peer.call(1, ECHO, b"on", budget_ms=BUDGET_MS)).payload == b"on"


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_call_may_be_answered_before_its_handler_returned(is_async: bool) -> None:
    def early(call: Call) -> None:
        call.reply(Answer(b"early"))
        call.reply(Answer(b"twice"))

    async def early_and_async(call: Call) -> None:
        early(call)

    async with talking() as (one, peer):
        one.server.register(1, 71, early_and_async if is_async else early)
        for _ in range(2):
            assert (await peer.call(1, 71, b"", budget_ms=BUDGET_MS)).payload == b"early"
        assert one.server.in_flight == 0


async def test_an_answer_that_never_comes_is_late_and_one_that_comes_after_it_is_dropped() -> None:
    calls: list[Call] = []

    async with talking() as (one, peer):
        one.server.register(1, 72, calls.append)
        await peer.connect()
        with pytest.raises(OutcomeUnknown):
            await peer.call(1, 72, b"", budget_ms=SHORT_MS)
        await eventually(lambda: one.server.in_flight == 0, "the deadline")
        calls[0].reply(Answer(b"too late"))
        assert (await peer.call(1, ECHO, b"on", budget_ms=BUDGET_MS)).payload == b"on"


async def test_a_promise_to_somebody_who_is_gone_is_over() -> None:
    calls: list[Call] = []

    async with talking() as (one, peer):
        one.server.register(1, 73, calls.append)
        asked = asyncio.ensure_future(peer.call(1, 73, b"", budget_ms=0))
        await eventually(lambda: bool(calls), "the call")
        await peer.close()
        with pytest.raises(OutcomeUnknown):
            await asked
        await eventually(lambda: one.server.in_flight == 0, "the end")
        calls[0].reply(Answer(b"to nobody"))
