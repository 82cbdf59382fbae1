"""What every database keeps of orders: the newest row of each, whatever comes late or twice."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from roost.core.errors import InvalidInput
from roost.db.database import Database, open_database
from roost.db.order_statements import ROWS_TOGETHER
from roost.db.orders import MAX_NUMBER, OPEN, OrderRow, is_newer
from roost.db.statements import DIALECTS, statements
from roost.db.steps import STEPS, upgrade
from roost.testing import MariadbServer, PostgresqlServer

ROW = OrderRow(
    380_104_982_312_345_677, 3, 7, 1_700_000_000_000_000, "anna", "AAPL", 1, 100, 10, 10, OPEN, 5, 5
)


def test_a_row_has_the_columns_of_the_statements() -> None:
    for dialect in DIALECTS:
        assert statements(dialect).put_orders.names == OrderRow._fields


async def test_an_order_is_kept_as_it_was_given(db: Database) -> None:
    assert await db.order(ROW.order_id) is None
    await db.put_orders([ROW])
    assert await db.order(ROW.order_id) == ROW
    assert type(await db.order(ROW.order_id)) is OrderRow
    assert await db.order(2**63) is None
    assert await db.order(-1) is None


async def test_a_later_command_takes_the_place_and_an_earlier_one_does_not(db: Database) -> None:
    await db.put_orders([ROW])
    older = ROW._replace(seq=6, remaining=99, state=3)
    old_owner = ROW._replace(seq=9, epoch=ROW.epoch - 1, remaining=99, state=3, updated_ms=50)
    await db.put_orders([older])
    await db.put_orders([old_owner])
    assert await db.order(ROW.order_id) == ROW
    newer = ROW._replace(seq=8, remaining=4, updated_ms=9)
    await db.put_orders([newer])
    await db.put_orders([ROW])
    assert await db.order(ROW.order_id) == newer
    next_owner = newer._replace(seq=9, epoch=ROW.epoch + 1, remaining=0, state=2, updated_ms=3)
    await db.put_orders([next_owner])
    await db.put_orders([newer])
    assert await db.order(ROW.order_id) == next_owner, "also of an owner whose clock is behind"


async def test_many_rows_are_judged_one_by_one_though_they_are_written_together(db: Database) -> None:
    count = 2 * ROWS_TOGETHER + 7
    rows = [ROW._replace(order_id=ROW.order_id + n, seq=n + 1, account=f"a{n}") for n in range(count)]
    await db.put_orders(rows)
    older = [row._replace(epoch=ROW.epoch - 1, remaining=99) for row in rows[::2]]
    newer = [row._replace(epoch=ROW.epoch + 1, remaining=1) for row in rows[1::2]]
    await db.put_orders(older + newer)
    expected = sorted(rows[::2] + newer)
    assert [await db.order(row.order_id) for row in expected] == expected


async def test_of_a_moved_order_the_later_time_counts(db: Database) -> None:
    """Its new shard has numbers of its own, smaller or larger."""
    moved = ROW._replace(shard=9, seq=2, epoch=1, remaining=3, updated_ms=6)
    await db.put_orders([ROW])
    await db.put_orders([moved])
    assert await db.order(ROW.order_id) == moved
    late = ROW._replace(seq=100, epoch=ROW.epoch + 5, remaining=99, updated_ms=6)
    await db.put_orders([late, ROW])
    assert await db.order(ROW.order_id) == moved
    back = ROW._replace(seq=101, remaining=1, updated_ms=7)
    await db.put_orders([back])
    assert await db.order(ROW.order_id) == back
    assert (await db.last_seq(3), await db.last_seq(9)) == (101, 0)
    (found,) = await db.orders_between(3, 100, 102)
    assert found == await db.order(found.order_id)
    assert await db.orders_between(3, 101, 1000) == await db.orders_between(9, 0, 1000) == []


async def test_the_newest_id_of_those_with_some_bits_is_found(db: Database) -> None:
    """Whatever shard has written the row: the bits say which one made the id."""
    ids = [number << 22 | shard << 18 | 5 for number in range(1, 40) for shard in (3, 9)]
    await db.put_orders([ROW._replace(order_id=order_id, seq=n) for n, order_id in enumerate(ids, 1)])
    mask = 15 << 18

    assert await db.newest_order_id(0, mask, 3 << 18) == ids[-2]
    assert await db.newest_order_id(ids[-2], mask, 3 << 18) == ids[-2]
    assert await db.newest_order_id(ids[-2] + 1, mask, 3 << 18) == 0
    assert await db.newest_order_id(ids[-2] + 1, mask, 9 << 18) == ids[-1]
    assert await db.newest_order_id(0, mask, 4 << 18) == 0
    await db.put_orders([ROW._replace(order_id=MAX_NUMBER)])
    assert await db.newest_order_id(ids[-1], mask, mask) == MAX_NUMBER
    assert await db.newest_order_id(MAX_NUMBER, mask, mask) == MAX_NUMBER


async def test_a_batch_may_hold_an_order_twice(db: Database) -> None:
    rows = [ROW._replace(seq=seq, remaining=seq) for seq in (3, 9, 5)]
    await db.put_orders([*rows, ROW._replace(order_id=5)])
    assert await db.order(ROW.order_id) == rows[1]
    assert await db.order(5) == ROW._replace(order_id=5)
    await db.put_orders([])


async def test_many_land(db: Database) -> None:
    rows = [
        ROW._replace(order_id=n, seq=n, account=("anna", "Anna", "bob")[n % 3], state=n % 4, shard=n % 2)
        for n in range(1, 1201)
    ]
    await db.put_orders(rows)
    await db.put_orders(rows)
    assert [await db.order(row.order_id) for row in rows[::100]] == rows[::100]
    assert (await db.last_seq(0), await db.last_seq(1), await db.last_seq(2)) == (1200, 1199, 0)


@pytest.mark.parametrize("text", ["a'n%s\\na", "ü€😀", "x" * 128, "é" * 128, "a b\t%%", '\x1a"`'])
async def test_texts_and_the_largest_numbers_come_back(db: Database, text: str) -> None:
    large = ROW._replace(
        order_id=MAX_NUMBER, seq=MAX_NUMBER, epoch=MAX_NUMBER, price=MAX_NUMBER, account=text, symbol=text
    )
    await db.put_orders([large, ROW])
    assert await db.order(MAX_NUMBER) == large


@pytest.mark.parametrize(
    "bad",
    [
        {"order_id": 2**63}, {"seq": -1}, {"price": 1.5}, {"quantity": None}, {"shard": 2**31},
        {"state": True}, {"account": "x" * 129}, {"symbol": "a\0b"}, {"symbol": "\ud800"}, {"account": 5},
    ],
)  # fmt: skip
async def test_a_row_that_some_database_would_not_take_is_refused_before_anything_is_sent(
    db: Database, bad: dict[str, object]
) -> None:
    with pytest.raises(InvalidInput):
        await db.put_orders([ROW, ROW._replace(order_id=5)._replace(**bad)])  # type: ignore[arg-type]
    assert await db.order(ROW.order_id) is None


async def test_writers_at_once_leave_the_newest_of_each(any_url: str) -> None:
    async with open_database(any_url) as one, open_database(any_url) as other:
        batches = [
            [ROW._replace(order_id=n, seq=seq, remaining=seq) for n in range(1, 60)] for seq in range(1, 9)
        ]
        writers = zip(itertools.cycle((one, other)), reversed(batches), strict=False)
        await asyncio.gather(*(db.put_orders(batch) for db, batch in writers))
        assert [(await one.order(n)) for n in range(1, 60)] == batches[-1]


async def test_a_database_of_version_2_gets_its_table_of_orders(
    any_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upgrade, "__defaults__", (STEPS[:2],))
    async with open_database(any_url) as db:
        await db.ping()
    monkeypatch.undo()
    for _ in range(2):
        async with open_database(any_url) as db:
            await db.put_orders([ROW])
            assert await db.order(ROW.order_id) == ROW


def rows_of_a_life() -> st.SearchStrategy[list[OrderRow]]:
    """The rows that the shards of two orders wrote, in their true order: commands, new owners and moves."""
    event = st.sampled_from(["command", "command", "owner", "move"])
    return st.lists(st.tuples(st.integers(1, 2), event), min_size=1, max_size=12).map(_life)


def _life(events: Sequence[tuple[int, str]]) -> list[OrderRow]:
    rows = []
    place, clock = {1: 3, 2: 3}, {1: 0, 2: 0}
    epochs, seqs = {3: 900, 9: 100}, {3: 0, 9: 500}
    for number, (order_id, event) in enumerate(events):
        shard = place[order_id]
        if event == "owner":
            epochs[shard] += 1
        elif event == "move":
            shard = place[order_id] = 12 - shard
            clock[order_id] += 1
        seqs[shard] += 1
        rows.append(
            ROW._replace(
                order_id=order_id, shard=shard, seq=seqs[shard], epoch=epochs[shard], remaining=number,
                price=number, updated_ms=clock[order_id],
            )
        )  # fmt: skip
    return rows


LIVES = st.tuples(rows_of_a_life(), st.randoms(use_true_random=False))


async def check_life(url: str, rows: Sequence[OrderRow], order: Sequence[int]) -> None:
    """Any order of arrival, in batches of any cut, with repeats: no row replaces a newer one."""
    async with open_database(url) as db:
        kept: dict[int, OrderRow] = {}
        for at in range(0, len(order), 3):
            batch = [rows[number] for number in order[at : at + 3]]
            await db.put_orders(batch)
            for row in batch:
                if row.order_id not in kept or is_newer(row, kept[row.order_id]):
                    kept[row.order_id] = row
            assert {order_id: await db.order(order_id) for order_id in kept} == kept


def check_lives(make_url: object, examples: int) -> None:
    assert callable(make_url)

    @settings(
        deadline=None,
        phases=[Phase.reuse, Phase.generate],
        suppress_health_check=list(HealthCheck),
        max_examples=examples,
    )
    @given(LIVES)
    def example(life: tuple[list[OrderRow], object]) -> None:
        rows, rng = life
        numbers = list(range(len(rows))) * 2
        rng.shuffle(numbers)  # type: ignore[attr-defined]
        asyncio.run(check_life(make_url(), rows, numbers))

    example()


def test_lives_on_sqlite(tmp_path: Path) -> None:
    numbers = itertools.count()
    check_lives(lambda: f"sqlite:///{tmp_path / str(next(numbers))}?synchronous=normal", 60)


def test_lives_on_postgresql(postgresql: PostgresqlServer) -> None:
    def url() -> str:
        postgresql.empty()
        return postgresql.url

    check_lives(url, 15)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["mariadb", "mysql"])
def test_lives_on_mariadb(mariadb: MariadbServer, scheme: str) -> None:
    def url() -> str:
        mariadb.empty()
        return mariadb.url.replace("mariadb://", f"{scheme}://")

    check_lives(url, 15)


def test_the_rule_is_the_true_order_of_the_rows() -> None:
    """If the time of an order never goes back, and is later after a move."""

    @settings(max_examples=200)
    @given(rows_of_a_life())
    def example(rows: list[OrderRow]) -> None:
        for first, second in itertools.combinations(rows, 2):
            if first.order_id == second.order_id:
                assert is_newer(second, first)
                assert not is_newer(first, second)

    example()
