"""index_put.lua and OrderIndex: an order is found by its id alone, also while the store is away."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import strategies as st

from roost.core.errors import StoreError
from roost.db.orders import OrderRow
from roost.lanes.ids import extract_lane
from roost.lanes.index import BATCH_LIMIT, OrderIndex, scope_of
from roost.store.keys.lanes import shard_keys
from roost.store.scopes import shard
from roost.store.store import Store
from roost.testing import RunningServer, eventually, open_store
from tests.store.examples import for_each

BIG = 380_104_982_312_345_677
"""A number that Lua and JSON would change."""


async def test_what_was_put_is_found_before_and_after_it_is_sent(any_store: Store) -> None:
    index = OrderIndex(any_store)
    index.put(BIG, 3, 17, "BRK:B")
    assert await index.find(BIG) == (3, 17, "BRK:B")

    await index.flush()

    assert (index.waiting, index.written) == (0, 1)
    assert await OrderIndex(any_store).find(BIG) == (3, 17, "BRK:B")
    assert await OrderIndex(any_store).find(BIG - 13) is None


async def test_a_key_is_named_by_the_id_and_goes_by_itself(store: Store) -> None:
    index = OrderIndex(store, ttl_s=100)
    index.put(BIG, 3, 17, "AAPL")
    await index.flush()
    key = shard_keys(store.keys, shard(scope_of(BIG)))["index"] + str(BIG).encode()
    assert await store.call("GET", key, key=key) == b"3:17:AAPL"
    assert 90 < await store.call("TTL", key, key=key) <= 100


async def test_the_last_word_on_an_order_counts(store: Store) -> None:
    index = OrderIndex(store)
    index.put(BIG, 3, 17, "AAPL")
    flushing = asyncio.create_task(index.flush())
    await asyncio.sleep(0)
    index.put(BIG, 5, 1, "AAPL")  # it was moved while the first was on its way
    await flushing
    assert await index.find(BIG) == (5, 1, "AAPL")
    await index.flush()
    assert await OrderIndex(store).find(BIG) == (5, 1, "AAPL")
    assert index.waiting == 0


async def test_an_order_that_closed_before_it_was_sent_is_not_written(store: Store) -> None:
    index = OrderIndex(store)
    made = OrderRow(BIG, 3, 7, 1, "ann", "AAPL", 1, 10, 5, 5, 1, 1000, 1000)
    other = made._replace(order_id=BIG + 1)
    filled = made._replace(seq=8, remaining=0, state=2, updated_ms=1001)

    index.follow(3, [made, other])
    assert await index.find(BIG) == (3, extract_lane(BIG), "AAPL")
    index.follow(3, [filled])
    await index.flush()

    assert (index.written, index.waiting) == (1, 0)
    assert await OrderIndex(store).find(BIG) is None
    assert await OrderIndex(store).find(BIG + 1) == (3, extract_lane(BIG), "AAPL")


async def test_ids_that_are_none_are_not_asked_for(store: Store) -> None:
    index = OrderIndex(store)
    for bad in (0, -5, 2**63, 2**70):
        assert await index.find(bad) is None


async def test_many_go_in_batches(any_store: Store) -> None:
    index = OrderIndex(any_store)
    ids = [BIG + n * 101 for n in range(3 * BATCH_LIMIT)] + [BIG << 1, 7, 10_000_000]
    for n, order_id in enumerate(ids):
        index.put(order_id, n % 16, n % 64, f"S{n}")
    await index.flush()
    other = OrderIndex(any_store)
    found = await asyncio.gather(*(other.find(order_id) for order_id in ids))
    assert found == [(n % 16, n % 64, f"S{n}") for n in range(len(ids))]


async def test_nothing_is_lost_while_the_store_is_away(valkey: RunningServer) -> None:
    async with open_store(valkey.url) as store:
        index = OrderIndex(store)
        index.put(BIG, 3, 17, "AAPL")
        valkey.kill()
        with pytest.raises(StoreError):
            await index.flush()
        index.put(BIG + 1, 4, 18, "TSLA")
        assert (index.waiting, index.dropped) == (2, 0)
        running = asyncio.create_task(index.run())
        valkey.start()
        await eventually(lambda: index.waiting == 0, "the index to be written")
        running.cancel()
        assert await OrderIndex(store).find(BIG) == (3, 17, "AAPL")
        assert await OrderIndex(store).find(BIG + 1) == (4, 18, "TSLA")


async def test_too_many_are_dropped_and_counted_and_nobody_waits(store: Store) -> None:
    index = OrderIndex(store, max_waiting=10)
    for n in range(15):
        index.put(BIG + n, 1, 1, "A")
    index.put(BIG, 2, 2, "A")
    assert (index.waiting, index.dropped) == (10, 5)
    await index.flush()
    assert await OrderIndex(store).find(BIG) == (2, 2, "A")
    assert await OrderIndex(store).find(BIG + 12) is None
    index.put(BIG + 12, 1, 1, "A")
    assert (index.waiting, index.dropped) == (1, 5)


IDS = st.dictionaries(
    st.integers(1, 2**63 - 1),
    st.tuples(st.integers(0, 15), st.integers(0, 63), st.text(min_size=1, max_size=12)),
    max_size=30,
)


def test_any_id_and_any_symbol_come_back(server: RunningServer) -> None:
    async def check(store: Store, orders: dict[int, tuple[int, int, str]]) -> None:
        index = OrderIndex(store)
        for order_id, (number, lane, symbol) in orders.items():
            index.put(order_id, number, lane, symbol)
        await index.flush()
        for order_id, where in orders.items():
            assert await OrderIndex(store).find(order_id) == where

    for_each(server, IDS, check, examples=30)
