"""Orders on their way to the database: nothing is lost, because the log is kept above what is written."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from roost.core.loops import Loops
from roost.db.database import Database, open_database
from roost.db.errors import DatabaseUnavailable
from roost.db.orders import OPEN, OrderRow
from roost.lanes.commands import State
from roost.lanes.outbox import BATCH_LIMIT, Outbox
from roost.testing import FakeClock, eventually

ROW = OrderRow(1, 3, 1, 900, "anna", "AAPL", 1, 100, 10, 10, OPEN, 5, 5)


def row(order_id: int, seq: int, shard: int = 3, epoch: int = 900) -> OrderRow:
    return ROW._replace(order_id=order_id, seq=seq, shard=shard, epoch=epoch, remaining=seq)


class FailingDatabase:
    """The real one, behind a wrapper that fails before it has written, or after."""

    def __init__(self, database: Database, rng: random.Random | None = None) -> None:
        self.database = database
        self.rng = rng
        self.is_away = False
        self.calls: list[int] = []

    async def put_orders(self, rows: Sequence[OrderRow]) -> None:
        self.calls.append(len(rows))
        fails = self.rng is not None and self.rng.random() < 0.4
        if self.is_away or (fails and self.rng is not None and self.rng.random() < 0.5):
            raise DatabaseUnavailable("switched off by the test")
        await self.database.put_orders(rows)
        if fails:
            raise DatabaseUnavailable("the answer was lost")


@pytest.fixture
async def sqlite(sqlite_url: str) -> AsyncIterator[Database]:
    async with open_database(sqlite_url) as database:
        yield database


@pytest.fixture
def failing(sqlite: Database) -> FailingDatabase:
    return FailingDatabase(sqlite)


def test_an_open_order_is_open_for_database_and_shard_alike() -> None:
    assert State.OPEN == OPEN


async def test_the_newest_row_of_an_order_is_written_once(failing: FailingDatabase) -> None:
    outbox = Outbox(failing)
    outbox.add([row(1, 1), row(2, 2)])
    outbox.add([row(1, 5), row(1, 4)])
    outbox.mark(3, 5)
    assert (outbox.depth, outbox.written_seq(3)) == (2, 0)
    await outbox.flush()
    assert (outbox.depth, outbox.written_seq(3), outbox.written) == (0, 5, 2)
    assert await failing.database.order(1) == row(1, 5)
    assert failing.calls == [2]


async def test_many_go_in_batches(failing: FailingDatabase) -> None:
    outbox = Outbox(failing)
    outbox.add(row(n, n) for n in range(1, 10 * BATCH_LIMIT + 2))
    outbox.mark(3, 5001)
    await outbox.flush()
    assert failing.calls == [BATCH_LIMIT] * 10 + [1]
    assert await failing.database.last_seq(3) == outbox.written_seq(3) == 5001


async def test_what_is_marked_while_a_round_is_written_counts_with_the_next(failing: FailingDatabase) -> None:
    outbox = Outbox(failing)
    outbox.add([row(1, 1)])
    outbox.mark(3, 1)
    writing = asyncio.create_task(outbox.flush())
    await eventually(lambda: bool(failing.calls), "the round to begin")
    outbox.add([row(2, 2), row(1, 3)])
    outbox.mark(3, 3)
    await writing
    assert (outbox.written_seq(3), outbox.depth) == (1, 2)
    await outbox.flush()
    assert outbox.written_seq(3) == 3


async def test_a_command_without_rows_is_written_too(failing: FailingDatabase) -> None:
    outbox = Outbox(failing)
    outbox.mark(7, 40)
    await outbox.flush()
    assert (outbox.written_seq(7), failing.calls) == (40, [])


async def test_a_database_that_is_away_is_waited_for_and_new_orders_stop(failing: FailingDatabase) -> None:
    outbox = Outbox(failing, max_rows=3, loops=Loops(FakeClock()))
    failing.is_away = True
    outbox.add([row(1, 1), row(2, 2)])
    outbox.mark(3, 2)
    with pytest.raises(DatabaseUnavailable):
        await outbox.flush()
    assert not outbox.is_full
    outbox.add([row(1, 3), row(3, 4), row(3, 5)])
    outbox.mark(3, 5)
    assert (outbox.is_full, outbox.written_seq(3)) == (True, 0)
    failing.is_away = False
    await outbox.flush()
    assert (outbox.is_full, outbox.depth, outbox.written_seq(3)) == (False, 0, 5)
    assert [await failing.database.order(n) for n in (1, 2, 3)] == [row(1, 3), row(2, 2), row(3, 5)]


async def test_the_loop_goes_on_after_a_fault(failing: FailingDatabase) -> None:
    outbox = Outbox(failing)
    failing.is_away = True
    outbox.add([row(1, 1)])
    outbox.mark(3, 1)
    running = asyncio.create_task(outbox.run())
    await eventually(lambda: len(failing.calls) > 1, "a second attempt")
    failing.is_away = False
    await eventually(lambda: outbox.written_seq(3) == 1, "the row to be written")
    running.cancel()
    assert await failing.database.order(1) == row(1, 1)


async def test_a_row_that_no_database_takes_holds_up_no_other(failing: FailingDatabase) -> None:
    outbox = Outbox(failing)
    bad = row(7, 7)._replace(account="a\0b")
    outbox.add([row(n, n) if n != 7 else bad for n in range(1, 20)])
    outbox.mark(3, 19)
    await outbox.flush()
    assert (outbox.refused, outbox.written, outbox.depth, outbox.written_seq(3)) == (1, 18, 0, 19)
    assert await failing.database.order(8) == row(8, 8)
    assert await failing.database.order(7) is None


async def test_a_shard_that_is_forgotten_has_nothing_written(failing: FailingDatabase) -> None:
    outbox = Outbox(failing)
    outbox.add([row(1, 1)])
    outbox.mark(3, 1)
    outbox.mark(4, 9)
    outbox.forget(3)
    await outbox.flush()
    assert (outbox.written_seq(3), outbox.written_seq(4)) == (0, 9)


class Life:
    """Two shards; their logs are trimmed as far as the outbox allows, and replayed after a crash."""

    def __init__(self, database: FailingDatabase, rng: random.Random) -> None:
        self.database, self.rng = database, rng
        self.logs: dict[int, list[OrderRow]] = {3: [], 4: []}
        self.seqs = {3: 0, 4: 0}
        self.model: dict[int, OrderRow] = {}
        self.outbox = Outbox(database)

    def command(self) -> None:
        shard = self.rng.choice((3, 4))
        self.seqs[shard] += 1
        made = row(self.rng.randint(1, 12) * 10 + shard, self.seqs[shard], shard)
        self.logs[shard].append(made)
        self.model[made.order_id] = made
        self.outbox.add([made])
        if self.rng.random() < 0.7:
            self.outbox.mark(shard, made.seq)

    async def flush(self) -> None:
        try:
            await self.outbox.flush()
        except DatabaseUnavailable:
            pass

    def trim(self) -> None:
        for shard, entries in self.logs.items():
            self.logs[shard] = [one for one in entries if one.seq > self.outbox.written_seq(shard)]

    def crash(self) -> None:
        """All that waited is gone; the next owner replays the log."""
        self.outbox = Outbox(self.database)
        for shard, entries in self.logs.items():
            self.outbox.add(entries)
            self.outbox.mark(shard, self.seqs[shard])

    async def check(self) -> None:
        """Whatever happens now, database and log together have the newest row of every order."""
        left = {one.order_id: one for entries in self.logs.values() for one in entries}
        for order_id, expected in self.model.items():
            kept = left.get(order_id) or await self.database.database.order(order_id)
            assert kept == expected


async def check_life(url: str, rng: random.Random) -> None:
    async with open_database(url) as database:
        life = Life(FailingDatabase(database, rng), rng)
        for _ in range(60):
            roll = rng.random()
            if roll < 0.6:
                life.command()
            elif roll < 0.75:
                await life.flush()
            elif roll < 0.85:
                writing = asyncio.create_task(life.flush())
                await asyncio.sleep(0)
                life.command()  # while the database writes
                if rng.random() < 0.3:
                    writing.cancel()
                await asyncio.gather(writing, return_exceptions=True)
            elif roll < 0.92:
                life.trim()
            else:
                life.crash()
            await life.check()


def test_nothing_is_lost_by_failures_crashes_and_trimming(tmp_path: Path) -> None:
    numbers = itertools.count()

    @settings(
        deadline=None,
        phases=[Phase.reuse, Phase.generate],
        suppress_health_check=list(HealthCheck),
        max_examples=60,
    )
    @given(st.integers(0, 2**32))
    def example(seed: int) -> None:
        url = f"sqlite:///{tmp_path / str(next(numbers))}?synchronous=normal"
        asyncio.run(check_life(url, random.Random(seed)))

    example()
