"""The tables, once for every database, and the order of a row's columns in every statement."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Integer, LargeBinary, MetaData, String, Table, UniqueConstraint
from sqlalchemy.dialects import mysql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from roost.core.ids import MAX_ID_BYTES

VERSION = 3
"""The schema that this code writes; `steps.py` says how a database gets there."""

METADATA = MetaData()

IN_MYSQL: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
    "mariadb_engine": "InnoDB",
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_bin",
}
"""Compared by code points: `Anna` and `anna` are two users, as they are in the store."""


def _id() -> Any:
    return String(MAX_ID_BYTES).with_variant(String(MAX_ID_BYTES, collation="C"), "postgresql")


def _blob() -> Any:
    return LargeBinary().with_variant(mysql.LONGBLOB(), "mysql", "mariadb")


def _row_id() -> Any:
    """In SQLite a number of this type is the place of the row itself, and needs no index."""
    return BigInteger().with_variant(Integer(), "sqlite")


def _number(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False)


users = Table(
    "roost_users",
    METADATA,
    Column("type", _id(), primary_key=True),
    Column("user_id", _id(), primary_key=True),
    Column("owner_server", _id(), nullable=True),
    Column("owner_life", _id(), nullable=True),
    _number("epoch"),
    _number("revision"),
    Column("schema_version", Integer, nullable=False),
    Column("min_reader", Integer, nullable=False),
    _number("last_sequence"),
    Column("replies", _blob(), nullable=False),
    Column("state", _blob(), nullable=True),
    _number("created_at"),
    _number("updated_at"),
    _number("claim_id"),
    **IN_MYSQL,
)

ROW = list(users.c)
"""The columns that `model.row_of` takes, in its order."""

leases = Table(
    "roost_leases",
    METADATA,
    Column("type", _id(), primary_key=True),
    Column("server_id", _id(), primary_key=True),
    Column("life", _id(), primary_key=True),
    _number("until_ms"),
    **IN_MYSQL,
)
"""A row for each server that carries on without the store, until then by the database's clock."""

orders = Table(
    "roost_orders",
    METADATA,
    Column("order_id", _row_id(), primary_key=True, autoincrement=False),
    Column("shard", Integer, nullable=False),
    _number("seq"),
    _number("epoch"),
    Column("account", _id(), nullable=False),
    Column("symbol", _id(), nullable=False),
    Column("side", Integer, nullable=False),
    _number("price"),
    _number("quantity"),
    _number("remaining"),
    Column("state", Integer, nullable=False),
    _number("created_ms"),
    _number("updated_ms"),
    UniqueConstraint("shard", "seq", "order_id", name="roost_orders_by_shard"),
    **IN_MYSQL,
)
"""A row for each order, its columns in the order of `orders.OrderRow`.

The constraint is there for its index: only with its table MySQL makes an index "if not exists". There is none
by account: it doubled the cost of a new order, and nobody asks by it.
"""

versions = Table(
    "roost_schema",
    METADATA,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("name", String(100), nullable=False),
    _number("applied_at"),
    **IN_MYSQL,
)
"""A row for each step that was taken; the largest version is the schema's."""


class now_ms(FunctionElement[int]):  # noqa: N801 — reads as a function of SQL
    """Milliseconds since 1970 by the database's clock."""

    inherit_cache = True
    type = BigInteger()


_NOW = {
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000.0 AS INTEGER)",
    "postgresql": "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
    "mysql": "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)",
    "mariadb": "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)",
}


@compiles(now_ms)
def _compile_now(_element: now_ms, compiler: SQLCompiler, **_kw: Any) -> str:
    return _NOW[compiler.dialect.name]
