"""The databases of these tests: one server of each kind for a whole run, without tables for each test."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncmy
import pytest

from roost.db.database import Database, open_database
from roost.db.url import parse_database_url
from roost.testing import MariadbServer, PostgresqlServer, missing_database, run_mariadb, run_postgresql

MYSQL = os.environ.get("ROOST_TEST_MYSQL", "")
"""URL of a MySQL server with a database whose tables of ours may be dropped. Debian has no package of it."""

KINDS = ("sqlite", "postgresql", "mariadb", "mysql-statements", *(("mysql",) if MYSQL else ()))
"""`mysql-statements`: what is written for MySQL, on the MariaDB that Debian has. `mysql`: the real one."""


@pytest.fixture(scope="session")
def shared_postgresql() -> Iterator[PostgresqlServer]:
    if reason := missing_database("postgresql"):
        pytest.skip(reason)
    with run_postgresql() as server:
        yield server


@pytest.fixture(scope="session")
def shared_mariadb() -> Iterator[MariadbServer]:
    if reason := missing_database("mariadb"):
        pytest.skip(reason)
    with run_mariadb() as server:
        yield server


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'users.db'}?synchronous=normal"


@pytest.fixture
def postgresql(shared_postgresql: PostgresqlServer) -> PostgresqlServer:
    shared_postgresql.empty()
    return shared_postgresql


@pytest.fixture
def mariadb(shared_mariadb: MariadbServer) -> MariadbServer:
    shared_mariadb.empty()
    return shared_mariadb


@pytest.fixture
async def mysql_url() -> str:
    """A MySQL that the environment names; its tables of ours are dropped."""
    if not MYSQL:
        pytest.skip("ROOST_TEST_MYSQL names no MySQL server (Debian has no package of it)")
    url = parse_database_url(MYSQL)
    connection = await asyncmy.connect(
        host=url.host, port=url.port, user=url.user, password=url.password, database=url.database
    )
    async with connection.cursor() as cursor:
        await cursor.execute("DROP TABLE IF EXISTS roost_users, roost_leases, roost_orders, roost_schema")
    await connection.ensure_closed()
    return MYSQL


@pytest.fixture(params=KINDS)
def any_url(request: pytest.FixtureRequest) -> str:
    """The same test on every database."""
    if request.param in ("sqlite", "mysql"):
        return str(request.getfixturevalue(f"{request.param}_url"))
    kind = "mariadb" if request.param == "mysql-statements" else request.param
    url: str = request.getfixturevalue(kind).url
    return url.replace("mariadb://", "mysql://") if request.param == "mysql-statements" else url


@pytest.fixture
async def db(any_url: str) -> AsyncIterator[Database]:
    async with open_database(any_url) as database:
        yield database
