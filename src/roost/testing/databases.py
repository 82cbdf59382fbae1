"""Throwaway database servers from Debian's packages: PostgreSQL and MariaDB, gone when their block ends.

    with run_postgresql() as server:
        async with open_database(server.url) as db: …

Each lives in a temporary folder and listens on a free loopback port and a unix socket. Where the test runs as
root the server runs as the user of its package, because PostgreSQL refuses root. `missing_database` says what
to install where there is none.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from roost.testing.ports import free_port
from roost.testing.servers import is_stopped
from roost.testing.waiting import START_S, wait_until

STOP_S = 20.0
USER, PASSWORD = "roost", "a-secret-of-tests"
DATABASE = "roost"


class RunningDatabase(ABC):
    """One server process, with the handles that fault tests need."""

    program = ""
    unix_user = ""

    def __init__(self, folder: Path, *, durable: bool) -> None:
        self.folder = folder
        self.durable = durable
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    @abstractmethod
    def url(self) -> str: ...

    @abstractmethod
    def prepare(self) -> None:
        """Make the files of an empty server."""

    @abstractmethod
    def command(self) -> list[str]: ...

    @abstractmethod
    def create(self) -> None:
        """Make the user and the database that `url` names."""

    @abstractmethod
    def empty(self) -> None:
        """Drop every table of the database."""

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> None:
        with open(self.folder / "server.out", "ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
                **self.identity(),
            )
        wait_until(self.answers, f"{self.program} on port {self.port}", self.tail, START_S)

    def answers(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.program} ended with {self.process.returncode}: {self.tail()}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return self.accepts()
        return False

    def accepts(self) -> bool:
        """Whether it takes logins: it may listen before it does."""
        return True

    def kill(self) -> None:
        """kill -9 of the server and of the processes it made."""
        assert self.process is not None
        for pid in self._family():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def pause(self) -> None:
        """SIGSTOP of the server and of the processes it made: its sockets stay open."""
        family = self._family()
        for pid in family:
            os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: all(map(is_stopped, family)), f"{self.program} to stand still")

    def resume(self) -> None:
        for pid in self._family():
            os.kill(pid, signal.SIGCONT)

    def restart(self) -> None:
        self.stop()
        self.start()

    def stop(self) -> None:
        """A fast, clean stop: connections are closed, nothing is lost."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(self.stop_signal())
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def stop_signal(self) -> signal.Signals:
        return signal.SIGTERM

    def tail(self) -> str:
        return (self.folder / "server.out").read_text(errors="replace")[-1500:]

    def identity(self) -> dict[str, Any]:
        """Who the server runs as: the package's user instead of root."""
        return {"user": self.unix_user, "group": self.unix_user, "extra_groups": []} if _is_root() else {}

    def run(self, *command: str, text: str = "") -> None:
        done = subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            cwd=self.folder,
            check=False,
            **self.identity(),
        )
        if done.returncode:
            raise RuntimeError(
                f"{command[0]} ended with {done.returncode}: {done.stdout}{done.stderr}"[-1500:]
            )

    def _family(self) -> list[int]:
        """The server's process and its children; PostgreSQL has one for each connection."""
        listed = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.pid)], capture_output=True, text=True, check=False
        )
        return [self.pid, *map(int, listed.stdout.split())]


class PostgresqlServer(RunningDatabase):
    program, unix_user = "postgres", "postgres"

    @property
    def url(self) -> str:
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{DATABASE}"

    @property
    def socket_url(self) -> str:
        return f"postgresql://{USER}:{PASSWORD}@:{self.port}/{DATABASE}?host={self.folder}"

    def prepare(self) -> None:
        initdb = _postgresql("initdb")
        data = str(self.folder / "data")
        self.run(
            initdb, "-D", data, "-U", "postgres", "-A", "scram-sha-256", "--auth-local=trust", "-E", "UTF8",
            "--locale=C.UTF-8", "--no-sync", "--no-instructions", f"--pwfile={self._password_file()}",
        )  # fmt: skip

    def command(self) -> list[str]:
        options = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": self.folder,
            "max_connections": 100,
            "shared_buffers": "32MB",
            "fsync": "on" if self.durable else "off",
        }
        flags = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        return [_postgresql("postgres"), "-D", str(self.folder / "data"), *flags]

    def accepts(self) -> bool:
        done = subprocess.run(
            [_postgresql("pg_isready"), "-h", str(self.folder), "-p", str(self.port)],
            capture_output=True,
            check=False,
        )
        return done.returncode == 0

    def create(self) -> None:
        self.sql(f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'")
        self.sql(f"CREATE DATABASE {DATABASE} OWNER {USER}")

    def empty(self) -> None:
        self.sql("DROP TABLE IF EXISTS roost_users, roost_leases, roost_orders, roost_schema", DATABASE)

    def sql(self, text: str, database: str = "postgres") -> None:
        psql = _postgresql("psql")
        at = ("-h", str(self.folder), "-p", str(self.port), "-U", "postgres", "-d", database)
        self.run(psql, "-q", "-X", "-v", "ON_ERROR_STOP=1", *at, text=text)

    def stop_signal(self) -> signal.Signals:
        return signal.SIGINT  # PostgreSQL's "fast": SIGTERM would wait for the clients to leave

    def _password_file(self) -> Path:
        file = self.folder / "password"
        file.write_text(f"{PASSWORD}\n")
        file.chmod(0o644)
        return file


class MariadbServer(RunningDatabase):
    program, unix_user = "mariadbd", "mysql"

    @property
    def url(self) -> str:
        return f"mariadb://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{DATABASE}"

    @property
    def socket_url(self) -> str:
        return f"mariadb://{USER}:{PASSWORD}@/{DATABASE}?host={self.folder / 's.sock'}"

    def prepare(self) -> None:
        self.run(
            "mariadb-install-db", "--no-defaults", f"--datadir={self.folder / 'data'}", "--skip-test-db",
            "--auth-root-authentication-method=normal", "--skip-name-resolve", f"--tmpdir={self.folder}",
        )  # fmt: skip

    def command(self) -> list[str]:
        return [
            _mariadbd(), "--no-defaults", f"--datadir={self.folder / 'data'}", "--bind-address=127.0.0.1",
            f"--port={self.port}", f"--socket={self.folder / 's.sock'}", f"--pid-file={self.folder / 'pid'}",
            f"--tmpdir={self.folder}", "--skip-name-resolve", "--innodb-buffer-pool-size=64M",
            "--max-connections=60",
            f"--innodb-flush-log-at-trx-commit={1 if self.durable else 2}", "--innodb-log-file-size=32M",
        ]  # fmt: skip

    def create(self) -> None:
        self.sql(f"CREATE DATABASE {DATABASE}")
        for host in ("127.0.0.1", "localhost"):
            self.sql(f"CREATE USER {USER}@'{host}' IDENTIFIED BY '{PASSWORD}'")
            self.sql(f"GRANT ALL ON {DATABASE}.* TO {USER}@'{host}'")

    def empty(self) -> None:
        for table in ("users", "leases", "orders", "schema"):
            self.sql(f"DROP TABLE IF EXISTS {DATABASE}.roost_{table}")

    def sql(self, text: str) -> None:
        self.run("mariadb", "--no-defaults", f"--socket={self.folder / 's.sock'}", "-u", "root", text=text)


Server = TypeVar("Server", bound=RunningDatabase)


def missing_database(program: str) -> str:
    """Why a server cannot be started here; empty where it can."""
    found = (
        _postgresql_folder()
        if program == "postgresql"
        else _mariadbd() and shutil.which("mariadb-install-db")
    )
    package = "postgresql" if program == "postgresql" else "mariadb-server"
    return "" if found else f"needs Debian's package {package} (`make deps-ci` installs it)"


@contextlib.contextmanager
def run_postgresql(*, durable: bool = False) -> Iterator[PostgresqlServer]:
    """One PostgreSQL. `durable` keeps its fsync, which costs time that most tests need not wait."""
    with (
        _folder(PostgresqlServer.unix_user) as folder,
        _running(PostgresqlServer(folder, durable=durable)) as one,
    ):
        yield one


@contextlib.contextmanager
def run_mariadb(*, durable: bool = False) -> Iterator[MariadbServer]:
    """One MariaDB. `durable` writes through to the disk with every commit."""
    with _folder(MariadbServer.unix_user) as folder, _running(MariadbServer(folder, durable=durable)) as one:
        yield one


@contextlib.contextmanager
def _running(server: Server) -> Iterator[Server]:
    server.prepare()
    try:
        server.start()
        server.create()
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def _folder(unix_user: str) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="roost-test-"))
    try:
        if _is_root():
            shutil.chown(folder, unix_user, unix_user)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _is_root() -> bool:
    return os.geteuid() == 0


def _postgresql(program: str) -> str:
    folder = _postgresql_folder()
    assert folder is not None, missing_database("postgresql")
    return str(folder / program)


def _postgresql_folder() -> Path | None:
    """Debian keeps the programs of each major version apart; the newest counts."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    named = shutil.which("postgres")
    return Path(named).parent if named else None


def _mariadbd() -> str:
    return shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin") or ""
