"""An order that its shard keeps no longer is asked for: outbox and database have its last row."""

from __future__ import annotations

import pytest

from roost.db.orders import LOST, OPEN
from roost.lanes.commands import (
    Cancel,
    Method,
    New,
    Outcome,
    Query,
    Reason,
    Side,
    Standing,
    State,
    decode_standing,
)
from roost.lanes.placement import Place
from roost.lanes.selector import Spot
from roost.servers.orders import closed
from roost.servers.orders.order_rows import MAX_READS
from roost.wire.codes import Code
from tests.store.lanes.hall import Hall, HallPlacements, Server
from tests.store.lanes.test_relocation import relocation

KEPT = 4
"""Closed orders that a shard remembers in these tests."""


@pytest.fixture(autouse=True)
def few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closed, "MAX_CLOSED", KEPT)


async def filled_long_ago(server: Server, symbol: str = "ACME") -> Outcome:
    """An order of ann that was filled, and after which more were closed than a shard remembers."""
    order = await server.new("ann", 1, symbol)
    await server.outcome(Method.NEW, New("bob", 1, 0, symbol, Side.SELL, 10, 5))
    for number in range(2, KEPT + 3):
        made = await server.new("cid", 2 * number, symbol)
        await server.cancel("cid", 2 * number + 1, made.order_id, symbol)
    assert server.engine_of(symbol).order(order.order_id) is None
    return order


async def asked(server: Server, query: Query) -> Standing:
    answer = await server.ask(Method.QUERY, query)
    assert not answer.code, answer.message
    return decode_standing(answer.payload)


@pytest.mark.parametrize("written", [False, True], ids=["it waits for the database", "the database has it"])
@pytest.mark.parametrize("symbol", ["", "ACME"])
async def test_an_order_that_was_filled_long_ago_is_told_of(hall: Hall, symbol: str, written: bool) -> None:
    server = await hall.started("first")
    order = await filled_long_ago(server)
    if written:
        await server.outbox.flush()

    found = await asked(server, Query("ann", order.order_id, 0, symbol))

    assert (found.order_id, found.state, found.reason) == (order.order_id, State.FILLED, "")
    assert (found.symbol, found.side, found.price, found.quantity, found.remaining) == ("ACME", 1, 10, 5, 0)
    assert (found.shard, found.seq) == (order.shard, order.seq + 1), "of the command that filled it"


@pytest.mark.parametrize("written", [False, True])
async def test_it_is_told_to_its_own_account_alone(hall: Hall, written: bool) -> None:
    server = await hall.started("first")
    order = await filled_long_ago(server)
    if written:
        await server.outbox.flush()

    found = await asked(server, Query("bob", order.order_id))

    assert (found.state, found.reason, found.quantity) == (State.REFUSED, Reason.NOT_YOURS, 0)


@pytest.mark.parametrize("state", [OPEN, LOST])
async def test_an_order_that_is_in_no_book_and_not_closed_is_unknown(hall: Hall, state: int) -> None:
    """The store has lost it: that it is open, or was filled once, would not be true."""
    server = await hall.started("first")
    order = await filled_long_ago(server)
    await server.outbox.flush()
    hall.ledger.rows[order.order_id] = hall.ledger.rows[order.order_id]._replace(state=state)

    found = await asked(server, Query("ann", order.order_id))

    assert (found.state, found.reason) == (State.REFUSED, Reason.UNKNOWN_ORDER)


async def test_an_order_that_nobody_has_heard_of_is_unknown(hall: Hall) -> None:
    server = await hall.started("first")
    order = await server.new("ann", 1, "ACME")

    found = await asked(server, Query("ann", order.order_id + 1))

    assert (found.state, found.reason) == (State.REFUSED, Reason.UNKNOWN_ORDER)


async def test_of_a_symbol_that_has_moved_since_its_shard_is_named(hall: Hall) -> None:
    server = await hall.started("first")
    order = await filled_long_ago(server)
    target = Spot((order.shard + 1) % 16, 7)
    HallPlacements(hall).use(hall.table.with_move("ACME", target, "m1"))
    await relocation(hall, server).step()
    assert isinstance(server.dispatch.place("ACME"), Place)

    by_id = await asked(server, Query("ann", order.order_id))
    by_symbol = await asked(server, Query("ann", order.order_id, 0, by_id.symbol))

    assert (by_id.reason, by_id.symbol) == (Reason.MOVED, "ACME")
    assert (by_symbol.state, by_symbol.shard) == (State.FILLED, order.shard)


async def test_while_the_database_is_away_nothing_is_said_of_it(hall: Hall) -> None:
    server = await hall.started("first")
    order = await filled_long_ago(server)
    await server.outbox.flush()
    hall.ledger.is_away = True

    answer = await server.ask(Method.QUERY, Query("ann", order.order_id))

    assert (answer.code, "the database is away" in answer.message) == (Code.BUSY, True)
    assert answer.retry_after_ms > 0


async def test_so_many_reads_are_under_way_and_no_more(hall: Hall) -> None:
    server = await hall.started("first")
    order = await filled_long_ago(server)
    await server.outbox.flush()
    held = hall.ledger.hold()
    waiting = [server.send(Method.QUERY, Query("ann", order.order_id)) for _ in range(MAX_READS)]

    beyond = await server.ask(Method.QUERY, Query("ann", order.order_id))
    late = await server.cancel("ann", 9, order.order_id, "ACME")
    held.set_result(None)
    answers = [await server.answer_to(request) for request in waiting]

    assert (beyond.code, late.reason) == (Code.BUSY, Reason.UNKNOWN_ORDER)
    assert {decode_standing(answer.payload).state for answer in answers} == {State.FILLED}
    assert (await asked(server, Query("ann", order.order_id))).state == State.FILLED


async def test_a_late_cancel_by_the_id_alone_is_answered_in_the_log(hall: Hall) -> None:
    server = await hall.started("first")
    order = await filled_long_ago(server)
    await server.outbox.flush()

    late = await server.outcome(Method.CANCEL, Cancel("ann", 9, 0, order.order_id))

    assert (late.reason, late.shard) == (Reason.UNKNOWN_ORDER, order.shard)
