"""The thread that has the SQLite connection: it takes what waits, and commits it together.

One commit to the disk serves a whole group, so the cost of durability is shared by all who wait for it.
Nothing is answered before its commit. A statement that fails undoes itself and nothing else; where a failure
took the whole transaction along (a full disk), each of the group is tried on its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from roost.core.errors import RoostError
from roost.db.errors import DatabaseError, DatabaseFull, DatabaseRefused, DatabaseUnavailable
from roost.db.options import DatabaseOptions
from roost.db.url import DatabaseUrl
from roost.db.verbs import Many, Result, Steps

log = logging.getLogger("roost.db")

T = TypeVar("T")

LEAST_SQLITE = (3, 35, 0)
RETRY_PAUSE_S = 0.01
LOCK_LOOK_S = 0.0003
"""SQLite's own waiting looks for the lock of the file after 1 ms and then less and less often, while another
process holds it for about one. So it does not wait at all, and we look this often."""


class Waiting:
    """Who waits for one verb, or for several; each of these has a result or an error of its own."""

    __slots__ = ("_left", "future", "results")

    def __init__(self, future: asyncio.Future[Any], verbs: int = 0) -> None:
        """`verbs` 0: for one, whose result or error is that of the future."""
        self.future = future
        self._left = verbs
        self.results: list[Any] = [None] * verbs
        """None: not there yet."""

    def tell(self, at: int, value: Any, error: Exception | None) -> None:
        if not self.results:
            (_succeed if error is None else _fail)(self.future, value if error is None else error)
            return
        self.results[at] = value if error is None else error
        self._left -= 1
        if not self._left:
            _succeed(self.future, self.results)


Make = Callable[[], Steps[Any]]


class Job(NamedTuple):
    """A verb that somebody waits for."""

    make: Make
    waiting: Waiting
    writes: bool
    at: int = 0
    """Which of the verbs that they wait for."""
    apart: tuple[Job, ...] = ()
    """Of a job that does several at once: what each of them is where that fails."""

    @property
    def each(self) -> tuple[Job, ...]:
        return self.apart or (self,)


Outcome = tuple[Job, Any, Exception | None]


class Writer:
    """Jobs go in from the event loop, results come back to it, a group at a time."""

    def __init__(self, url: DatabaseUrl, options: DatabaseOptions, prepare: Callable[[], Steps[Any]]) -> None:
        self.healthy = True
        self.waiting = 0
        self._url, self._options, self._prepare = url, options, prepare
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[Any] = self._loop.create_future()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, name=f"roost-db {url.path.name}", daemon=True)

    async def open(self) -> None:
        self._thread.start()
        await self._opened

    async def close(self) -> None:
        """Finish what waits, then end."""
        self._jobs.put(None)
        await asyncio.shield(self._ended)

    def submit(self, make: Make, writes: bool) -> asyncio.Future[Any]:
        future = self._loop.create_future()
        self.waiting += 1
        self._jobs.put(Job(make, Waiting(future), writes))
        return future

    def submit_together(self, groups: Sequence[tuple[Make, Sequence[Make]]]) -> Waiting:
        """Each of `groups`: a verb that does several writes, and what does each of them alone.

        The future ends with a result or an error for each write, in their order.
        """
        writes = sum(len(apart) for _, apart in groups)
        waiting, places = Waiting(self._loop.create_future(), writes), itertools.count()
        self.waiting += writes
        for together, apart in groups:
            jobs = tuple(Job(make, waiting, True, next(places)) for make in apart)
            self._jobs.put(jobs[0] if len(jobs) == 1 else Job(together, waiting, True, apart=jobs))
        return waiting

    # -- in the thread

    def _run(self) -> None:
        try:
            connection = self._connect()
        except Exception as error:
            self._tell(_fail, self._opened, translated(error, self._url))
            return
        self._tell(_succeed, self._opened, None)
        try:
            self._serve(connection)
        finally:
            self._tell(_succeed, self._ended, None)

    def _serve(self, connection: sqlite3.Connection) -> None:
        """Group after group. A connection that left one half done is closed: the next gets a new one."""
        usable: sqlite3.Connection | None = connection
        while jobs := self._next_group():
            try:
                usable = usable or self._connect()
                outcomes = self._done(usable, jobs)
            except Exception as error:
                log.exception("a group failed", extra={"database": str(self._url)})
                fault = translated(error, self._url)
                outcomes = [(one, None, fault) for job in jobs for one in job.each]
                _close(usable)
                usable = None
            self._tell(self._deliver, outcomes)
        _close(usable)

    def _next_group(self) -> list[Job]:
        """What waits, at most a group; empty at the end."""
        jobs: list[Job] = []
        size, job = 0, self._jobs.get()
        while job is not None:
            jobs.append(job)
            size += len(job.each)
            if size >= self._options.group_size:
                return jobs
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return jobs
        if jobs:
            self._jobs.put(None)
        return jobs

    def _done(self, connection: sqlite3.Connection, jobs: Sequence[Job]) -> list[Outcome]:
        """Reads come first: whoever asks beside a write may see the row before it or after it."""
        wanted = [job for job in jobs if not job.waiting.future.done()]
        given_up = [(one, None, None) for job in jobs if job.waiting.future.done() for one in job.each]
        reads = [self._read(connection, job) for job in wanted if not job.writes]
        writes = [job for job in wanted if job.writes]
        return given_up + reads + (self._written(connection, writes) if writes else [])

    def _written(self, connection: sqlite3.Connection, jobs: Sequence[Job]) -> list[Outcome]:
        try:
            self._patiently(lambda: connection.execute("BEGIN IMMEDIATE"))
        except sqlite3.Error as error:
            return [(one, None, translated(error, self._url)) for job in jobs for one in job.each]
        outcomes = [outcome for job in jobs for outcome in self._outcomes(connection, job)]
        try:
            connection.execute("COMMIT")  # refused where a failure ended the transaction
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if len(outcomes) == 1:
                return [(outcomes[0][0], None, outcomes[0][2] or translated(error, self._url))]
            alone = [one for job in jobs for one in job.each]
            return [outcome for job in alone for outcome in self._written(connection, [job])]
        return outcomes

    def _outcomes(self, connection: sqlite3.Connection, job: Job) -> list[Outcome]:
        if job.apart:
            with contextlib.suppress(Exception):
                results = walk(connection, job.make())
                return [(one, result, None) for one, result in zip(job.apart, results, strict=True)]
        return [self._outcome(connection, one) for one in job.each]

    def _outcome(self, connection: sqlite3.Connection, job: Job) -> Outcome:
        try:
            return job, walk(connection, job.make()), None
        except Exception as error:
            return job, None, translated(error, self._url)

    def _read(self, connection: sqlite3.Connection, job: Job) -> Outcome:
        try:
            return job, self._patiently(lambda: walk(connection, job.make())), None
        except Exception as error:
            return job, None, translated(error, self._url)

    def _patiently(self, act: Callable[[], T]) -> T:
        """Again and again while another process is at the file."""
        deadline = time.monotonic() + self._options.timeout_s
        while True:
            try:
                return act()
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() > deadline:
                    raise
            time.sleep(LOCK_LOOK_S)

    def _connect(self) -> sqlite3.Connection:
        """Another process that starts at once may hold the file, at times without SQLite's own waiting."""
        deadline = time.monotonic() + self._options.timeout_s
        while True:
            try:
                return self._open_file()
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() > deadline:
                    raise
                time.sleep(RETRY_PAUSE_S)

    def _open_file(self) -> sqlite3.Connection:
        create_file(self._url.path)
        connection = sqlite3.connect(self._url.path, timeout=self._options.timeout_s, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {self._url.synchronous.upper()}")
            walk(connection, self._prepare())
            connection.execute("PRAGMA busy_timeout = 0")  # from here on `_patiently` waits
        except BaseException:
            connection.close()
            raise
        return connection

    def _tell(self, function: Callable[..., None], *args: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended without closing us
            self._loop.call_soon_threadsafe(function, *args)

    # -- in the event loop

    def _deliver(self, outcomes: Sequence[Outcome]) -> None:
        self.waiting -= len(outcomes)
        for job, value, error in outcomes:
            job.waiting.tell(job.at, value, error)
        self.healthy = not all(isinstance(error, DatabaseUnavailable) for _, _, error in outcomes)


def walk(connection: sqlite3.Connection, steps: Steps[Any]) -> Any:
    """Step a verb through on this connection; what it returns."""
    try:
        statement, args = next(steps)
        while True:
            run = connection.executemany if isinstance(args, Many) else connection.execute
            cursor = run(statement.sql, args)
            rows = cursor.fetchall() if cursor.description else []
            statement, args = steps.send(Result(rows, len(rows) if cursor.description else cursor.rowcount))
    except StopIteration as end:
        return end.value


def _close(connection: sqlite3.Connection | None) -> None:
    with contextlib.suppress(sqlite3.Error):
        if connection is not None:
            connection.close()


def create_file(path: Path) -> None:
    """An empty file that only its owner can read: it will hold what users own.

    One that is there is not touched: to close it would drop the locks of this process's other connections,
    and the next process to close the file would take away the log that they go on writing.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def translated(error: Exception, url: DatabaseUrl) -> Exception:
    """An error of the driver or the file system as one of ours."""
    if isinstance(error, RoostError):
        return error
    if isinstance(error, OSError):
        return DatabaseRefused(
            f"cannot open {url}: {error.strerror}", hint="check path and rights in ROOST_DATABASE"
        )
    if not isinstance(error, sqlite3.Error):
        return DatabaseRefused(f"{url}: {type(error).__name__}: {error}")
    name = getattr(error, "sqlite_errorname", "") or "SQLITE_ERROR"
    return _family(name)(f"{url}: {error} ({name})")


def _family(name: str) -> type[DatabaseError]:
    if name.startswith(("SQLITE_FULL", "SQLITE_READONLY")):
        return DatabaseFull
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_IOERR", "SQLITE_PROTOCOL")):
        return DatabaseUnavailable
    return DatabaseRefused


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorname", "").startswith(
        ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")
    )


def _succeed(future: asyncio.Future[Any], value: Any) -> None:
    if not future.done():
        future.set_result(value)


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
