"""The lease of a server in the database, for as long as it cannot reach the store, as parts of statements.

A claim that asks for it is refused while the row's owner holds one, by the database's clock. It may wait
for the row after it has looked at the leases. That is harmless: who had none when the claim began had lost
the right to serve before it, and a later lease gives that back to nobody.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Delete,
    Select,
    and_,
    bindparam,
    delete,
    exists,
    literal_column,
    or_,
    select,
)
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.sql.elements import ColumnElement

from roost.db.schema import leases, now_ms, users

KEPT_MS = 3_600_000
"""How long a lease that has ended stays, before somebody who drops one takes it along."""


def keep(dialect: str) -> Any:
    """Make or prolong a lease: for `ttl_ms` from now."""
    values = {key: _value(key) for key in ("type", "server_id", "life")} | {"until_ms": _end()}
    if dialect in ("mysql", "mariadb"):
        return mysql.insert(leases).values(values).on_duplicate_key_update(until_ms=_end())
    new: Any = sqlite.insert(leases) if dialect == "sqlite" else postgresql.insert(leases)
    key = [leases.c.type, leases.c.server_id, leases.c.life]
    return new.values(values).on_conflict_do_update(index_elements=key, set_={"until_ms": _end()})


def drop() -> Delete:
    """End a lease, and forget those that ended long ago."""
    return delete(leases).where(
        or_(_this_owner(), leases.c.until_ms < now_ms() - literal_column(str(KEPT_MS)))
    )


def left() -> Select[Any]:
    """How many milliseconds a lease has left."""
    return select(leases.c.until_ms - now_ms()).where(_this_owner())


def is_not_leased(my_server: Any, my_life: Any) -> ColumnElement[bool]:
    """Whether no lease of the row's owner stands, unless that is myself."""
    same = and_(
        leases.c.type == users.c.type,
        leases.c.server_id == users.c.owner_server,
        leases.c.life == users.c.owner_life,
    )
    another = or_(leases.c.server_id != my_server, leases.c.life != my_life)
    standing = select(leases.c.until_ms).where(same, leases.c.until_ms > now_ms(), another)
    return ~exists(standing.correlate(users))


def _value(name: str) -> Any:
    return bindparam(name, type_=leases.c[name].type)


def _end() -> ColumnElement[Any]:
    return now_ms() + bindparam("ttl_ms", type_=BigInteger())


def _this_owner() -> ColumnElement[bool]:
    return and_(*(leases.c[name] == _value(name) for name in ("type", "server_id", "life")))
