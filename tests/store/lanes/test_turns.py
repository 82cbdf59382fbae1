"""Commands that come together: executed as they come, unless something of their lane waits already."""

from __future__ import annotations

import asyncio

from roost.lanes.commands import Halt, Method, New, Reason, Side, decode_outcome
from roost.wire.answer import Answer
from tests.store.lanes.hall import DIRECT_COMMANDS, Hall


def buy(number: int, symbol: str = "ACME") -> New:
    return New("ann", number, 0, symbol, Side.BUY, 10, 5)


async def test_what_comes_together_is_one_entry_of_its_shard(hall: Hall) -> None:
    server = await hall.started("first")

    requests = [server.send(Method.NEW, buy(n)) for n in range(1, DIRECT_COMMANDS + 1)]
    outcomes = [decode_outcome((await server.answer_to(request)).payload) for request in requests]

    assert [outcome.seq for outcome in outcomes] == list(range(2, DIRECT_COMMANDS + 2))
    taken_over, entry = await hall.entries(outcomes[0].shard)
    assert (taken_over.last_seq, entry.seq, entry.last_seq) == (1, 2, DIRECT_COMMANDS + 1)
    assert sum(worker.executed for worker in server.host.executor.stats().workers) == DIRECT_COMMANDS


async def test_g13_a_command_waits_behind_what_waits_in_its_lane(hall: Hall) -> None:
    server = await hall.started("first")
    halted: list[Answer] = []

    assert server.host.command(Method.HALT, Halt("ACME", "by hand"), halted.append) is None
    request = server.send(Method.NEW, buy(1))
    outcome = decode_outcome((await server.answer_to(request)).payload)

    assert outcome.reason == Reason.HALTED
    assert decode_outcome(halted[0].payload).seq < outcome.seq
    assert server.shard_of("ACME").tally.violations == 0


async def test_g13_more_than_a_turn_takes_run_in_the_order_of_sending(hall: Hall) -> None:
    server = await hall.started("first")

    requests = [server.send(Method.NEW, buy(n)) for n in range(1, 5 * DIRECT_COMMANDS)]
    outcomes = [decode_outcome((await server.answer_to(request)).payload) for request in requests]

    seqs = [outcome.seq for outcome in outcomes]
    assert seqs == sorted(set(seqs))
    assert server.shard_of("ACME").tally.violations == 0


async def test_what_comes_while_another_shards_entry_is_under_way_is_sent_after_it(hall: Hall) -> None:
    """Also where the shards of that entry have nothing more to send."""
    server = await hall.started("first")
    first, second = "ACME", "GLOBEX"
    assert server.shard_of(first) is not server.shard_of(second)

    requests = [server.send(Method.NEW, buy(1, first))]
    for _ in range(3):  # its call is made, and the store has not answered
        await asyncio.sleep(0)
    requests.append(server.send(Method.NEW, buy(2, second)))

    assert [(await server.answer_to(request)).code for request in requests] == [0, 0]
