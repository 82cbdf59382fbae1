"""PostgreSQL by asyncpg. Prepared statements are cached for each connection by the driver."""

from __future__ import annotations

from typing import Any

import asyncpg

from roost.core.errors import RoostError
from roost.db.errors import (
    DatabaseAccessDenied,
    DatabaseError,
    DatabaseFull,
    DatabaseRefused,
    DatabaseUnavailable,
)
from roost.db.pool import Session
from roost.db.statements import DialectName, Statement
from roost.db.url import DatabaseUrl
from roost.db.verbs import Result

FAMILIES: dict[str, type[DatabaseError]] = {
    "08": DatabaseUnavailable,  # connection exception
    "57P": DatabaseUnavailable,  # shutting down, crashed, starting
    "53100": DatabaseFull,  # disk full
    "53": DatabaseUnavailable,  # out of memory, too many connections
    "40": DatabaseUnavailable,  # deadlock, serialization: undone, try again
    "55P03": DatabaseUnavailable,  # lock not available
    "25006": DatabaseFull,  # read-only
    "28": DatabaseAccessDenied,  # who are you
    "3D000": DatabaseAccessDenied,  # no such database
    "42501": DatabaseAccessDenied,  # insufficient privilege
}
"""Beginning of a SQLSTATE → what it means for us; the longest that fits counts."""

LOST = (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError)
"""The last: a statement on a connection that the server has just said goodbye on."""


class PostgresqlSession:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @property
    def is_open(self) -> bool:
        return not self._connection.is_closed()

    async def run(self, statement: Statement, args: tuple[object, ...]) -> Result:
        rows = await self._connection.fetch(statement.sql, *args)
        return Result(rows, len(rows))

    def terminate(self) -> None:
        self._connection.terminate()

    async def close(self) -> None:
        await self._connection.close(timeout=1)


class PostgresqlDriver:
    dialect: DialectName = "postgresql"

    def __init__(self, url: DatabaseUrl) -> None:
        self._url = url

    async def connect(self) -> Session:
        url = self._url
        return PostgresqlSession(
            await asyncpg.connect(
                host=url.host or str(url.path),
                port=url.port,
                user=url.user or None,
                password=url.password or None,
                database=url.database,
                ssl=url.tls.context() if url.tls else False,
                server_settings={"application_name": "roost"},
            )
        )

    async def check(self, session: Session) -> None:
        """Nothing: every PostgreSQL that is maintained can do it."""

    def translated(self, error: Exception) -> Exception:
        if isinstance(error, RoostError):
            return error
        if isinstance(error, asyncpg.PostgresError):
            state = error.sqlstate or ""
            return family_of(state)(f"{self._url}: {error} ({state})")
        if isinstance(error, asyncpg.DataError) or not isinstance(error, LOST):
            return DatabaseRefused(f"{self._url}: {type(error).__name__}: {error}")
        return DatabaseUnavailable(f"{self._url}: {error}")


def family_of(state: str) -> type[DatabaseError]:
    for length in (5, 3, 2):
        if family := FAMILIES.get(state[:length]):
            return family
    return DatabaseRefused
