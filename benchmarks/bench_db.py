"""How many users per second are claimed and flushed on each database, beside its driver alone?"""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import sqlite3
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import uvloop

from report import Case, need, publish, result_file
from roost.core.owner import Owner
from roost.db.database import Database, open_database
from roost.db.model import Claimed, Flush, Flushed
from roost.db.statements import Statement, statements
from roost.db.verbs import flush_values
from roost.testing import MariadbServer, PostgresqlServer, missing_database, run_mariadb, run_postgresql
from roost.testing.databases import DATABASE, PASSWORD, USER

try:
    import asyncpg
except ImportError:
    need("asyncpg")
try:
    import asyncmy
except ImportError:
    need("asyncmy")

ROUNDS = 5
ROUND_S = 1.0
WARM_UP_S = 0.3
IN_FLIGHT = 16
BATCH = 50
STATE = os.urandom(400)
OWNER, OTHER = Owner("501", "life"), Owner("502", "life")
PROMISED = {"asyncpg": 0.7, "asyncmy": 0.5, "sqlite3": 0.5}

METHOD = (
    f"Throwaway PostgreSQL and MariaDB on loopback TCP with fsync on, SQLite files in WAL on the same disk. "
    f"{IN_FLIGHT} callers, each with a user of its own, repeat a pair as soon as it is answered: claim the "
    f"next epoch, flush a state of {len(STATE)} bytes; the rate is pairs per second over {ROUND_S:g} s. A "
    f"login is the claim that entity servers make: by another server than the row's owner, and only while "
    f"that one holds no lease in the database (`unless_leased`). "
    f"Contenders take turns within each of {ROUNDS} rounds; the median counts. The driver alone runs the "
    f"same statements: asyncpg and asyncmy on {IN_FLIGHT} held connections, one for each caller; sqlite3 "
    f"blocking, one pair after the other, each statement its own transaction at the same level of "
    f"`synchronous`. Batches: flushes of {BATCH} users at once, in users per second, beside the driver's "
    f"statement by statement with as many in flight. NB: with synchronous=full we beat sqlite3 because one "
    f"commit of ours serves all who wait."
)

Pair = Callable[[str, int], Awaitable[Any]]
"""(user, n): claim epoch n after n - 1, then flush under it."""


class Ours:
    def __init__(self, db: Database) -> None:
        self._db = db

    async def pair(self, user: str, n: int) -> None:
        assert isinstance(await self._db.claim("entity", user, OWNER, n, judged=n - 1), Claimed)
        assert await self._db.flush(flush_of(user, n)) == Flushed()

    async def login(self, user: str, n: int) -> None:
        claimed = await self._db.claim("entity", user, owner_of(n), n, judged=n - 1, unless_leased=True)
        assert isinstance(claimed, Claimed)
        assert await self._db.flush(flush_of(user, n)) == Flushed()

    async def batch(self, user: str, n: int) -> None:
        answers = await self._db.flush_many([flush_of(f"{user}-{k}", 1, n) for k in range(BATCH)])
        assert answers == [Flushed()] * BATCH

    async def prepare(self, user: str) -> None:
        for k in range(BATCH):
            await self._db.claim("entity", f"{user}-{k}", OWNER, 1, judged=0)


class Bare:
    """The same statements, executed by `run` on the driver."""

    def __init__(
        self, dialect: Any, run: Callable[[str, Statement, tuple[Any, ...]], Awaitable[int]]
    ) -> None:
        self._known, self._run = statements(dialect), run

    async def pair(self, user: str, n: int) -> None:
        await self._pair(self._known.claim, user, n, OWNER)

    async def login(self, user: str, n: int) -> None:
        await self._pair(self._known.claim_unless_leased, user, n, owner_of(n))

    async def _pair(self, with_row: Statement, user: str, n: int, owner: Owner) -> None:
        claim = with_row if n > 1 else self._known.claim_new
        values = {
            "type": "entity",
            "user_id": user,
            "owner_server": owner.server_id,
            "owner_life": owner.life,
            "epoch": n,
            "judged": n - 1,
            "claim_id": n,
        }
        assert await self._run(user, claim, claim.in_order(values)) == 1
        await self.flush(user, flush_of(user, n))

    async def flush(self, caller: str, flush: Flush) -> None:
        statement = self._known.flush
        assert await self._run(caller, statement, statement.in_order(flush_values(flush))) == 1

    async def batch(self, user: str, n: int) -> None:
        for k in range(BATCH):
            await self.flush(user, flush_of(f"{user}-{k}", 1, n))


def owner_of(n: int) -> Owner:
    """Another one than of the claim before."""
    return OTHER if n % 2 else OWNER


def user_of(contender: str, case: Case, n: int) -> str:
    """Of one contender and one case alone: epochs begin at 1 in each."""
    return f"{contender}-{re.sub(r'[^A-Za-z]', '', case.name)}-{n}"


def caller_of(user: str) -> str:
    """Whose connection is used: the same ones in every case."""
    return user.rpartition("-")[2]


def flush_of(user: str, epoch: int, revision: int = 0) -> Flush:
    return Flush("entity", user, epoch, revision or epoch, STATE)


async def rate(once: Pair, numbers: dict[str, itertools.count[int]], callers: int, seconds: float) -> float:
    """How often per second `callers` get through, each as soon as its last one is answered."""
    loop = asyncio.get_running_loop()
    done = 0
    started = loop.time()

    async def caller(user: str) -> None:
        nonlocal done
        while loop.time() < started + seconds:
            await once(user, next(numbers[user]))
            done += 1

    await asyncio.gather(*(caller(user) for user in itertools.islice(numbers, callers)))
    return done / (loop.time() - started)


async def compare(case: Case, contenders: dict[str, tuple[Pair, int]], scale: int = 1) -> Case:
    numbers = {
        name: {user_of(name, case, n): itertools.count(1) for n in range(IN_FLIGHT)} for name in contenders
    }
    for name, (once, callers) in contenders.items():
        await rate(once, numbers[name], callers, WARM_UP_S)
    for number in range(1, ROUNDS + 1):
        print(f"{case.name}: round {number} of {ROUNDS}", flush=True)
        for name, (once, callers) in contenders.items():
            case.add(name, scale * await rate(once, numbers[name], callers, ROUND_S))
    return case


@asynccontextmanager
async def bare_postgresql(server: PostgresqlServer) -> AsyncIterator[Bare]:
    held: dict[str, Any] = {}

    async def run(user: str, statement: Statement, args: tuple[Any, ...]) -> int:
        caller = caller_of(user)
        connection = held.get(caller) or held.setdefault(caller, await asyncpg.connect(server.url))
        return len(await connection.fetch(statement.sql, *args))

    yield Bare("postgresql", run)
    for connection in held.values():
        await connection.close()


@asynccontextmanager
async def bare_mariadb(server: MariadbServer) -> AsyncIterator[Bare]:
    held: dict[str, Any] = {}
    where = {
        "host": "127.0.0.1",
        "port": server.port,
        "user": USER,
        "password": PASSWORD,
        "database": DATABASE,
    }

    async def run(user: str, statement: Statement, args: tuple[Any, ...]) -> int:
        caller = caller_of(user)
        connection = held.get(caller) or held.setdefault(
            caller, await asyncmy.connect(**where, autocommit=True)
        )
        async with connection.cursor() as cursor:
            changed: int = await cursor.execute(statement.sql, args)
            await cursor.fetchall()
            return changed

    yield Bare("mariadb", run)
    for connection in held.values():
        await connection.ensure_closed()


@asynccontextmanager
async def bare_sqlite(path: Path, level: str) -> AsyncIterator[Bare]:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {level}")

    async def run(_user: str, statement: Statement, args: tuple[Any, ...]) -> int:
        return len(connection.execute(statement.sql, args).fetchall())

    yield Bare("sqlite", run)
    connection.close()


async def on_server(name: str, driver: str, server: PostgresqlServer | MariadbServer) -> list[Case]:
    async with AsyncExitStack() as stack:
        ours = Ours(await stack.enter_async_context(open_database(server.url)))
        alone = bare_postgresql(server) if isinstance(server, PostgresqlServer) else bare_mariadb(server)
        bare = await stack.enter_async_context(alone)
        pairs = await compare(
            Case(f"{name}, claim + flush", {driver: PROMISED[driver]}),
            {"ours": (ours.pair, IN_FLIGHT), driver: (bare.pair, IN_FLIGHT)},
        )
        logins = await compare(
            Case(f"{name}, login + flush", {driver: PROMISED[driver]}),
            {"ours": (ours.login, IN_FLIGHT), driver: (bare.login, IN_FLIGHT)},
        )
        return [pairs, logins, await batches(name, driver, ours, bare)]


async def on_sqlite(level: str, folder: Path) -> list[Case]:
    async with AsyncExitStack() as stack:
        url = f"sqlite:///{folder / level}.db?synchronous={level}"
        ours = Ours(await stack.enter_async_context(open_database(url)))
        async with open_database(f"sqlite:///{folder / level}-bare.db"):
            pass
        bare = await stack.enter_async_context(bare_sqlite(folder / f"{level}-bare.db", level))
        return [
            await compare(
                Case(f"SQLite {level}, claim + flush", {"sqlite3": PROMISED["sqlite3"]}),
                {"ours": (ours.pair, IN_FLIGHT), "sqlite3": (bare.pair, 1)},
            ),
            await compare(
                Case(f"SQLite {level}, login + flush", {"sqlite3": PROMISED["sqlite3"]}),
                {"ours": (ours.login, IN_FLIGHT), "sqlite3": (bare.login, 1)},
            ),
        ]


async def batches(name: str, driver: str, ours: Ours, bare: Bare) -> Case:
    case = Case(f"{name}, flush_many of {BATCH}")
    for contender in ("ours", driver):
        for n in range(IN_FLIGHT):
            await ours.prepare(user_of(contender, case, n))
    return await compare(
        case, {"ours": (ours.batch, IN_FLIGHT), driver: (bare.batch, IN_FLIGHT)}, scale=BATCH
    )


def main() -> list[Case]:
    for kind in ("postgresql", "mariadb"):
        if reason := missing_database(kind):
            sys.exit(f"this benchmark {reason}")
    cases: list[Case] = []
    with tempfile.TemporaryDirectory() as folder:
        for level in ("full", "normal"):
            cases += uvloop.run(on_sqlite(level, Path(folder)))
    with run_postgresql(durable=True) as postgresql:
        cases += uvloop.run(on_server("PostgreSQL", "asyncpg", postgresql))
    with run_mariadb(durable=True) as mariadb:
        cases += uvloop.run(on_server("MariaDB", "asyncmy", mariadb))
    return cases


if __name__ == "__main__":
    path = result_file()
    sys.exit(publish("db", "pairs or users per second", METHOD, main(), path))
