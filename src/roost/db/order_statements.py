"""The statements of orders: a row takes the place of another only if it is newer (`orders.is_newer`).

Many rows are one statement: by arrays on PostgreSQL, by `executemany` on MariaDB, which gets one INSERT of
many rows, and by a statement of so many rows on SQLite.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Select, and_, bindparam, case, column, func, or_, select
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.sql.elements import ColumnElement

from roost.db.schema import orders

COLUMNS = list(orders.c)
NAMES = [one.name for one in COLUMNS]
FOR_GOOD = ("order_id", "account", "symbol", "side", "created_ms")
"""What an order has from the beginning: not written again."""

ROWS_TOGETHER = 250

JUDGED = ("seq", "epoch", "updated_ms", "shard")
"""The columns that the rule looks at."""


def put(dialect: str) -> Any:
    if dialect in ("mysql", "mariadb"):
        new = mysql.insert(orders).values({name: _value(name) for name in NAMES})
        return new.on_duplicate_key_update(_one_by_one(new.inserted))
    if dialect == "postgresql":
        by_arrays = postgresql.insert(orders).from_select(NAMES, select(_rows_of_arrays()))
        return by_arrays.on_conflict_do_update(
            index_elements=[orders.c.order_id],
            set_=_changes(by_arrays.excluded),
            where=_is_newer(by_arrays.excluded),
        )
    by_values = sqlite.insert(orders).values({name: _value(name) for name in NAMES})
    return by_values.on_conflict_do_update(
        index_elements=[orders.c.order_id],
        set_=_changes(by_values.excluded),
        where=_is_newer(by_values.excluded),
    )


def together(one_row: str) -> str:
    """SQLite's statement of one row as that of `ROWS_TOGETHER`: a thread that carries it out for each row has
    to win the interpreter back from the event loop each time."""
    values = f"({', '.join('?' * len(NAMES))})"
    before, found, after = one_row.partition(values)
    assert found
    return before + ", ".join([values] * ROWS_TOGETHER) + after


def read() -> Select[Any]:
    return select(*COLUMNS).where(orders.c.order_id == _value("order_id"))


def last_seq() -> Select[Any]:
    return select(func.max(orders.c.seq)).where(orders.c.shard == _value("shard"))


def newest_id() -> Select[Any]:
    """The largest id from one on that has some bits, by the primary key: no row before it is looked at."""
    bits = orders.c.order_id.bitwise_and(_number("mask")) == _number("bits")
    return select(func.max(orders.c.order_id)).where(and_(orders.c.order_id >= _number("at_least"), bits))


def between() -> Select[Any]:
    """The rows that commands of a shard after one and before another have written."""
    after, before = (bindparam(name, type_=orders.c.seq.type) for name in ("after", "before"))
    numbers = and_(orders.c.seq > after, orders.c.seq < before)
    return select(*COLUMNS).where(and_(orders.c.shard == _value("shard"), numbers))


def _value(name: str) -> Any:
    return bindparam(name, type_=orders.c[name].type)


def _number(name: str) -> Any:
    return bindparam(name, type_=BigInteger())


def _rows_of_arrays() -> Any:
    arrays = [bindparam(name, type_=postgresql.ARRAY(orders.c[name].type)) for name in NAMES]
    return func.unnest(*arrays).table_valued(*(column(name) for name in NAMES), name="new").render_derived()


def _changes(new: Any) -> dict[str, Any]:
    return {name: new[name] for name in NAMES if name not in FOR_GOOD}


def _is_newer(new: Any) -> ColumnElement[bool]:
    later_command = or_(new.epoch > orders.c.epoch, and_(new.epoch == orders.c.epoch, new.seq > orders.c.seq))
    return or_(
        and_(new.shard == orders.c.shard, later_command),
        and_(new.shard != orders.c.shard, new.updated_ms > orders.c.updated_ms),
    )


def _one_by_one(new: Any) -> list[tuple[str, Any]]:
    """MariaDB and MySQL compute each column from the row as the columns before it left it.

    So the judged ones come last, each by what can still be known: within a shard the epoch of the newer row
    is never smaller; after epoch and seq are set, being equal to the new ones means that they were taken.
    """
    newer, same_shard = _is_newer(new), new.shard == orders.c.shard
    taken = and_(new.epoch == orders.c.epoch, new.seq == orders.c.seq)
    plain = [
        (name, _if(newer, value, orders.c[name]))
        for name, value in _changes(new).items()
        if name not in JUDGED
    ]
    later = func.greatest(orders.c.epoch, new.epoch)
    moved_later = new.updated_ms > orders.c.updated_ms
    return [
        *plain,
        ("seq", _if(newer, new.seq, orders.c.seq)),
        ("epoch", case((same_shard, later), (moved_later, new.epoch), else_=orders.c.epoch)),
        (
            "updated_ms",
            case(
                (and_(same_shard, taken), new.updated_ms),
                (same_shard, orders.c.updated_ms),
                else_=func.greatest(orders.c.updated_ms, new.updated_ms),
            ),
        ),
        ("shard", _if(and_(taken, new.updated_ms == orders.c.updated_ms), new.shard, orders.c.shard)),
    ]


def _if(condition: ColumnElement[bool], value: Any, otherwise: Any) -> ColumnElement[Any]:
    return case((condition, value), else_=otherwise)
