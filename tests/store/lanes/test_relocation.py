"""Symbols on their way to another shard: one that cannot go stays, and holds up no other."""

from __future__ import annotations

from typing import cast

import pytest

from roost.core.errors import Unavailable
from roost.db.database import Database
from roost.lanes.commands import State
from roost.lanes.placement import Table
from roost.lanes.placing import Placements
from roost.lanes.selector import Spot
from roost.servers.orders.relocation import KEPT_MS, LOOKED_AT, Forgetting, Relocation
from roost.wire.pool import Pool
from tests.store.lanes.hall import Hall, HallPlacements, Peers, Server


def relocation(hall: Hall, server: Server, *, max_book_bytes: int = 1 << 20) -> Relocation:
    placements = cast(Placements, HallPlacements(hall))
    return Relocation(server.host, server.ownership, placements, cast(Pool, Peers(hall)), max_book_bytes)


async def test_a_symbol_whose_book_and_answers_are_too_large_stays_and_trades(hall: Hall) -> None:
    """MOVE_IN at another server would be refused for ever, after the book has left."""
    server = await hall.started("first")
    order = await server.new("ann", 1, "ACME")
    for number in range(3, 100, 2):
        order = await server.new("ann", number, "ACME")
        await server.cancel("ann", number + 1, order.order_id)
    target = Spot((order.shard + 1) % 16, 7)
    HallPlacements(hall).use(hall.table.with_move("ACME", target, "m1"))

    await relocation(hall, server, max_book_bytes=4096).step()

    assert (await server.new("ann", 101, "ACME")).shard == order.shard
    server.kill()
    second = await hall.takes_over("second")
    assert second.keeping.mismatches == 0
    assert (await second.new("ann", 102, "ACME")).shard == order.shard


async def test_the_way_to_an_order_that_left_is_forgotten_when_it_is_closed_for_long(hall: Hall) -> None:
    server = await hall.started("first")
    orders = [await server.new("ann", number, "ACME") for number in range(1, 2 * LOOKED_AT + 2)]
    old, stays, goes = server.engine_of("ACME"), orders[0].order_id, [one.order_id for one in orders[1:]]
    HallPlacements(hall).use(hall.table.with_move("ACME", Spot((orders[0].shard + 1) % 16, 7), "m1"))
    await relocation(hall, server).step()
    for number, order_id in enumerate(goes, 1000):
        await server.cancel("ann", number, order_id)
    forgetting = Forgetting(server.host, cast(Database, hall.ledger), lambda: hall.time.now_ms(0.0))

    async def symbols() -> set[str]:
        """By those ids alone, after everybody was looked at."""
        for _ in range(4):
            await forgetting.step()
        return {old.symbol_of(order_id) for order_id in goes}

    assert await symbols() == {"ACME"}  # the database knows nothing yet
    await server.outbox.flush()
    assert await symbols() == {"ACME"}  # closed just now
    hall.time.now_us += (KEPT_MS + 1000) * 1000
    assert await symbols() == {""}

    assert old.symbol_of(stays) == "ACME"
    assert (await server.cancel("ann", 2000, stays)).state == State.CANCELLED


async def test_a_move_that_fails_holds_up_no_other(hall: Hall) -> None:
    names = [f"S{n}" for n in range(40)]
    shards = {name: cast(int, hall.table.of(name)[0]) for name in names}
    fails = names[0]
    goes = next(name for name in names if shards[name] not in (shards[fails], 0, 1))
    server = await hall.started("first", wanted=[number for number in range(16) if number != 1])
    await server.new("ann", 1, fails)
    await server.new("ann", 2, goes)
    nobodys = Spot(1, 7)
    table = hall.table.with_move(fails, nobodys, "m1")
    HallPlacements(hall).use(table.with_move(goes, Spot(shards[fails], 7), "m2"))

    with pytest.raises(Unavailable, match="nobody owns shard 1"):
        await relocation(hall, server).step()

    assert (await server.new("ann", 3, goes)).shard == shards[fails]
    assert fails in hall.table.moving


async def moved_and_taken_over(hall: Hall) -> tuple[Server, int]:
    """The owner of a symbol's old shard dies before it writes a snapshot; the next one has its book again."""
    first = await hall.started("first")
    order = await first.new("ann", 1, "ACME")
    HallPlacements(hall).use(hall.table.with_move("ACME", Spot((order.shard + 1) % 16, 7), "m1"))
    await relocation(hall, first).step()
    assert not first.engine_of_shard(order.shard).departed()
    first.kill()
    second = await hall.takes_over("second")
    assert set(second.engine_of_shard(order.shard).departed()) == {"ACME"}
    return second, order.shard


async def test_a_book_that_had_arrived_before_a_crash_is_dropped_after_it(hall: Hall) -> None:
    """It would be in memory, and in every snapshot, for ever."""
    second, source = await moved_and_taken_over(hall)

    await relocation(hall, second).step()

    engine = second.engine_of_shard(source)
    assert not engine.departed()
    assert "left" in engine.dirty(), "the next snapshot is without it"
    assert (await second.new("ann", 2, "ACME")).shard != source


async def test_a_book_is_not_dropped_by_a_table_that_is_older_than_its_move(hall: Hall) -> None:
    """It may show where the symbol was before it came here: whether the book has arrived it does not say."""
    second, source = await moved_and_taken_over(hall)
    hall.table = hall.table.with_pin("ACME", Spot(source, 3)).with_move("ACME", Spot(1, 1), "m1")
    stale = hall.table.with_pin("ACME", Spot((source + 5) % 16, 7))
    looks = list[str]()

    class Stale(HallPlacements):
        @property
        def table(self) -> Table:
            return stale

        async def look(self) -> Table:
            looks.append("look")
            return hall.table

    moving = Relocation(second.host, second.ownership, cast(Placements, Stale(hall)), cast(Pool, Peers(hall)))
    await moving.step()

    assert looks == ["look"]
    assert set(second.engine_of_shard(source).departed()) == {"ACME"}


async def test_a_book_that_may_be_the_last_one_is_kept_where_the_table_lost_its_move(hall: Hall) -> None:
    second, source = await moved_and_taken_over(hall)
    hall.table = hall.table.with_pin("ACME", Spot(source, 3))

    await relocation(hall, second).step()

    assert set(second.engine_of_shard(source).departed()) == {"ACME"}
