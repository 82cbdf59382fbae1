"""The log holds digests of the state: a replay that comes to another one says so."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from roost.lanes.commands import Method, New, Turn
from roost.servers.orders import keeping
from roost.servers.orders.engine import Engine
from roost.servers.orders.trading import Result
from tests.store.lanes.hall import Hall, Server


class Forgetful(Engine):
    """Not deterministic: it passes over one number."""

    def apply(self, turn: Turn, seq: int, method: int, lane: int, order_id: int, command: Any) -> Result:
        if isinstance(command, New) and command.client_seq == 3:
            raise RuntimeError("for the test")
        return super().apply(turn, seq, method, lane, order_id, command)


async def trade(server: Server, first: int, last: int) -> None:
    for number in range(first, last + 1):
        await server.new("ann", number, "ACME")


async def checks(hall: Hall, server: Server) -> list[int]:
    """The numbers under which the log of the symbol holds a digest."""
    return [
        seq
        for entry in await hall.entries(server.shard_of("ACME").number)
        for seq, command in enumerate(entry.batch.commands, entry.seq)
        if command[0] == Method.CHECK
    ]


async def test_the_state_is_put_into_the_log_halfway_to_the_next_snapshot(hall: Hall) -> None:
    server = await hall.started("first", snapshot_commands=10)
    await trade(server, 1, 3)
    await server.checking.step()
    assert await checks(hall, server) == []

    await trade(server, 4, 6)
    for _ in range(3):
        await server.checking.step()
    await server.quiet()
    assert await checks(hall, server) == [8], "once, behind the takeover and six commands"

    await server.snapshot()
    await trade(server, 7, 12)
    await server.checking.step()
    await server.quiet()
    assert await checks(hall, server) == [8, 15]


async def test_a_replay_comes_to_the_state_that_the_log_names(hall: Hall) -> None:
    first = await hall.started("first", snapshot_commands=10)
    await trade(first, 1, 6)
    await first.checking.step()
    await trade(first, 7, 8)
    digest = first.engine_of("ACME").digest()
    first.kill()

    second = await hall.takes_over("second")

    assert len(await checks(hall, second)) == 1
    assert second.engine_of("ACME").digest() == digest
    assert second.keeping.mismatches == 0


async def test_a_replay_that_comes_to_another_state_is_said(
    hall: Hall, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It goes on: nobody else would come to the state that was lost."""
    first = await hall.started("first", snapshot_commands=10)
    await trade(first, 1, 6)
    await first.checking.step()
    await first.quiet()
    first.kill()
    monkeypatch.setattr(keeping, "Engine", Forgetful)

    with caplog.at_level(logging.ERROR, "roost.lanes"):
        second = await hall.takes_over("second")

    assert second.keeping.mismatches == 1
    assert second.keeping.status(second.shard_of("ACME"))["mismatches"] == 1
    assert [record.message for record in caplog.records].count("a replay came to another state") == 1
    assert not (await second.new("ann", 7, "ACME")).reason
