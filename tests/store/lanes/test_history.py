"""A book as it stood at an earlier command, from the log and the snapshot in the store."""

from __future__ import annotations

from typing import Any, cast

import pytest

from roost.api.orders import BookView, LogCut
from roost.lanes.commands import Batch, Method, New, Side, Turn, encode
from roost.lanes.log import READ_ENTRIES
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


class CutBetweenPages:
    """A store whose log is cut behind a new snapshot after a page was read; `cuts` are the commands."""

    def __init__(self, store: Store, *cuts: int) -> None:
        self._store = store
        self._cuts = list(cuts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def call(self, command: str, *args: Any, **options: Any) -> Any:
        found = await self._store.call(command, *args, **options)
        if command == "XRANGE" and len(found) == READ_ENTRIES and self._cuts:
            up_to = self._cuts.pop(0)
            await snapshot(self._store, up_to)
            await self._store.call("XTRIM", args[0], "MINID", f"{EPOCH}-{up_to}", key=args[0])
        return found


async def test_a_log_that_is_cut_between_two_pages_is_read_again(store: Store) -> None:
    last = 2 * READ_ENTRIES
    for number in range(1, last + 1):
        await write(store, number)

    cutting = History(cast(Store, CutBetweenPages(store, last - 2)), cast(Ownership, None))
    book = await cutting.book(SHARD, "ACME", NEWEST)

    assert prices(book) == [100 + number for number in range(1, last + 1)]
    assert (book.seq, book.missing) == (last, 0)


async def test_a_log_that_was_cut_behind_what_is_asked_for_says_so(store: Store) -> None:
    last = 2 * READ_ENTRIES
    await snapshot(store, 2)
    for number in range(1, last + 1):
        await write(store, number)

    cutting = History(cast(Store, CutBetweenPages(store, last - 2)), cast(Ownership, None))

    with pytest.raises(LogCut, match=f"begins with command {last - 2}"):
        await cutting.book(SHARD, "ACME", READ_ENTRIES + 2)


async def test_commands_that_the_log_lost_are_told_of(store: Store, history: History) -> None:
    await write(store, 1, 2)
    await write(store, 5)
    await write(store, 9)

    whole, before = await history.book(SHARD, "ACME", NEWEST), await history.book(SHARD, "ACME", 6)

    assert (prices(whole), whole.missing) == ([101, 102, 105, 109], 5)
    assert (prices(before), before.seq, before.missing) == ([101, 102, 105], 5, 3)
    assert (await history.book(SHARD, "ACME", 2)).missing == 0


async def test_commands_that_are_lost_after_the_snapshot_are_told_of(store: Store, history: History) -> None:
    await snapshot(store, 2)
    await write(store, 5)

    book = await history.book(SHARD, "ACME", NEWEST)

    assert (prices(book), book.missing) == ([101, 102, 105], 2)
