"""SQLite when something goes wrong: a process killed in mid-write, a locked file, a full disk, no file."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from roost.core.owner import Owner
from roost.db.database import open_database
from roost.db.errors import DatabaseError, DatabaseFull, DatabaseRefused, DatabaseUnavailable
from roost.db.model import Claimed, Flush, Flushed
from roost.db.options import DatabaseOptions
from tests.db import writing_process

A = Owner("501", "life-1")
HASTY = DatabaseOptions(timeout_s=0.3)


@pytest.fixture(params=["full", "normal"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'users.db'}?synchronous={request.param}"


async def test_what_was_acknowledged_survives_kill_9(url: str) -> None:
    process = subprocess.Popen([sys.executable, writing_process.__file__, url], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        lines = [await asyncio.to_thread(process.stdout.readline) for _ in range(400)]
    finally:
        process.kill()
    lines += await asyncio.to_thread(process.stdout.readlines)
    process.stdout.close()
    process.wait()
    acknowledged: dict[str, int] = {}
    for line in lines:
        user, _, number = line.decode().partition(" ")
        acknowledged[user] = int(number)

    assert len(acknowledged) == writing_process.CALLERS
    async with open_database(url) as db:
        for user, revision in acknowledged.items():
            row = await db.read("entity", user)
            assert row is not None
            assert row.revision in (
                revision,
                revision + 1,
            )  # the last one may have been on its way to its caller
            assert row.state == f"{user} {row.revision}".encode() * 20


READER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
print(connection.execute("select count(*) from roost_users").fetchone()[0])
connection.close()
"""


def users_seen_by_another_process(url: str) -> int:
    """It opens the file, and closes it in good order: the last one to do so takes the log away."""
    path = url.removeprefix("sqlite:///").partition("?")[0]
    return int(subprocess.run([sys.executable, "-c", READER, path], capture_output=True, check=True).stdout)


async def test_a_process_that_closes_the_file_takes_no_log_away_from_one_that_opened_it_twice(
    url: str,
) -> None:
    """An entity server has a second connection for its lease. POSIX drops all locks of a process on a file
    when the process closes any descriptor of it, and who has no lock counts as gone."""
    async with open_database(url) as db, open_database(url):
        assert isinstance(await db.claim("entity", "anna", A, 5, judged=0), Claimed)
        assert await asyncio.to_thread(users_seen_by_another_process, url) == 1
        assert isinstance(await db.claim("entity", "bob", A, 5, judged=0), Claimed)
        assert await asyncio.to_thread(users_seen_by_another_process, url) == 2


@contextlib.contextmanager
def raw(url: str) -> Iterator[sqlite3.Connection]:
    path = url.removeprefix("sqlite:///").partition("?")[0]
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


async def test_a_file_that_another_process_locks_is_waited_for_and_then_given_up(url: str) -> None:
    async with open_database(url, options=HASTY) as db:
        assert isinstance(await db.claim("entity", "anna", A, 5, judged=0), Claimed)
        flush = Flush("entity", "anna", 5, 1, b"x")
        with raw(url) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(DatabaseUnavailable):
                await db.flush(flush)
            found = await db.read("entity", "anna")
            assert found is not None
            assert found.revision == 0
            batch = await db.flush_many([flush, flush])
            assert [type(answer) for answer in batch] == [DatabaseUnavailable] * 2
            other.execute("ROLLBACK")
        assert await db.flush(flush) == Flushed()
        assert db.healthy


async def test_a_lock_that_ends_in_time_is_not_noticed(url: str) -> None:
    async with open_database(url) as db:
        await db.claim("entity", "anna", A, 5, judged=0)
        with raw(url) as other:
            other.execute("BEGIN IMMEDIATE")
            waiting = asyncio.create_task(db.flush(Flush("entity", "anna", 5, 1, b"x")))
            done, _ = await asyncio.wait([waiting], timeout=0.2)
            assert not done
            other.execute("COMMIT")
            assert await waiting == Flushed()


@pytest.mark.parametrize("others", [3, 45])
@pytest.mark.parametrize("how", ["ABORT", "ROLLBACK", "FAIL"])
async def test_one_failing_statement_does_not_sink_its_group(url: str, how: str, others: int) -> None:
    """ROLLBACK ends the transaction of the group, as a full disk does. 45: the bad row shares a statement."""
    users = ["anna", "bad", *(f"user-{n}" for n in range(1, others))]
    async with open_database(url) as db:
        for user in users:
            await db.claim("entity", user, A, 5, judged=0)
        with raw(url) as other:
            other.execute(
                "CREATE TRIGGER bad BEFORE UPDATE ON roost_users WHEN NEW.user_id = 'bad' "
                f"BEGIN SELECT RAISE({how}, 'not this one'); END"
            )
        answers = await db.flush_many([Flush("entity", user, 5, 1, b"x") for user in users])
        assert [type(answer) for answer in answers] == [
            DatabaseRefused if user == "bad" else Flushed for user in users
        ]
        assert "not this one" in str(answers[1])
        rows = [await db.read("entity", user) for user in users]
        assert [row.revision for row in rows if row is not None] == [int(user != "bad") for user in users]


class Failing(sqlite3.Connection):
    """A connection that can neither commit nor roll back while the disk fails."""

    disk_fails = False
    opens = 0

    def __init__(self, *args: Any, **more: Any) -> None:
        Failing.opens += 1
        super().__init__(*args, **more)

    def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
        if Failing.disk_fails and sql in ("COMMIT", "ROLLBACK"):
            raise sqlite3.OperationalError("disk I/O error")
        return super().execute(sql, *args)


async def test_a_connection_that_cannot_even_roll_back_is_made_anew(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Failing, "disk_fails", False)
    monkeypatch.setattr(sqlite3, "connect", functools.partial(sqlite3.connect, factory=Failing))
    async with open_database(url, options=HASTY) as db:
        assert isinstance(await db.claim("entity", "anna", A, 5, judged=0), Claimed)
        Failing.disk_fails, Failing.opens = True, 0
        for _ in range(2):
            answers = await db.flush_many([Flush("entity", "anna", 5, n, b"x") for n in (1, 2)])
            assert [isinstance(answer, DatabaseError) for answer in answers] == [True, True]
        Failing.disk_fails = False
        row = await db.read("entity", "anna")
        assert row is not None
        assert row.revision == 0
        assert await db.flush(Flush("entity", "anna", 5, 1, b"x")) == Flushed()
        assert db.healthy
        assert Failing.opens == 2, "one after each failure"


async def test_a_file_that_cannot_be_opened_again_is_tried_for_each_who_asks(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Failing, "disk_fails", False)
    real = functools.partial(sqlite3.connect, factory=Failing)
    monkeypatch.setattr(sqlite3, "connect", real)
    async with open_database(url, options=HASTY) as db:
        assert isinstance(await db.claim("entity", "anna", A, 5, judged=0), Claimed)
        Failing.disk_fails = True

        def away(*_: Any, **__: Any) -> sqlite3.Connection:
            raise sqlite3.OperationalError("unable to open database file")

        monkeypatch.setattr(sqlite3, "connect", away)
        for _ in range(2):
            with pytest.raises(DatabaseError):
                await db.flush(Flush("entity", "anna", 5, 1, b"x"))
        monkeypatch.setattr(sqlite3, "connect", real)
        Failing.disk_fails = False
        assert await db.flush(Flush("entity", "anna", 5, 1, b"x")) == Flushed()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of two megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


async def test_a_full_disk_refuses_writes_and_loses_nothing(small_disk: Path) -> None:
    filler = small_disk / "filler"
    async with open_database(f"sqlite:///{small_disk / 'users.db'}") as db:
        await db.claim("entity", "anna", A, 5, judged=0)
        assert await db.flush(Flush("entity", "anna", 5, 1, b"kept")) == Flushed()
        with open(filler, "wb") as file, contextlib.suppress(OSError):
            file.write(b"\0" * (4 << 20))
        large = Flush("entity", "anna", 5, 2, os.urandom(500_000))

        with pytest.raises(DatabaseError) as error:
            await db.flush(large)
        assert isinstance(error.value, (DatabaseFull, DatabaseUnavailable))
        row = await db.read("entity", "anna")
        assert row is not None
        assert (row.revision, row.state) == (1, b"kept")

        filler.unlink()
        assert await db.flush(large) == Flushed()


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "users.db").write_bytes(b"this is a text, not a database\n" * 100)
    with pytest.raises(DatabaseRefused, match=r"users\.db: file is not a database"):
        async with open_database(f"sqlite:///{tmp_path / 'users.db'}"):
            pass


async def test_a_file_that_cannot_be_made_is_refused() -> None:
    with pytest.raises(DatabaseRefused, match=r"cannot open sqlite:////proc/roost/users\.db"):
        async with open_database("sqlite:////proc/roost/users.db"):
            pass


async def test_a_file_that_is_taken_away_is_not_begun_anew_under_an_open_handle(tmp_path: Path) -> None:
    async with open_database(f"sqlite:///{tmp_path / 'a' / 'users.db'}") as db:
        await db.claim("entity", "anna", A, 5, judged=0)
        shutil.rmtree(tmp_path / "a")
        row = await db.read("entity", "anna")
        assert row is not None
        assert row.epoch == 5


async def test_what_waits_when_it_is_closed_is_done_first(url: str) -> None:
    async with open_database(url) as db:
        await db.claim("entity", "anna", A, 5, judged=0)
        flushes = [
            asyncio.ensure_future(db.flush(Flush("entity", "anna", 5, n, b"x"))) for n in range(1, 100)
        ]
        await asyncio.sleep(0)
    answers = await asyncio.gather(*flushes)
    assert answers[-1] == Flushed()


async def test_two_processes_share_a_file(url: str) -> None:
    """Two handles have two connections and two threads, as two processes would."""
    async with open_database(url) as one, open_database(url) as two:
        await one.claim("entity", "anna", A, 1, judged=0)
        for epoch in range(1, 30):
            here, there = await asyncio.gather(
                one.claim("entity", "anna", A, epoch + 1, judged=epoch),
                two.claim("entity", "anna", Owner("502", "l"), epoch + 1, judged=epoch),
            )
            assert isinstance(here, Claimed) != isinstance(there, Claimed)
