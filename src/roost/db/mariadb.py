"""MariaDB and MySQL by asyncmy, which puts the values into the text of a statement itself."""

from __future__ import annotations

import re
from typing import Any

import asyncmy
from asyncmy import errors

from roost.core.errors import RoostError, StartFailed
from roost.db.errors import (
    DatabaseAccessDenied,
    DatabaseError,
    DatabaseFull,
    DatabaseRefused,
    DatabaseUnavailable,
)
from roost.db.options import DatabaseOptions
from roost.db.pool import Session
from roost.db.statements import DialectName, Statement
from roost.db.url import DatabaseUrl
from roost.db.verbs import Many, Result, plain

LEAST_MARIADB = (10, 5)
"""The first with INSERT … RETURNING."""

SESSION = (
    "SET SESSION sql_mode = 'STRICT_TRANS_TABLES', time_zone = '+00:00'",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
)
"""Too long a value is an error, a backslash escapes, and a row is locked without its neighbours."""

LOST = {0, 2002, 2003, 2006, 2013, 2014, 2055}
SERVER_ENDS_IT = {1040, 1053, 1080, 1152, 1158, 1159, 1160, 1161, 1184, 1317, 1927, 3169, 4031}
UNDONE = {1205, 1213}
"""Waited too long for a lock, deadlock."""

FAMILIES: dict[type[DatabaseError], set[int]] = {
    DatabaseUnavailable: LOST | SERVER_ENDS_IT | UNDONE,
    DatabaseFull: {1021, 1114, 1290, 1792, 1836},
    DatabaseAccessDenied: {1044, 1045, 1049, 1130, 1142, 1227, 1698},
}
"""Number of an error → what it means for us."""


class MariadbSession:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @property
    def is_open(self) -> bool:
        return bool(self._connection.connected)

    async def run(self, statement: Statement, args: tuple[object, ...]) -> Result:
        cursor = self._connection.cursor()
        if isinstance(args, Many):
            return Result((), await cursor.executemany(statement.sql, args))
        changed = await cursor.execute(statement.sql, args or None)
        return Result(await cursor.fetchall(), changed)

    def terminate(self) -> None:
        self._connection.close()

    async def close(self) -> None:
        await self._connection.ensure_closed()


class MariadbDriver:
    def __init__(self, url: DatabaseUrl, options: DatabaseOptions) -> None:
        self.dialect: DialectName = "mariadb" if url.kind == "mariadb" else "mysql"
        self._url, self._options = url, options

    async def connect(self) -> Session:
        url = self._url
        connection = await asyncmy.connect(
            host=url.host or None,
            port=url.port,
            unix_socket=None if url.host else str(url.path),
            user=url.user,
            password=url.password,
            database=url.database,
            ssl=url.tls.context() if url.tls else None,
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=self._options.connect_timeout_s,
        )
        session = MariadbSession(connection)
        try:
            for sql in SESSION:
                await session.run(*plain(sql))
        except BaseException:
            session.terminate()
            raise
        return session

    async def check(self, session: Session) -> None:
        found = await session.run(*plain("SELECT VERSION(), @@max_allowed_packet"))
        version, packet = found.rows[0]
        if self.dialect == "mariadb":
            check_mariadb(str(version))
        needed = 4 * self._options.max_state_bytes + 65_536  # state and replies, each byte escaped at worst
        if int(packet) < needed:
            raise StartFailed(
                f"max_allowed_packet of {self._url} is {packet}, states of this size need {needed}",
                hint="raise it on the server, or lower ROOST_DB__MAX_STATE_BYTES",
            )

    def translated(self, error: Exception) -> Exception:
        if isinstance(error, RoostError):
            return error
        if isinstance(error, errors.MySQLError):
            number = error.args[0] if error.args and isinstance(error.args[0], int) else -1
            text = error.args[1] if len(error.args) > 1 else error
            return family_of(number)(f"{self._url}: {text} ({number})")
        if isinstance(error, OSError):
            return DatabaseUnavailable(f"{self._url}: {error}")
        return DatabaseRefused(f"{self._url}: {type(error).__name__}: {error}")


def check_mariadb(version: str) -> None:
    """Refuse what cannot INSERT … RETURNING: MySQL, and a MariaDB that is too old."""
    number = re.search(r"(\d+)\.(\d+)\.\d+-MariaDB", version)
    if number is None:
        raise StartFailed(
            f"the server is no MariaDB but {version}", hint="write mysql:// instead of mariadb://"
        )
    if (int(number[1]), int(number[2])) < LEAST_MARIADB:
        raise StartFailed(
            f"MariaDB {version} is too old: 10.5 is needed", hint="update it, or write mysql://"
        )


def family_of(number: int) -> type[DatabaseError]:
    for family, numbers in FAMILIES.items():
        if number in numbers:
            return family
    return DatabaseRefused
