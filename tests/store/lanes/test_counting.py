"""What the metrics page says of commands: received = answered + rejected + forwarded + under way (G14)."""

from __future__ import annotations

import time
from collections import Counter
from typing import cast

import pytest

from roost.lanes.commands import SERVICE, Cancel, Method, New, Side, encode
from roost.lanes.outcomes import NotDone
from roost.lanes.work import Work, unfinished
from roost.testing import eventually
from roost.wire.answer import Answer
from roost.wire.connection import Connection
from roost.wire.frame import Frame
from tests.store.lanes.hall import Hall, Server


def reasons(server: Server) -> Counter[str]:
    return server.host.intake.totals()


def is_balanced(server: Server) -> bool:
    received, became = server.balance()
    return received == became > 0


def new(number: int, symbol: str = "ACME") -> New:
    return New("ann", number, 0, symbol, Side.BUY, 10, 5)


async def test_g14_each_refusal_is_counted_by_its_reason(hall: Hall) -> None:
    server = await hall.started("first", queue_limit=10)
    number = (await server.new("ann", 1, "ACME")).shard
    requests = [server.send(Method.NEW, new(n)) for n in range(2, 40)]
    assert is_balanced(server), "while they wait"
    for request in requests:
        await server.answer_to(request)
    full = server.host.routes.tallies[number].refused["QUEUE_FULL"]
    assert full > 0

    await server.ask(Method.NEW, b"nonsense")
    await server.ask(Method.CANCEL, Cancel("ann", 100, 0, 17))
    hall.time.skew_ms = -60_000
    await server.ask(Method.NEW, new(101))
    hall.time.skew_ms = 0
    server.host.takes_new = lambda: False
    await server.ask(Method.NEW, new(102))

    expected = {"QUEUE_FULL": full, "BAD_REQUEST": 1, "UNKNOWN_ORDER": 1, "CLOCK_BEHIND": 1, "OUTBOX_FULL": 1}
    assert reasons(server) == Counter(expected)
    assert is_balanced(server)


async def test_g14_a_command_that_is_looked_up_counts_once_when_it_is_answered(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await hall.started("first")
    answer, balances = server.trader.reply_later, list[tuple[int, int]]()

    def look_and_answer(request: int, given: Answer) -> None:
        balances.append(server.balance())
        answer(request, given)

    monkeypatch.setattr(server.trader, "reply_later", look_and_answer)
    await server.ask(Method.CANCEL, Cancel("ann", 1, 0, 17))

    assert balances == [(1, 1)]


async def test_g14_a_command_whose_time_ran_out_in_the_queue_is_counted(hall: Hall) -> None:
    server = await hall.started("first")
    await server.new("ann", 1, "ACME")
    requests = send_late(server, 20)
    for request in requests:
        await server.answer_to(request)

    assert reasons(server)["EXPIRED"] > 0
    assert is_balanced(server)


def send_late(server: Server, count: int) -> list[int]:
    """Commands with a budget of 1 ms: those behind the ones that are executed at once wait for longer."""
    numbers = range(1_000, 1_000 + count)
    frames = [Frame(0, SERVICE, Method.NEW, 0, 1, n, 0, encode(new(n))) for n in numbers]
    server.host.take(cast(Connection, server.trader), frames)
    time.sleep(0.01)
    return list(numbers)


async def test_g14_what_a_closing_server_drops_is_counted(hall: Hall) -> None:
    server = await hall.started("first")
    await server.new("ann", 1, "ACME")
    route = server.host.routes.known["ACME"]
    work = Work(route, Method.NEW, new(2), b"", 5, server.trader, server.trader.next_request())

    unfinished("ACME", work, NotDone.DROPPED)

    assert reasons(server) == Counter(CLOSING=1)


async def test_a_command_that_is_sent_on_is_not_refused(hall: Hall) -> None:
    first = await hall.started("first", wanted=[1])
    await hall.started("second", wanted=[2])
    await first.ownership.step()
    there = next(name for n in range(200) if first.dispatch.place(name := f"S{n}")[0] == 2)
    nobody = next(name for n in range(200) if first.dispatch.place(name := f"S{n}")[0] == 3)

    await first.new("ann", 1, there)
    await first.ask(Method.NEW, new(2, nobody))

    assert (first.host.intake.forwarded, reasons(first)) == (1, Counter(NOT_OWNER=1))
    assert is_balanced(first)


async def test_g14_what_a_lost_shard_leaves_unanswered_is_counted(hall: Hall) -> None:
    server = await hall.started("first")
    await server.new("ann", 1, "ACME")
    server.faults.append("request hangs")
    requests = [server.send(Method.NEW, new(n)) for n in (2, 3)]
    shard = server.shard_of("ACME")
    await eventually(
        lambda: shard.commits.building is None and not shard.commits.is_idle, "an entry on its way"
    )
    assert is_balanced(server)

    shard.commits.end("for the test")
    for request in requests:
        await server.answer_to(request)

    assert reasons(server) == Counter(OUTCOME_UNKNOWN=2)
    assert is_balanced(server)


async def test_g14_behind_a_log_that_stands_still_no_more_is_executed_than_fits(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roost.lanes.shard.UNLOGGED_LIMIT", 10)
    server = await hall.started("first")
    order = await server.new("ann", 1, "ACME")
    server.faults.append("request waits")
    under_way = server.send(Method.NEW, new(2))
    commits = server.shard_of("ACME").commits
    await eventually(lambda: commits.building is None and not commits.is_idle, "an entry on its way")

    executed = [server.send(Method.NEW, new(n)) for n in range(3, 12)]
    late = await server.ask(Method.NEW, new(12))
    cancel = server.send(Method.CANCEL, Cancel("ann", 13, 0, order.order_id, "ACME"))
    full = await server.ask(Method.CANCEL, Cancel("ann", 14, 0, order.order_id, "ACME"))

    assert [late.message, full.message] == ["too many commands wait for the log"] * 2
    assert late.retry_after_ms > 0
    assert is_balanced(server)
    server.logs.appends.go_on()
    for request in (under_way, *executed, cancel):
        assert not (await server.answer_to(request)).code, "whatever was executed is answered"
    assert reasons(server) == Counter(QUEUE_FULL=2)
    assert is_balanced(server)


async def test_counts_stay_when_a_shard_goes_and_comes_back(hall: Hall) -> None:
    server = await hall.started("first")
    order = await server.new("ann", 1, "ACME")
    server.shard_of("ACME").tally.violations += 1
    server.wanted = ()
    await server.ownership.step()
    assert order.shard not in server.ownership.owned

    server.wanted = range(16)
    for _ in range(3):
        await server.ownership.step()
    await server.new("ann", 2, "ACME")

    tally = server.shard_of("ACME").tally
    assert (tally.violations, tally.answered) == (1, 2)
    assert is_balanced(server)
