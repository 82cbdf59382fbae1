"""Whatever arrives at an order server is answered, and nothing of it harms the log or the next command."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from roost.lanes.commands import (
    MAX_PRICE,
    MAX_QUANTITY,
    SERVICE,
    Amend,
    Cancel,
    Method,
    New,
    Query,
    Reason,
    Side,
    State,
    decode_outcome,
    encode,
)
from roost.lanes.ids import pack
from roost.lanes.placing import Placements
from roost.lanes.selector import Spot
from roost.servers.orders.relocation import Relocation
from roost.servers.orders.settings import OrdersSettings
from roost.store.store import Store
from roost.testing import RunningServer, open_store
from roost.wire.client import Peer
from roost.wire.codes import Code
from roost.wire.pool import Pool
from roost.wire.server import WireServer
from tests.store.lanes.hall import Hall, HallPlacements, Server

METHODS = (Method.NEW, Method.CANCEL, Method.AMEND, Method.QUERY)

numbers = st.one_of(
    st.integers(-(2**63), 2**64 - 1), st.sampled_from([0, -1, 1, 2**53, 2**63 - 1, 2**64 - 1])
)
texts = st.one_of(st.text(max_size=20), st.sampled_from(["ACME", "", " ", "\x00", "a" * 129, "S" * 5000]))
anything = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, st.floats(), texts, st.binary(max_size=20)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
fields = st.one_of(numbers, texts, anything)
payloads = st.one_of(
    st.binary(max_size=64),
    st.lists(fields, max_size=10).map(msgspec.msgpack.encode),
    st.builds(
        lambda *given: msgspec.msgpack.encode(given),
        *(texts, numbers, numbers, texts, numbers, numbers, numbers, st.booleans()),
    ),
    st.builds(
        lambda *given: msgspec.msgpack.encode(given),
        *(texts, numbers, numbers, numbers, texts, numbers, numbers),
    ),
)


@pytest.fixture(scope="module")
def loop_and_server(shared_server: RunningServer) -> Any:
    """One order server for all drawn payloads: what one leaves behind, the next one meets."""
    shared_server.flush()
    loop = asyncio.new_event_loop()
    context = open_store(shared_server.url)
    store: Store = loop.run_until_complete(context.__aenter__())
    server = loop.run_until_complete(Hall(store).started("first"))
    yield loop, server
    loop.run_until_complete(context.__aexit__(None, None, None))
    loop.close()


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(method=st.sampled_from(METHODS), payload=payloads)
@example(method=Method.NEW, payload=b"")
@example(method=Method.NEW, payload=encode(New("ann", 1, 2**63, "ACME", Side.BUY, 1, 1)))
def test_every_payload_is_answered_and_fails_nothing(
    loop_and_server: tuple[asyncio.AbstractEventLoop, Server],
    caplog: pytest.LogCaptureFixture,
    method: Method,
    payload: bytes,
) -> None:
    loop, server = loop_and_server
    with caplog.at_level(logging.ERROR):
        answer = loop.run_until_complete(server.ask(method, payload))

    assert answer.code in (Code.OK, Code.BAD_REQUEST, Code.REFUSED, Code.NOT_OWNER)
    assert answer.code == Code.OK or answer.message
    assert not caplog.records
    assert not any(shard.tally.failed or not shard.serves for shard in server.host.routes.shards.values())


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (New("ann", 1, 0, "ACME", Side.BUY, 10, 0), Reason.BAD_QUANTITY),
        (New("ann", 1, 0, "ACME", Side.BUY, 10, -5), Reason.BAD_QUANTITY),
        (New("ann", 1, 0, "ACME", Side.BUY, 10, MAX_QUANTITY + 1), Reason.BAD_QUANTITY),
        (New("ann", 1, 0, "ACME", Side.BUY, 0, 5), Reason.BAD_PRICE),
        (New("ann", 1, 0, "ACME", Side.BUY, -1, 5), Reason.BAD_PRICE),
        (New("ann", 1, 0, "ACME", Side.BUY, MAX_PRICE + 1, 5), Reason.BAD_PRICE),
        (New("ann", 1, 0, "ACME", 3, 10, 5), Reason.BAD_SIDE),
        (New("ann", 0, 0, "ACME", Side.BUY, 10, 5), Reason.TOO_OLD),
        (New("ann", -7, 0, "ACME", Side.BUY, 10, 5), Reason.TOO_OLD),
    ],
)
async def test_a_bad_order_is_refused_by_its_reason(hall: Hall, command: New, reason: str) -> None:
    server = await hall.started("first")

    outcome = await server.outcome(Method.NEW, command)

    assert (outcome.reason, outcome.order_id) == (reason, 0)
    assert not server.engine_of("ACME").symbols()


@pytest.mark.parametrize("account", ["", "a" * 129, "ann\0", "\0"])
async def test_an_account_that_no_database_could_keep_trades_nothing(hall: Hall, account: str) -> None:
    server = await hall.started("first")

    answer = await server.ask(Method.NEW, New(account, 1, 0, "ACME", Side.BUY, 10, 5))

    assert (answer.code, "an account has 1 to 128 characters" in answer.message) == (Code.BAD_REQUEST, True)
    assert not server.engine_of("ACME").symbols()


async def test_the_order_of_another_account_is_not_touched(hall: Hall) -> None:
    server = await hall.started("first")
    order = await server.new("ann", 1, "ACME")

    assert (await server.cancel("bob", 1, order.order_id)).reason == Reason.NOT_YOURS
    assert (await server.amend("bob", 2, order.order_id, 11, 1)).reason == Reason.NOT_YOURS
    assert (await server.cancel("bob", 3, order.order_id, "ACME")).reason == Reason.NOT_YOURS
    assert server.engine_of("ACME").symbols() == ["ACME"]


@pytest.mark.parametrize("order_id", [-1, 0, 1, 10_000_000, 1_790_000_000_000, 2**63 - 1, 2**64 - 1])
async def test_an_id_that_is_not_ours_is_executed_nowhere(hall: Hall, order_id: int) -> None:
    server = await hall.started("first")
    before = {n: shard.seq for n, shard in server.host.routes.shards.items()}

    answer = await server.ask(Method.CANCEL, Cancel("ann", 1, 0, order_id))

    assert answer.code == Code.REFUSED
    assert {n: shard.seq for n, shard in server.host.routes.shards.items()} == before


async def test_an_id_of_the_future_is_nobodys(hall: Hall) -> None:
    server = await hall.started("first")
    tomorrow = pack(hall.time.now_ms(0) + 86_400_000, 3, 7, 0)

    answer = await server.ask(Method.CANCEL, Cancel("ann", 1, 0, tomorrow))

    assert (answer.code, "nobody knows" in answer.message) == (Code.REFUSED, True)


async def test_a_number_used_for_something_else_is_refused(hall: Hall) -> None:
    server = await hall.started("first")
    first = await server.new("ann", 1, "ACME")
    elsewhere = next(
        name for name in ("A1", "A2", "A3", "A4", "A5") if server.dispatch.place(name)[0] != first.shard
    )

    other = await server.outcome(Method.NEW, New("ann", 1, 0, "ACME", Side.SELL, 10, 5))
    another_shard = await server.ask(Method.NEW, New("ann", 1, 0, elsewhere, Side.BUY, 10, 5))
    as_cancel = await server.outcome(Method.CANCEL, Cancel("ann", 1, 0, first.order_id))

    assert other.reason == as_cancel.reason == Reason.DUPLICATE
    assert another_shard.code == Code.REFUSED
    assert await server.new("ann", 1, "ACME") == first


@pytest.mark.parametrize("account", ["", "a" * 129])
async def test_no_account_or_a_very_long_one_is_refused(hall: Hall, account: str) -> None:
    server = await hall.started("first")

    answer = await server.ask(Method.NEW, New(account, 1, 0, "ACME", Side.BUY, 10, 5))

    assert answer.code == Code.BAD_REQUEST
    assert not server.host.sessions.numbers


async def test_fields_that_nobody_reads_do_not_fill_the_log(hall: Hall) -> None:
    server = await hall.started("first")
    padded = msgspec.msgpack.encode(["ann", 1, 0, "ACME", 1, 10, 5, False, "x" * 100_000])

    assert (await server.ask(Method.NEW, padded)).code == Code.BAD_REQUEST


async def test_a_query_of_a_symbol_in_other_letters_finds_its_shard(hall: Hall) -> None:
    server = await hall.started("first")
    order = await server.outcome(Method.NEW, New("ann", 1, 0, " acme ", Side.BUY, 10, 5))

    found = await server.ask(Method.QUERY, Query("ann", 0, 1, "acme"))

    assert decode_outcome(found.payload) == order


async def test_an_amend_below_what_is_filled_is_refused(hall: Hall) -> None:
    server = await hall.started("first")
    order = await server.new("ann", 1, "ACME", 10, 5)
    await server.outcome(Method.NEW, New("bob", 1, 0, "ACME", Side.SELL, 10, 3))

    amended = await server.outcome(Method.AMEND, Amend("ann", 2, 0, order.order_id, "ACME", 10, 3))

    assert amended.reason == Reason.BAD_QUANTITY


async def test_a_command_is_forwarded_once(hall: Hall) -> None:
    first = await hall.started("first", wanted=[1])
    second = await hall.started("second", wanted=[2])
    names = [f"S{n}" for n in range(200)]
    there = next(name for name in names if second.dispatch.place(name)[0] == 2)
    nowhere = next(name for name in names if second.dispatch.place(name)[0] == 5)
    await first.ownership.step()

    outcome = await first.new("ann", 1, there)
    lost = await first.ask(Method.NEW, New("ann", 2, 0, nowhere, Side.BUY, 10, 5))
    request = first.send(Method.NEW, New("ann", 3, 0, there, Side.BUY, 10, 5), epoch=1)

    assert (outcome.shard, first.forwarding.sent) == (2, 1)
    assert lost.code == Code.NOT_OWNER
    assert (await first.answer_to(request)).code == Code.NOT_OWNER


async def test_a_number_of_a_forwarded_command_is_not_used_again(hall: Hall) -> None:
    first = await hall.started("first", wanted=[1])
    second = await hall.started("second", wanted=[2])
    names = [f"S{n}" for n in range(200)]
    here = next(name for name in names if first.dispatch.place(name)[0] == 1)
    there = next(name for name in names if second.dispatch.place(name)[0] == 2)
    await first.ownership.step()
    await first.new("ann", 1, there)

    assert (await first.ask(Method.NEW, New("ann", 1, 0, here, Side.BUY, 10, 5))).code == Code.REFUSED


async def test_g16_a_command_sent_again_after_its_symbol_moved_gets_the_first_answer(hall: Hall) -> None:
    server = await hall.started("first")
    order = await server.new("ann", 1, "ACME")
    source = Spot(order.shard, order.lane)
    target = Spot((order.shard + 1) % 16, 9)
    placements = HallPlacements(hall)
    placements.use(hall.table.with_pin("ACME", source).with_move("ACME", target, "m1"))
    moving = cast(Placements, placements)

    await Relocation(server.host, server.ownership, moving, cast(Pool, None)).step()

    assert await server.new("ann", 1, "ACME") == order
    gone = await server.cancel("ann", 2, order.order_id)
    assert (gone.state, gone.shard, gone.lane) == (State.CANCELLED, target.shard, target.lane)


async def test_where_symbols_are_restricted_no_other_is_traded(hall: Hall) -> None:
    traded = OrdersSettings(symbols=" acme, TSLA,").traded()
    server = await hall.started("first", traded=traded)
    before = {n: shard.seq for n, shard in server.host.routes.shards.items()}

    refused = [await server.ask(Method.NEW, New("ann", n, 0, name, Side.BUY, 10, 5)) for n, name in OTHERS]
    refused.append(await server.ask(Method.AMEND, Amend("ann", 9, 0, 17, "AAPL", 10, 5)))

    assert {answer.code for answer in refused} == {Code.BAD_REQUEST}
    assert all("not traded here" in answer.message for answer in refused)
    assert {n: shard.seq for n, shard in server.host.routes.shards.items()} == before
    for number, name in enumerate(("ACME", " acme ", "tsla"), start=20):
        answer = await server.ask(Method.NEW, New("ann", number, 0, name, Side.BUY, 10, 5))
        assert not answer.code, answer.message


async def test_an_order_of_a_symbol_that_is_traded_no_more_can_be_cancelled(hall: Hall) -> None:
    """Traders name the symbol with the id, users of entities must."""
    server = await hall.started("first")
    order = await server.new("ann", 1, "AAPL")
    server.kill()
    second = await hall.takes_over("second", traded=frozenset({"ACME"}))

    gone = await second.cancel("ann", 2, order.order_id, "aapl")

    assert gone.state == State.CANCELLED


async def test_a_symbol_that_is_traded_no_more_is_not_traded_after_a_cancel_either(hall: Hall) -> None:
    """An order of it is found by its id alone, which is no way for new ones."""
    server = await hall.started("first")
    orders = [await server.new("ann", number, "AAPL") for number in (1, 2)]
    server.kill()
    second = await hall.takes_over("second", traded=frozenset({"ACME"}))

    gone = await second.cancel("ann", 3, orders[0].order_id)
    new = await second.ask(Method.NEW, New("ann", 4, 0, "AAPL", Side.BUY, 10, 5))

    assert gone.state == State.CANCELLED
    assert new.code == Code.BAD_REQUEST


async def test_an_order_of_a_symbol_that_is_traded_no_more_is_not_amended_by_its_id_either(
    hall: Hall,
) -> None:
    """A price that crosses would trade it."""
    server = await hall.started("first")
    order = await server.new("ann", 1, "AAPL")
    server.kill()
    second = await hall.takes_over("second", traded=frozenset({"ACME"}))

    answer = await second.ask(Method.AMEND, Amend("ann", 2, 0, order.order_id, "", 12, 5))

    assert answer.code == Code.BAD_REQUEST
    assert "not traded here" in answer.message


OTHERS = [(1, "AAPL"), (2, "ACM"), (3, "ACMEE")]


async def test_a_method_that_orders_do_not_have_is_a_bad_request(hall: Hall) -> None:
    server = await hall.started("first", wanted=[3])
    wire = WireServer(secret=b"a-secret-of-these-tests", role="orders")
    server.host.serve(wire)
    server.reading.serve(wire)
    peer = Peer(*await wire.start(("127.0.0.1", 0)), secret=b"a-secret-of-these-tests", role="trader")
    try:
        unknown = await peer.call(SERVICE, 99, b"", budget_ms=5000)
        elsewhere = await peer.call(SERVICE + 1, 1, b"", budget_ms=5000)
    finally:
        await peer.close()
        await wire.close(0)
    assert (unknown.code, elsewhere.code) == (Code.BAD_REQUEST, Code.UNKNOWN_METHOD)
    assert "no such method" in unknown.message
