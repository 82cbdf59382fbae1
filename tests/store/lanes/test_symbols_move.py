"""A symbol moves to another shard: between two servers, and past a table that is old."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest

from roost.core.errors import RoostError, Unavailable
from roost.lanes.commands import Cancel, Method, New, Reason, Side, State
from roost.lanes.ids import LANES, SHARDS
from roost.lanes.placement import Place, Table
from roost.lanes.placing import Placements
from roost.lanes.selector import Spot
from roost.servers.orders import relocation
from roost.servers.orders.relocation import Relocation
from roost.wire.client import Peer
from roost.wire.pool import Pool
from roost.wire.server import WireServer
from tests.store.lanes.hall import Hall, HallPlacements, Server

SECRET = b"a-secret-for-these-tests"


@asynccontextmanager
async def on_a_port(server: Server) -> AsyncIterator[Pool]:
    """The server listens; the pool reaches it from any address."""
    wire = WireServer(secret=SECRET, role="orders")
    server.host.serve(wire)
    server.reading.serve(wire)
    at = await wire.start(("127.0.0.1", 0))
    pool = Pool(lambda host, port: Peer(*at, secret=SECRET, role="orders", expects=frozenset({"orders"})))
    try:
        yield pool
    finally:
        await pool.close()
        await wire.close(0)


def place_of(hall: Hall, symbol: str) -> Spot:
    place = hall.table.of(symbol)
    assert isinstance(place, Place)
    return Spot(place.shard, place.lane)


def leaves(hall: Hall, server: Server, symbol: str, target: Spot, pool: Pool | None = None) -> Relocation:
    placements = HallPlacements(hall)
    placements.use(hall.table.with_move(symbol, target, "m1"))
    return Relocation(server.host, server.ownership, cast(Placements, placements), cast(Pool, pool))


async def test_a_symbol_moves_to_a_shard_of_another_server(hall: Hall) -> None:
    source = place_of(hall, "ACME")
    target = Spot((source.shard + 1) % SHARDS, 9)
    here = await hall.started("here", wanted=[source.shard])
    there = await hall.started("there", wanted=[target.shard])
    await here.ownership.step()
    resting = await here.new("ann", 1, "ACME", quantity=5)

    async with on_a_port(there) as pool:
        moving = leaves(hall, here, "ACME", target, pool)
        await moving.step()

    assert moving.moved == 1
    assert place_of(hall, "ACME") == target
    assert here.engine_of_shard(source.shard).departed() == {}
    again = await there.outcome(Method.NEW, New("ann", 1, 0, "ACME", Side.BUY, 10, 5))
    assert again == resting, "the first answer came along"
    taken = await there.outcome(Method.NEW, New("bob", 1, 0, "ACME", Side.SELL, 10, 2))
    gone = await there.cancel("ann", 2, resting.order_id, "ACME")
    assert (taken.state, taken.shard, taken.lane) == (State.FILLED, *target)
    assert (gone.state, gone.filled) == (State.CANCELLED, 2)
    late = await here.outcome(Method.CANCEL, Cancel("ann", 3, 0, resting.order_id))
    assert (late.reason, late.shard) == (Reason.CLOSED, target.shard), "sent on by the id alone"


async def test_a_move_that_is_not_answered_is_gone_on_with(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The book is in the log of the old shard; the new one takes it once."""
    source = place_of(hall, "ACME")
    target = Spot((source.shard + 1) % SHARDS, 9)
    here = await hall.started("here", wanted=[source.shard])
    there = await hall.started("there", wanted=[target.shard])
    await here.ownership.step()
    resting = await here.new("ann", 1, "ACME", quantity=5)
    async with on_a_port(there) as pool:
        moving = leaves(hall, here, "ACME", target, pool)
        there.kill()  # it executes MOVE_IN, and nobody hears of it
        monkeypatch.setattr(relocation, "CALL_MS", 300)
        with pytest.raises(RoostError):
            await moving.step()
    assert set(here.engine_of_shard(source.shard).departed()) == {"ACME"}
    assert there.engine_of_shard(target.shard).book("ACME") is not None

    after = hall.server("after", wanted=[target.shard])
    for _ in range(9):
        await hall.pass_s(1)
        await here.ownership.step()
        await after.ownership.step()
    monkeypatch.undo()
    async with on_a_port(after) as pool:
        placements = cast(Placements, HallPlacements(hall))
        await Relocation(here.host, here.ownership, placements, pool).step()

    assert place_of(hall, "ACME") == target
    gone = await after.cancel("ann", 2, resting.order_id, "ACME")
    assert (gone.state, gone.remaining) == (State.CANCELLED, 5)


async def driving(hall: Hall, server: Server, pool: Pool) -> tuple[Placements, Relocation]:
    """With a table of its own, which it reads when the test says so."""
    placements = Placements(hall.store, hall.table.selector)
    placements.on_change.append(server.dispatch.use)
    await placements.read()
    return placements, Relocation(server.host, server.ownership, placements, pool)


async def test_a_symbol_that_came_home_does_not_leave_again_by_an_old_table(hall: Hall) -> None:
    """Nobody would take the book that leaves a second time: that move was taken already."""
    home = place_of(hall, "ACME")
    away = Spot((home.shard + 1) % SHARDS, 9)
    here = await hall.started("here", wanted=[home.shard])
    there = await hall.started("there", wanted=[away.shard])
    await here.ownership.step()
    resting = await here.new("ann", 1, "ACME", quantity=5)

    async with on_a_port(there) as to_there, on_a_port(here) as to_here:
        old, out = await driving(hall, here, to_there)
        table, back = await driving(hall, there, to_here)
        await table.begin("ACME", home, away, "m1")
        await old.look()
        await out.step()
        await table.begin("ACME", away, home, "m2")
        await table.look()
        await back.step()
        assert old.table.moving["ACME"] == (away, "m1"), "it has heard of nothing"

        await out.step()

    assert (out.moved, back.moved) == (1, 1)
    assert here.engine_of_shard(home.shard).book("ACME") is not None
    gone = await here.cancel("ann", 2, resting.order_id, "ACME")
    assert (gone.state, gone.remaining) == (State.CANCELLED, 5)


async def test_a_book_that_left_by_another_move_goes_nowhere_by_an_old_table(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it went by that move it may be in use: two shards would trade it."""
    home = place_of(hall, "ACME")
    away, third = Spot((home.shard + 1) % SHARDS, 9), Spot((home.shard + 2) % SHARDS, 9)
    here = await hall.started("here", wanted=[home.shard])
    there = await hall.started("there", wanted=[away.shard, third.shard])
    await here.ownership.step()
    await here.new("ann", 1, "ACME", quantity=5)

    async with on_a_port(there) as to_there, on_a_port(here) as to_here:
        old, late = await driving(hall, here, to_there)
        table, out = await driving(hall, here, to_there)
        there_table, back = await driving(hall, there, to_here)
        await table.begin("ACME", home, away, "m1")
        await old.look()
        await table.look()
        await out.step()
        await table.begin("ACME", away, home, "m2")
        await there_table.look()
        await back.step()
        await table.begin("ACME", home, third, "m3")
        await table.look()
        with monkeypatch.context() as patched:
            patched.setattr(Placements, "finish", unavailable)
            with pytest.raises(Unavailable):
                await out.step()
        assert here.engine_of_shard(home.shard).departed()["ACME"].move_id == "m3"
        assert old.table.moving["ACME"] == (away, "m1"), "it has heard of nothing since"

        await late.step()

        assert there.engine_of_shard(away.shard).book("ACME") is None
        assert there.engine_of_shard(third.shard).book("ACME") is not None
        await out.step()
    assert (await table.look()).moving == {}
    assert here.engine_of_shard(home.shard).departed() == {}


async def unavailable(*_: object) -> None:
    raise Unavailable("the store is away")


async def test_a_book_does_not_travel_before_it_left_in_the_log(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next owner of the old shard, of whose log that is no part, has it too."""
    source = place_of(hall, "ACME")
    target = Spot((source.shard + 1) % SHARDS, 9)
    here = await hall.started("here", wanted=[source.shard])
    there = await hall.started("there", wanted=[target.shard])
    await here.ownership.step()
    await here.new("ann", 1, "ACME", quantity=5)
    monkeypatch.setattr(relocation, "CALL_MS", 200)
    here.faults.append("request waits")

    async with on_a_port(there) as pool:
        moving = leaves(hall, here, "ACME", target, pool)
        for _ in range(2):
            with pytest.raises(TimeoutError):
                await moving.step()
        assert there.engine_of_shard(target.shard).book("ACME") is None

        monkeypatch.undo()
        here.logs.appends.go_on()
        await moving.step()

    assert moving.moved == 1
    assert there.engine_of_shard(target.shard).book("ACME") is not None


async def test_a_book_whose_departure_came_into_no_log_does_not_travel(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = place_of(hall, "ACME")
    target = Spot((source.shard + 1) % SHARDS, 9)
    here = await hall.started("here", wanted=[source.shard])
    there = await hall.started("there", wanted=[target.shard])
    await here.ownership.step()
    await here.new("ann", 1, "ACME", quantity=5)
    monkeypatch.setattr(relocation, "CALL_MS", 200)
    here.faults.append("request hangs")

    async with on_a_port(there) as pool:
        moving = leaves(hall, here, "ACME", target, pool)
        with pytest.raises(TimeoutError):
            await moving.step()
        monkeypatch.undo()
        going_on = asyncio.create_task(moving.step())
        shard = here.host.shards[source.shard]
        await asyncio.sleep(0)
        shard.commits.end("another owner has written")
        with pytest.raises(Unavailable):
            await going_on

    assert there.engine_of_shard(target.shard).book("ACME") is None


async def test_g13_a_server_with_an_old_table_executes_nothing_where_a_symbol_was(hall: Hall) -> None:
    """What says so is the log of the old shard, in the order of its commands; no table has to be new."""
    server = await hall.started("first")
    old: Table = hall.table
    order = await server.new("ann", 1, "ACME")
    target = Spot((order.shard + 1) % SHARDS, 9)
    await leaves(hall, server, "ACME", target).step()

    server.dispatch.use(old)
    late = await server.outcome(Method.NEW, New("bob", 1, 0, "ACME", Side.SELL, 10, 5))
    cancel = await server.cancel("ann", 2, order.order_id, "ACME")

    assert (late.reason, cancel.reason) == (Reason.MOVED, Reason.MOVED)
    assert server.engine_of_shard(order.shard).book("ACME") is None
    server.dispatch.use(hall.table)
    assert (await server.cancel("ann", 3, order.order_id, "ACME")).state == State.CANCELLED


async def test_a_symbol_that_changed_its_lane_within_its_shard_does_not_leave_again(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is there already when the table cannot be told: nobody would take the book a second time."""
    source = place_of(hall, "ACME")
    target = Spot(source.shard, (source.lane + 1) % LANES)
    here = await hall.started("here")
    resting = await here.new("ann", 1, "ACME", quantity=5)

    moving = leaves(hall, here, "ACME", target)
    with monkeypatch.context() as patched:
        patched.setattr(HallPlacements, "finish", unavailable)
        with pytest.raises(Unavailable):
            await moving.step()
    await moving.step()

    assert place_of(hall, "ACME") == target
    gone = await here.cancel("ann", 2, resting.order_id, "ACME")
    assert (gone.state, gone.lane, gone.remaining) == (State.CANCELLED, target.lane, 5)
