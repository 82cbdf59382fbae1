"""An owner killed at each named point: what was answered stays, nothing is carried out twice (G16)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from roost.lanes import snapshots
from roost.lanes.commands import Method, New, Outcome, Side, decode_command
from roost.lanes.scripts import ShardScripts
from roost.store.keys import Keys
from roost.store.scopes import Scope
from roost.store.scripts import Library
from roost.testing import eventually
from tests.store.lanes.hall import Hall, Server

COMMANDS = [New("ann", n, 0, "ACME", Side.BUY if n % 2 else Side.SELL, 10, 1 + n % 3) for n in range(1, 9)]


async def carried_out_once(hall: Hall, server: Server, answered: dict[int, Outcome]) -> None:
    """Every command again: with the answers that were heard, and each of them once in the log."""
    for command in COMMANDS:
        outcome = await server.outcome(Method.NEW, command)
        assert answered.setdefault(command.client_seq, outcome) == outcome, "another answer"
    number = server.shard_of("ACME").number
    first: dict[int, int] = {}
    expected = 1
    for entry in await hall.entries(number):
        assert entry.seq == expected, "a hole in the log"
        expected = entry.last_seq + 1
        for seq, (method, _, _, payload) in enumerate(entry.batch.commands, entry.seq):
            if method == Method.NEW:
                logged = decode_command(method, payload)
                assert isinstance(logged, New)
                first.setdefault(logged.client_seq, seq)
    receipts = {number: outcome.seq for number, outcome in answered.items()}
    assert receipts == first, "a receipt names another command than the first of its number"
    made = [outcome.order_id for outcome in answered.values()]
    assert len(set(made)) == len(made) == len(COMMANDS)
    assert server.keeping.lost_commands == server.keeping.mismatches == 0


async def some_answered(server: Server, count: int) -> dict[int, Outcome]:
    return {one.client_seq: await server.outcome(Method.NEW, one) for one in COMMANDS[:count]}


async def all_executed(server: Server, after: int) -> None:
    shard = server.shard_of("ACME")
    await eventually(lambda: shard.seq == 1 + len(COMMANDS), "the others are executed")
    assert shard.commits.seq == 1 + after


@pytest.mark.parametrize("point", ["before_append", "after_append"])
async def test_g16_killed_around_the_append_of_a_batch(hall: Hall, point: str) -> None:
    first = await hall.started("first")
    answered = await some_answered(first, 3)
    first.faults.append("request hangs" if point == "before_append" else "answer hangs")
    late = [first.send(Method.NEW, command) for command in COMMANDS[3:]]
    await all_executed(first, after=3)
    if point == "after_append":
        number = first.shard_of("ACME").number

        async def is_there() -> bool:
            return (await hall.entries(number))[-1].last_seq > 4

        await eventually(is_there, "it is in the log")
    first.kill()
    assert not any(first.trader.answers[request] for request in late)

    second = await hall.takes_over("second")

    await carried_out_once(hall, second, answered)


async def test_g16_killed_with_one_batch_under_way_and_the_next_one_building(hall: Hall) -> None:
    first = await hall.started("first")
    answered = await some_answered(first, 2)
    first.faults.append("answer hangs")
    first.send(Method.NEW, COMMANDS[2])
    shard = first.shard_of("ACME")
    await eventually(lambda: shard.seq == 4, "it is under way")
    for command in COMMANDS[3:]:
        first.send(Method.NEW, command)
    await eventually(lambda: shard.commits.building is not None, "the next one builds")
    first.kill()

    second = await hall.takes_over("second")

    await carried_out_once(hall, second, answered)


class DyingScripts:
    """Those of a shard, whose owner dies after so many calls of a snapshot."""

    calls_left = 0

    def __init__(self, library: Library, keys: Keys, scope: Scope) -> None:
        self._save = ShardScripts(library, keys, scope).snapshot

    async def snapshot(self, **named: Any) -> Any:
        DyingScripts.calls_left -= 1
        if DyingScripts.calls_left < 0:
            await asyncio.get_running_loop().create_future()
        return await self._save(**named)


async def test_g16_killed_between_two_calls_of_a_snapshot(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its parts are staged in part: nobody sees them, and the next snapshot is whole."""
    monkeypatch.setattr(snapshots, "MAX_CALL_BYTES", 1)
    monkeypatch.setattr(snapshots, "ShardScripts", DyingScripts)
    monkeypatch.setattr(DyingScripts, "calls_left", 1000)
    first = await hall.started("first", wanted=[hall.table.of("ACME")[0]])
    answered = await some_answered(first, 3)
    await first.snapshot()
    answered |= await some_answered(first, 6)
    monkeypatch.setattr(DyingScripts, "calls_left", 1)
    writing = asyncio.create_task(first.snapshot())
    await eventually(lambda: DyingScripts.calls_left < 0, "the second call")
    first.kill()
    writing.cancel()
    monkeypatch.setattr(DyingScripts, "calls_left", 1000)

    second = await hall.takes_over("second")

    await carried_out_once_from_a_snapshot(hall, second, answered)
    await second.snapshot()
    digest = second.engine_of("ACME").digest()
    second.kill()
    third = await hall.takes_over("third")
    assert third.engine_of("ACME").digest() == digest
    assert third.keeping.mismatches == 0


async def carried_out_once_from_a_snapshot(hall: Hall, server: Server, answered: dict[int, Outcome]) -> None:
    """The log may be cut: only what was answered can be compared."""
    for command in COMMANDS:
        outcome = await server.outcome(Method.NEW, command)
        assert answered.setdefault(command.client_seq, outcome) == outcome, "another answer"
    assert len({outcome.order_id for outcome in answered.values()}) == len(COMMANDS)
    assert server.keeping.lost_commands == server.keeping.mismatches == 0


@pytest.mark.parametrize("point", ["before_the_marker", "after_the_marker"])
async def test_g16_killed_during_a_takeover(hall: Hall, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    first = await hall.started("first")
    answered = await some_answered(first, 6)
    first.kill()
    with monkeypatch.context() as dying:
        if point == "before_the_marker":
            hall.ledger.hold()
        else:
            dying.setattr(snapshots.Snapshots, "load", _never)
        second = await hall.takes_over("second")
        assert not second.ownership.owned
        await second.ownership.leave()  # it had nothing to hand over
    hall.ledger.release()

    third = await hall.takes_over("third")

    await carried_out_once(hall, third, answered)


async def _never(_: snapshots.Snapshots) -> Any:
    await asyncio.get_running_loop().create_future()
