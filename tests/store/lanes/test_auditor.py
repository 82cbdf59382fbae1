"""The order auditor, which is always on: it counts each command that runs out of order, and nothing else."""

from __future__ import annotations

import logging

import pytest

from roost.lanes.commands import Cancel, Method, New, Side, encode
from roost.lanes.shard import Shard
from roost.servers.orders.metrics import OrderMetrics
from roost.testing import eventually
from tests.store.lanes.hall import Hall, Server


def run(server: Server, shard: Shard, lane: int, number: int, arrival: int) -> None:
    command = New("ann", number, 0, "ACME", Side.BUY, 10, 1)
    request = server.trader.next_request()
    shard.execute(Method.NEW, lane, command, encode(command), arrival, server.trader, request)


def shown(server: Server) -> float:
    page: OrderMetrics = server.page()
    (metric,) = [one for one in page.collect() if one.name == "roost_orders_order_violations"]
    return sum(sample.value for sample in metric.samples if sample.name.endswith("_total"))


async def test_g13_a_command_that_overtakes_another_is_counted_and_said(
    hall: Hall, caplog: pytest.LogCaptureFixture
) -> None:
    server = await hall.started("first")
    shard = server.shard_of("ACME")
    run(server, shard, 3, 1, arrival=1_000)
    run(server, shard, 4, 2, arrival=990)
    run(server, shard, 3, 3, arrival=1_001)
    assert shown(server) == 0, "another lane has an order of its own"

    with caplog.at_level(logging.ERROR, "roost.lanes"):
        run(server, shard, 3, 4, arrival=999)
        run(server, shard, 4, 5, arrival=990)
    shard.commits.send()
    await server.quiet()

    assert shown(server) == 2
    assert server.keeping.status(shard)["violations"] == 2
    said = [record for record in caplog.records if record.message == "a command overtook another"]
    assert [(vars(record)["shard"], vars(record)["lane"]) for record in said] == [
        (shard.number, 3),
        (shard.number, 4),
    ]


async def test_g13_nothing_is_counted_where_masses_of_a_symbol_wait(hall: Hall) -> None:
    """The auditor alone is asked here: where two workers run one lane, it says so."""
    server = await hall.started("first")
    order = await server.new("ann", 1, "ACME")
    requests = []
    for number in range(2, 60):
        command: New | Cancel = New("ann", number, 0, "ACME", Side.BUY, 10, 1)
        if number % 3 == 0:
            command = Cancel("ann", number, 0, order.order_id, "ACME")
        method = Method.CANCEL if number % 3 == 0 else Method.NEW
        requests.append(server.send(method, command))
    await eventually(lambda: all(server.trader.answers[one] for one in requests), "all answers")

    assert shown(server) == 0
