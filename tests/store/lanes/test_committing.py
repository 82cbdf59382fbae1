"""What a shard answers, it has in its log: whatever happens to the call that appends it."""

from __future__ import annotations

import asyncio

import pytest

from roost.lanes import log as log_module
from roost.lanes.commands import Method, New, Side, State
from roost.store.keys.lanes import shard_keys
from roost.store.scopes import shard as shard_scope
from roost.testing import eventually
from roost.wire.codes import Code
from tests.store.lanes.hall import Fault, Hall, Server

NEW = Method.NEW


def buy(number: int, symbol: str = "ACME") -> New:
    return New("ann", number, 0, symbol, Side.BUY, 10, 5)


async def test_no_answer_before_the_entry_is_in_the_log(hall: Hall) -> None:
    server = await hall.started("first")
    server.faults.append("request hangs")

    request = server.send(NEW, buy(1))
    shard = server.shard_of("ACME")
    await eventually(lambda: not server.faults, "its entry is under way")
    second = server.send(NEW, buy(2))
    await asyncio.sleep(0)  # the turn in which it was executed ends
    assert shard.commits.building is not None

    assert not server.trader.answers[request]
    assert not server.trader.answers[second]
    assert len(await hall.entries(shard.number)) == 1  # the takeover


@pytest.mark.parametrize("fault", ["request lost", "answer lost"])
async def test_a_lost_call_is_repeated_and_executed_once(any_hall: Hall, fault: Fault) -> None:
    server = await any_hall.started("first")
    server.faults.extend([fault, fault])

    outcome = await server.new("ann", 1, "ACME")

    assert outcome.state == State.OPEN
    entries = await any_hall.entries(outcome.shard)
    assert [entry.seq for entry in entries] == [1, outcome.seq]


async def lose_tail(hall: Hall, server: Server, entries: int, number: int | None = None) -> None:
    """The primary forgets the last entries, as a failover to a lagging replica would."""
    number = server.shard_of("ACME").number if number is None else number
    keys = shard_keys(hall.store.keys, shard_scope(number))
    log, tail = keys["log"], keys["tail"]
    read = await hall.store.call("XRANGE", log, "-", "+", key=log)
    kept = (await hall.entries(number))[-entries - 1]
    await hall.store.call("DEL", log, key=log)
    for entry_id, fields in read[:-entries]:
        await hall.store.call("XADD", log, entry_id, *fields, key=log)
    await hall.store.call("SET", tail, f"{kept.epoch}-{kept.seq}:{kept.last_seq}", key=tail)


async def test_g16_a_primary_that_lost_entries_gets_them_again_from_memory(hall: Hall) -> None:
    server = await hall.started("first")
    outcomes = [await server.new("ann", n, "ACME") for n in (1, 2, 3)]
    await lose_tail(hall, server, 2)

    await server.new("ann", 4, "ACME")

    seqs = [entry.seq for entry in await hall.entries(outcomes[0].shard)]
    assert seqs == [1, 2, 3, 4, 5]
    assert server.shard_of("ACME").tally.healed == 1
    server.kill()
    second = await hall.takes_over("second")
    assert [await second.new("ann", n, "ACME") for n in (1, 2, 3)] == outcomes
    assert second.keeping.lost_commands == 0


async def test_g16_more_than_a_log_remembers_comes_back_from_the_state(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "REMEMBERED_BYTES", 1)
    server = await hall.started("first")
    outcomes = [await server.new("ann", n, "ACME") for n in (1, 2, 3)]
    await lose_tail(hall, server, 2)

    told = await server.ask(NEW, buy(4))
    assert told.code == Code.DEADLINE
    await server.ownership.step()
    await server.ownership.step()

    assert [await server.new("ann", n, "ACME") for n in (1, 2, 3)] == outcomes
    server.kill()
    second = await hall.takes_over("second")
    assert [await second.new("ann", n, "ACME") for n in (1, 2, 3)] == outcomes
    assert second.keeping.mismatches == 0


async def test_what_was_executed_and_not_told_reaches_the_database(hall: Hall) -> None:
    server = await hall.started("first")
    await server.new("ann", 1, "ACME")
    await hall.store.call("FLUSHALL")
    server.faults.extend(["request lost"] * 3)
    server.send(NEW, buy(2))
    shard = server.shard_of("ACME")
    await eventually(lambda: shard.seq > shard.commits.seq, "it is executed")

    await server.ownership.step()
    await server.ownership.step()
    again = await server.new("ann", 2, "ACME")
    await server.outbox.flush()

    assert again.order_id in hall.ledger.rows


async def test_a_command_at_which_the_machine_fails_is_answered_and_logged(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await hall.started("first", failures_to_halt=3)
    await server.new("ann", 1, "ACME")
    engine = server.engine_of("ACME")
    apply = engine.apply

    def failing(turn, seq, method, lane, order_id, command):  # type: ignore[no-untyped-def]
        if getattr(command, "symbol", "") == "ACME" and method == NEW:
            raise RuntimeError("for the test")
        return apply(turn, seq, method, lane, order_id, command)

    monkeypatch.setattr(engine, "apply", failing)
    failed = [await server.new("ann", n, "ACME") for n in (2, 3, 4)]

    assert {outcome.reason for outcome in failed} == {"FAILED"}
    await server.quiet()
    assert list(engine.halts()) == ["ACME"]
    assert [outcome.seq for outcome in failed] == [3, 4, 5]
