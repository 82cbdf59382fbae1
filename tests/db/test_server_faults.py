"""PostgreSQL and MariaDB when something goes wrong: killed, hung, restarted, full, or not the right one."""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Iterator

import pytest

from roost.core.errors import RoostError, StartFailed
from roost.core.owner import Owner
from roost.db.database import Database, open_database
from roost.db.errors import (
    DatabaseAccessDenied,
    DatabaseFull,
    DatabaseRefused,
    DatabaseUnavailable,
    DriverMissing,
)
from roost.db.mariadb import MariadbDriver, check_mariadb
from roost.db.model import Claimed, Flush, Flushed
from roost.db.network import Driver, NetworkBackend
from roost.db.options import DatabaseOptions
from roost.db.pool import Session
from roost.db.postgresql import PostgresqlDriver
from roost.db.statements import DialectName, Statement
from roost.db.url import parse_database_url
from roost.db.verbs import Result
from roost.testing import (
    MariadbServer,
    PostgresqlServer,
    RunningDatabase,
    eventually,
    free_port,
    missing_database,
    run_mariadb,
    run_postgresql,
)
from roost.testing.databases import PASSWORD

A = Owner("501", "life-1")
HASTY = DatabaseOptions(timeout_s=0.5, connect_timeout_s=0.5)


@pytest.fixture(scope="module", params=["postgresql", "mariadb"])
def server(request: pytest.FixtureRequest) -> Iterator[RunningDatabase]:
    """A server that these tests may harm; each puts it right again."""
    if reason := missing_database(request.param):
        pytest.skip(reason)
    with run_postgresql() if request.param == "postgresql" else run_mariadb() as server:
        yield server


class Crowd:
    """Callers that each flush one revision after the other; they forgive a lost database, nothing else."""

    def __init__(self, db: Database, callers: int = 8) -> None:
        self.db, self.callers = db, callers
        self.acknowledged: dict[str, int] = {}
        self.lost = 0
        self.running = True

    async def write(self, user: str) -> None:
        row = await self.db.read("entity", user)
        epoch = row.epoch if row else 0
        answer = await self.db.claim("entity", user, A, epoch + 1, judged=epoch)
        assert isinstance(answer, Claimed)
        revision = answer.row.revision + 1
        while self.running:
            try:
                flush = Flush("entity", user, epoch + 1, revision, f"{user} {revision}".encode())
                assert await self.db.flush(flush) == Flushed()
            except DatabaseUnavailable:
                self.lost += 1
            else:
                self.acknowledged[user] = revision
                revision += 1

    async def progress(self) -> None:
        """Wait until each has written more than it has now."""
        users = [f"user-{n}" for n in range(self.callers)]
        before = dict(self.acknowledged)
        await eventually(
            lambda: all(self.acknowledged.get(user, 0) > before.get(user, 0) + 3 for user in users),
            "progress of every caller",
            timeout_s=40,
        )

    async def __aenter__(self) -> Crowd:
        self._tasks = [asyncio.create_task(self.write(f"user-{n}")) for n in range(self.callers)]
        await self.progress()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.running = False
        await asyncio.gather(*self._tasks)

    async def check(self) -> None:
        for user, revision in self.acknowledged.items():
            row = await self.db.read("entity", user)
            assert row is not None
            assert row.revision in (revision, revision + 1)
            assert row.state == f"{user} {row.revision}".encode()


@pytest.mark.parametrize("how", ["restart", "kill"])
async def test_a_database_that_is_restarted_under_load_loses_nothing_acknowledged(
    server: RunningDatabase, how: str
) -> None:
    async with open_database(server.url) as db:
        async with Crowd(db) as crowd:
            await asyncio.to_thread(server.stop if how == "restart" else server.kill)
            await asyncio.to_thread(server.start)
            await crowd.progress()
        await crowd.check()
        assert db.healthy


async def test_connections_that_are_cut_are_made_anew_and_no_caller_notices(server: RunningDatabase) -> None:
    async with open_database(server.url) as db:
        async with Crowd(db) as crowd:
            for _ in range(3):
                await asyncio.to_thread(cut_connections, server)
                await crowd.progress()
        await crowd.check()
        assert crowd.lost == 0


def cut_connections(server: RunningDatabase) -> None:
    if isinstance(server, PostgresqlServer):
        server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'roost'")
    elif isinstance(server, MariadbServer):
        server.sql("KILL USER roost")


async def test_a_database_that_hangs_is_given_up_in_time_and_found_again(server: RunningDatabase) -> None:
    async with open_database(server.url, options=HASTY) as db:
        await db.ping()
        server.pause()
        try:
            for _ in range(3):
                started = asyncio.get_running_loop().time()
                with pytest.raises(DatabaseUnavailable, match=r"within 0\.5 s"):
                    await db.read("entity", "anna")
                assert asyncio.get_running_loop().time() - started < 3
            assert not db.healthy
        finally:
            server.resume()
        await eventually(lambda: answers(db), "an answer")
        assert db.healthy


async def answers(db: Database) -> bool:
    try:
        await db.ping()
    except DatabaseUnavailable:
        return False
    return True


async def test_a_database_that_is_away_says_so_and_why(server: RunningDatabase) -> None:
    async with open_database(server.url, options=HASTY) as db:
        await db.ping()
        await asyncio.to_thread(server.stop)
        try:
            with pytest.raises(DatabaseUnavailable, match=r"within 0\.5 s: .*[Cc]onnect") as error:
                await db.read("entity", "anna")
            assert PASSWORD not in whole(error.value)
            assert [
                type(answer) for answer in await db.flush_many([Flush("entity", "anna", 1, 1, b"")] * 2)
            ] == [
                DatabaseUnavailable,
                DatabaseUnavailable,
            ]
        finally:
            await asyncio.to_thread(server.start)
        await eventually(lambda: answers(db), "an answer")


async def test_a_call_that_is_cancelled_leaves_the_others_alone(server: RunningDatabase) -> None:
    async with open_database(server.url, options=DatabaseOptions(pool_size=2)) as db:
        for _ in range(20):
            calls = [asyncio.create_task(db.read("entity", f"user-{n}")) for n in range(12)]
            await asyncio.sleep(0)
            for call in calls[::2]:
                call.cancel()
            ends = await asyncio.gather(*calls, return_exceptions=True)
            assert not any(isinstance(end, RoostError) for end in ends)
        await db.ping()


def whole(error: BaseException) -> str:
    """Everything that a log might show of an error."""
    hint = error.hint if isinstance(error, RoostError) else ""
    return "".join(traceback.format_exception(error)) + repr(error) + hint + repr(error.__context__)


async def test_a_wrong_password_is_refused_without_repeating_it(server: RunningDatabase) -> None:
    url = server.url.replace(PASSWORD, "a-wrong-secret")
    with pytest.raises(DatabaseAccessDenied, match="roost") as error:
        async with open_database(url):
            pass
    assert "a-wrong-secret" not in whole(error.value)
    assert "ROOST_DATABASE" in error.value.hint


async def test_a_database_that_does_not_exist_is_refused(server: RunningDatabase) -> None:
    with pytest.raises(DatabaseAccessDenied, match="nowhere"):
        async with open_database(server.url.replace("/roost", "/nowhere")):
            pass


async def test_nobody_at_the_address_is_a_clear_error(server: RunningDatabase) -> None:
    url = server.url.replace(f":{server.port}", f":{free_port()}")
    with pytest.raises(DatabaseUnavailable, match=r"roost:\*\*\*@127\.0\.0\.1") as error:
        async with open_database(url):
            pass
    assert PASSWORD not in whole(error.value)


async def test_a_database_that_takes_no_writes_says_so(server: RunningDatabase) -> None:
    async with open_database(server.url) as db:
        await db.claim("entity", "reader", A, 1, judged=0)
    set_read_only(server, "on")
    try:
        async with open_database(server.url) as db:
            assert await db.read("entity", "reader") is not None
            with pytest.raises(DatabaseFull):
                await db.flush(Flush("entity", "reader", 1, 1, b"x"))
    finally:
        set_read_only(server, "off")


def set_read_only(server: RunningDatabase, value: str) -> None:
    if isinstance(server, PostgresqlServer):
        server.sql(f"ALTER DATABASE roost SET default_transaction_read_only = {value}")
    elif isinstance(server, MariadbServer):
        server.sql(f"SET GLOBAL read_only = {value}")


async def test_one_failing_statement_does_not_sink_its_group(server: RunningDatabase) -> None:
    users = ["anna", "bad", "carl", "dora"]
    async with open_database(server.url) as db:
        for user in users:
            await db.claim("entity", user, A, 1, judged=0)
        refuse_updates_of_bad(server)
        answers = await db.flush_many([Flush("entity", user, 1, 1, b"x") for user in users])
        assert [type(answer) for answer in answers] == [Flushed, DatabaseRefused, Flushed, Flushed]
        rows = [await db.read("entity", user) for user in users]
        assert [row.revision for row in rows if row is not None] == [1, 0, 1, 1]


def refuse_updates_of_bad(server: RunningDatabase) -> None:
    if isinstance(server, PostgresqlServer):
        server.sql(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN IF NEW.user_id = 'bad' THEN RAISE 'not this one'; END IF; RETURN NEW; END $$; "
            "CREATE TRIGGER refuse BEFORE UPDATE ON roost_users FOR EACH ROW EXECUTE FUNCTION refuse()",
            "roost",
        )
    elif isinstance(server, MariadbServer):
        server.sql(
            "DELIMITER //\nCREATE TRIGGER roost.refuse BEFORE UPDATE ON roost.roost_users FOR EACH ROW "
            "BEGIN IF NEW.user_id = 'bad' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not this one'; "
            "END IF; END//\n"
        )


class LossySession:
    """A session that loses the reply to its first statement of each kind that writes."""

    def __init__(self, inner: Session, lost: list[str]) -> None:
        self._inner, self._lost = inner, lost

    @property
    def is_open(self) -> bool:
        return self._inner.is_open

    async def run(self, statement: Statement, args: tuple[object, ...]) -> Result:
        answer = await self._inner.run(statement, args)
        writes = "roost_users" in statement.sql and not statement.sql.startswith(("SELECT", "CREATE"))
        if writes and statement.sql not in self._lost:
            self._lost.append(statement.sql)
            raise ConnectionResetError("the reply was lost")
        return answer

    def terminate(self) -> None:
        self._inner.terminate()

    async def close(self) -> None:
        await self._inner.close()


class LossyDriver:
    def __init__(self, inner: Driver) -> None:
        self._inner = inner
        self.dialect: DialectName = inner.dialect
        self.lost: list[str] = []

    async def connect(self) -> Session:
        return LossySession(await self._inner.connect(), self.lost)

    async def check(self, session: Session) -> None:
        await self._inner.check(session)

    def translated(self, error: Exception) -> Exception:
        return self._inner.translated(error)


async def test_a_verb_whose_reply_was_lost_is_repeated_and_finds_itself(server: RunningDatabase) -> None:
    url, options = parse_database_url(server.url), DatabaseOptions()
    inner: Driver = PostgresqlDriver(url) if url.kind == "postgresql" else MariadbDriver(url, options)
    driver = LossyDriver(inner)
    db = Database(await NetworkBackend.open(url, driver, options), options)
    try:
        assert isinstance(await db.claim("entity", "lossy", A, 1, judged=0), Claimed)
        assert isinstance(await db.claim("entity", "lossy", A, 2, judged=1), Claimed)
        assert await db.flush(Flush("entity", "lossy", 2, 1, b"x")) == Flushed()
        assert await db.flush_many(
            [Flush("entity", "lossy", 2, 2, b"y"), Flush("entity", "lossy", 2, 3, b"z")]
        )
        assert await db.release("entity", "lossy", A, 2)
        row = await db.read("entity", "lossy")
        assert row is not None
        assert (row.epoch, row.revision, row.state, row.owner) == (2, 3, b"z", None)
        assert len(driver.lost) >= 4
    finally:
        await db.close()


async def test_states_that_would_not_fit_the_servers_packets_are_refused_at_the_start(
    mariadb: MariadbServer,
) -> None:
    with pytest.raises(StartFailed, match="max_allowed_packet"):
        async with open_database(mariadb.url, options=DatabaseOptions(max_state_bytes=16 << 20)):
            pass


@pytest.mark.parametrize("version", ["8.4.3", "10.4.34-MariaDB", "9.1.0-commercial"])
def test_a_server_that_cannot_do_it_is_refused(version: str) -> None:
    with pytest.raises(StartFailed) as error:
        check_mariadb(version)
    assert "mysql://" in error.value.hint


@pytest.mark.parametrize(
    "version", ["10.5.1-MariaDB", "5.5.5-10.11.6-MariaDB-0+deb12u1", "11.4.2-MariaDB-log"]
)
def test_a_mariadb_that_can_is_taken(version: str) -> None:
    check_mariadb(version)


@pytest.mark.parametrize(
    ("url", "package", "extra"),
    [("postgresql://h/d", "asyncpg", "postgres"), ("mysql://h/d", "asyncmy", "mariadb")],
)
async def test_a_missing_driver_names_its_extra(
    monkeypatch: pytest.MonkeyPatch, url: str, package: str, extra: str
) -> None:
    for module in ("postgresql", "mariadb"):
        monkeypatch.delitem(sys.modules, f"roost.db.{module}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(DriverMissing, match=package) as error:
        async with open_database(url):
            pass
    assert f"roost[{extra}]" in error.value.hint
