"""A book as it stood at an earlier command, from the log and the snapshot in the store."""

from __future__ import annotations

from typing import cast

import pytest

from roost.api.orders import BookView, LogCut
from roost.lanes.commands import Batch, Method, New, Side, Turn, encode
from roost.lanes.owner import Ownership
from roost.servers.orders.engine import Engine
from roost.servers.orders.history import NEWEST, History
from roost.store.keys.lanes import shard_keys
from roost.store.scopes import shard as shard_scope
from roost.store.store import Store

SHARD, EPOCH = 5, 10


def order(number: int) -> New:
    return New("ann", number, 0, "ACME", Side.BUY, 100 + number, 1)


async def write(store: Store, *numbers: int) -> None:
    """An entry of these commands; the command's number is that of the client."""
    key = shard_keys(store.keys, shard_scope(SHARD))["log"]
    batch = Batch(1000, 1, [(int(Method.NEW), 0, 90 + n, encode(order(n))) for n in numbers])
    await store.call("XADD", key, f"{EPOCH}-{numbers[0]}", "b", encode(batch), key=key)


async def snapshot(store: Store, up_to: int) -> None:
    engine = Engine(SHARD)
    for number in range(1, up_to + 1):
        turn = Turn(SHARD, EPOCH, 1000, 1)
        engine.apply(turn, number, int(Method.NEW), 0, 90 + number, order(number))
    key = shard_keys(store.keys, shard_scope(SHARD))["snapshot"]
    flat = [item for part in engine.all_parts().items() for item in part]
    marks = ("@epoch", EPOCH, "@seq", up_to, "@digest", engine.digest(), "@ids", b"")
    await store.call("HSET", key, *marks, *flat, key=key)


def prices(book: BookView) -> list[int]:
    return sorted(level.price for level in book.bids)


@pytest.fixture
def history(store: Store) -> History:
    return History(store, cast(Ownership, None))


async def test_without_a_snapshot_the_whole_log_counts(store: Store, history: History) -> None:
    await write(store, 1, 2)
    await write(store, 3)
    assert prices(await history.book(SHARD, "ACME", 1)) == [101]
    assert prices(await history.book(SHARD, "ACME", NEWEST)) == [101, 102, 103]


async def test_an_entry_that_the_snapshot_has_in_part_is_not_done_twice(
    store: Store, history: History
) -> None:
    await write(store, 2, 3)
    await snapshot(store, 2)
    book = await history.book(SHARD, "ACME", NEWEST)
    assert (prices(book), book.seq, book.orders, book.failed) == ([101, 102, 103], 3, 3, 0)


async def test_before_the_snapshot_only_a_log_from_the_first_command_on_tells(
    store: Store, history: History
) -> None:
    await snapshot(store, 3)
    await write(store, 3)
    with pytest.raises(LogCut, match="begins with command 3"):
        await history.book(SHARD, "ACME", 2)


async def test_an_empty_shard_has_empty_books(history: History) -> None:
    assert prices(await history.book(SHARD, "ACME", NEWEST)) == []
