"""Every statement, written once with SQLAlchemy Core and compiled once for each dialect.

What runs is plain text with positional parameters, executed on the driver. The rules are in its conditions:

- claim: the row's epoch is the one that was judged, and the new one is above it (R5). Nothing but the owner,
  the epoch and the claim's id changes.
- flush: the row's epoch is mine, and its revision is below mine (R4).
- claim unless leased: also, no lease of the row's owner stands (`leases.py`). A row at epoch 0 has no owner.
- release: the row names me at this epoch; the owner is cleared, the epoch stays (R8).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from sqlalchemy import (
    BindParameter,
    Update,
    and_,
    bindparam,
    case,
    column,
    exists,
    func,
    insert,
    literal_column,
    null,
    select,
    union_all,
    update,
)
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.dialects.mysql import mariadb
from sqlalchemy.dialects.mysql.asyncmy import MySQLDialect_asyncmy
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.sql.elements import ClauseElement, ColumnElement
from sqlalchemy.sql.selectable import FromClause

from roost.db import leases, order_statements
from roost.db.schema import ROW, now_ms, users, versions

DialectName = Literal["sqlite", "postgresql", "mariadb", "mysql"]

DIALECTS: dict[DialectName, Callable[[], Dialect]] = {
    "sqlite": SQLiteDialect_pysqlite,
    "postgresql": PGDialect_asyncpg,
    "mariadb": lambda: mariadb.loader("asyncmy")(),
    "mysql": MySQLDialect_asyncmy,
}

ON_CONFLICT = ("sqlite", "postgresql")
"""Dialects with INSERT … ON CONFLICT … WHERE; the others have ON DUPLICATE KEY."""

FLUSHED = ("revision", "state", "last_sequence", "replies", "schema_version", "min_reader")
"""The columns that a flush writes."""

FLUSH = ("type", "user_id", "epoch", *FLUSHED)
"""What is said of a row when many are flushed."""

TOGETHER = (32, 8)
"""Rows that one statement flushes."""


class Statement(NamedTuple):
    """Text for the driver, and how to put named values into the order of its parameters."""

    sql: str
    names: tuple[str, ...]
    in_order: Callable[[Mapping[str, Any]], tuple[Any, ...]]


class Statements(NamedTuple):
    """All of one dialect."""

    read: Statement
    claim_new: Statement
    """Of a user without a row, judged 0."""
    claim: Statement
    claim_unless_leased: Statement
    flush: Statement
    flush_many: Statement | None
    """Many rows from arrays, answering the keys of those it wrote; only PostgreSQL has it."""
    flush_together: Mapping[int, Statement]
    """By how many rows, the largest first; only for SQLite, which hands the interpreter over for each
    statement."""
    release: Statement
    keep_lease: Statement
    drop_lease: Statement
    lease_left: Statement
    put_orders: Statement
    """Of one row, to be carried out with many; of arrays where there is a `flush_many`."""
    put_orders_together: Statement | None
    """Of `order_statements.ROWS_TOGETHER` rows; only for SQLite, which hands the interpreter over for each
    statement."""
    order: Statement
    last_seq: Statement
    newest_order_id: Statement
    orders_between: Statement
    begin: Statement | None
    """Before statements that belong together; None: SQLite's writer has begun, PostgreSQL needs only one."""
    commit: Statement | None
    version: Statement
    add_version: Statement


def plain(sql: str) -> Statement:
    """A statement without parameters."""
    return Statement(sql, (), lambda _values: ())


@cache
def statements(name: DialectName) -> Statements:
    dialect = DIALECTS[name]()
    on_conflict = name in ON_CONFLICT
    claim_new, claim, claim_unless_leased = _claims(name)
    flush, release = _flush(), _release()
    if name == "postgresql":
        flush, release = flush.returning(users.c.epoch), release.returning(users.c.epoch)
    put_orders = _compiled(order_statements.put(name), dialect)
    return Statements(
        read=_compiled(select(*ROW).where(_this_user()), dialect),
        claim_new=_compiled(claim_new, dialect),
        claim=_compiled(claim, dialect),
        claim_unless_leased=_compiled(claim_unless_leased, dialect),
        flush=_compiled(flush, dialect),
        flush_many=_compiled(_flush_arrays(), dialect) if name == "postgresql" else None,
        flush_together={rows: _compiled(_flush_together(rows), dialect) for rows in TOGETHER}
        if name == "sqlite"
        else {},
        release=_compiled(release, dialect),
        keep_lease=_compiled(leases.keep(name), dialect),
        drop_lease=_compiled(leases.drop(), dialect),
        lease_left=_compiled(leases.left(), dialect),
        put_orders=put_orders,
        put_orders_together=plain(order_statements.together(put_orders.sql)) if name == "sqlite" else None,
        order=_compiled(order_statements.read(), dialect),
        last_seq=_compiled(order_statements.last_seq(), dialect),
        newest_order_id=_compiled(order_statements.newest_id(), dialect),
        orders_between=_compiled(order_statements.between(), dialect),
        begin=None if on_conflict else plain("BEGIN"),
        commit=None if on_conflict else plain("COMMIT"),
        version=_compiled(select(func.max(versions.c.version)), dialect),
        add_version=_compiled(
            insert(versions).values(
                version=_of(versions, "version"), name=_of(versions, "name"), applied_at=now_ms()
            ),
            dialect,
        ),
    )


def _compiled(element: ClauseElement, dialect: Dialect) -> Statement:
    compiled: Any = element.compile(dialect=dialect)
    names = tuple(compiled.positiontup or ())
    return Statement(compiled.string, names, _picker(names))


def _picker(names: tuple[str, ...]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    if len(names) > 1:
        return itemgetter(*names)
    return lambda values: tuple(values[name] for name in names)


def _of(table: Any, name: str, parameter: str = "") -> BindParameter[Any]:
    """A parameter with the type of a column."""
    return bindparam(parameter or name, type_=table.c[name].type)


def _value(name: str) -> BindParameter[Any]:
    return _of(users, name)


def _literal(sql: str) -> ColumnElement[Any]:
    return literal_column(sql)


JUDGED: BindParameter[Any] = _of(users, "epoch", "judged")


def _this_user() -> ColumnElement[bool]:
    return and_(users.c.type == _value("type"), users.c.user_id == _value("user_id"))


def _judged_right() -> ColumnElement[bool]:
    """R5: compared with the epoch that the caller judged, and strictly upward."""
    return and_(users.c.epoch == JUDGED, _value("epoch") > JUDGED)


def _new_row() -> dict[str, Any]:
    zero, one = _literal("0"), _literal("1")
    return {
        **{
            name: _value(name)
            for name in ("type", "user_id", "owner_server", "owner_life", "epoch", "claim_id")
        },
        "revision": zero,
        "last_sequence": zero,
        "schema_version": one,
        "min_reader": one,
        "replies": _literal("''"),
        "created_at": now_ms(),
        "updated_at": now_ms(),
    }


def _claimed() -> dict[str, Any]:
    """What a claim changes, the epoch last."""
    taken = {name: _value(name) for name in ("owner_server", "owner_life", "claim_id")}
    return {**taken, "updated_at": now_ms(), "epoch": _value("epoch")}


def _claims(name: DialectName) -> tuple[ClauseElement, ClauseElement, ClauseElement]:
    """(of a user without a row, of one with a row, the same unless leased); they answer the row where the
    dialect can."""
    by_update = update(users).where(_this_user(), _judged_right()).values(_claimed())
    unless_leased = by_update.where(leases.is_not_leased(*_me()))
    if name == "postgresql":
        return _on_conflict(name).returning(*ROW), by_update.returning(*ROW), unless_leased.returning(*ROW)
    if name == "sqlite":  # to answer the row costs it more than to be asked for it in the same transaction
        return _on_conflict(name), by_update, unless_leased
    if name == "mysql":
        return _on_duplicate(), by_update, unless_leased
    there = _on_duplicate_if(_this_user())
    free = _on_duplicate_if(and_(_this_user(), leases.is_not_leased(*_me())))
    return _on_duplicate().returning(*ROW), there.returning(*ROW), free.returning(*ROW)


def _me() -> tuple[BindParameter[Any], BindParameter[Any]]:
    return _value("owner_server"), _value("owner_life")


def _on_conflict(name: DialectName) -> Any:
    """A new row, or one that was put there at epoch 0 and that nobody has claimed yet."""
    new: Any = sqlite.insert(users) if name == "sqlite" else postgresql.insert(users)
    nothing = {"replies": _literal("x''")} if name == "sqlite" else {}
    return new.values(_new_row() | nothing).on_conflict_do_update(
        index_elements=[users.c.type, users.c.user_id], set_=_claimed(), where=_judged_right()
    )


def _on_duplicate() -> mysql.Insert:
    return mysql.insert(users).values(_new_row()).on_duplicate_key_update(_claimed_if_judged_right())


def _on_duplicate_if(condition: ColumnElement[bool]) -> mysql.Insert:
    """MariaDB has no UPDATE … RETURNING: an insert that is none, because a row for which it holds is there.

    What the condition says of the owner is true of the row that is changed: it has the same epoch.
    """
    row = _new_row()
    there = select(_literal("1")).select_from(users).where(condition)
    source = select(*(value.label(f"new_{name}") for name, value in row.items())).where(exists(there))
    new = mysql.insert(users).from_select(list(row), source, include_defaults=False)
    return new.on_duplicate_key_update(_claimed_if_judged_right())


def _claimed_if_judged_right() -> list[tuple[str, Any]]:
    """In their order: each is computed from the row as those before it left it, so the epoch comes last."""
    return [(name, case((_judged_right(), value), else_=users.c[name])) for name, value in _claimed().items()]


def _flush() -> Update:
    fence = and_(users.c.epoch == _value("epoch"), users.c.revision < _value("revision"))
    return (
        update(users)
        .where(_this_user(), fence)
        .values({name: _value(name) for name in FLUSHED} | {"updated_at": now_ms()})
    )


def _flush_arrays() -> Update:
    arrays = [bindparam(name, type_=postgresql.ARRAY(users.c[name].type)) for name in FLUSH]
    new = func.unnest(*arrays).table_valued(*(column(name) for name in FLUSH), name="new").render_derived()
    return _flush_many(new).returning(users.c.type, users.c.user_id)


def _flush_together(rows: int) -> Update:
    given = [select(*(_of(users, name, f"{name}_{n}").label(name) for name in FLUSH)) for n in range(rows)]
    return _flush_many(union_all(*given).subquery("new"))


def _flush_many(new: FromClause) -> Update:
    """The same rule for many rows. A user may be in it once: of two rows the database would take either."""
    same = and_(users.c.type == new.c.type, users.c.user_id == new.c.user_id)
    fence = and_(users.c.epoch == new.c.epoch, users.c.revision < new.c.revision)
    changes = {name: new.c[name] for name in FLUSHED} | {"updated_at": now_ms()}
    return update(users).where(same, fence).values(changes)


def _release() -> Update:
    mine = and_(
        users.c.owner_server == _value("owner_server"),
        users.c.owner_life == _value("owner_life"),
        users.c.epoch == _value("epoch"),
    )
    nobody = {"owner_server": null(), "owner_life": null(), "updated_at": now_ms()}
    return update(users).where(_this_user(), mine).values(nobody)
