"""Real processes, driven as a user would: command line and HTTP."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest

from roost.testing import START_S, Answer, free_port, wait_until
from tests.acceptance.role_users import RoleUsers, needs_the_embedded_store, refusals, role_of, role_users
from tests.forking import Process, forker

ROOST = [sys.executable, "-m", "roost"]


def http(
    url: str, *, method: str = "GET", token: str = "", body: bytes | None = None, timeout_s: float = 10
) -> Answer:
    request = urllib.request.Request(url, method=method, data=body)
    if token:
        request.add_header("X-API-Token", token)
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as response:
            return Answer(response.status, dict(response.headers), response.read())
    except urllib.error.HTTPError as error:
        return Answer(error.code, dict(error.headers), error.read())


def sees_its_lag(metrics_url: str) -> bool:
    """Whether a metrics page shows that a pause of the event loop was timed."""
    page = http(metrics_url).body.decode()
    return float(page.partition("roost_event_loop_lag_seconds_count ")[2].split()[0]) > 0


def cpu_s(pid: int) -> float:
    """Processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Home:
    """A clean home for commands: a data folder of its own, no settings from outside."""

    folder: Path
    processes: list[Process] = field(default_factory=list)
    users: RoleUsers | None = None
    """Whose roles have users of the store; None: all share one who may do everything."""

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ROOST_")}
        return kept | {"ROOST_DATA": str(self.data), "HOME": str(self.folder), "COLUMNS": "200"}

    def run(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        return self.run_for(START_S, *args, **env)

    def run_for(self, timeout_s: float, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        args, env = self._given(args, env)
        return forker().run(args, env, self.folder, timeout_s)

    def _given(self, args: tuple[str, ...], env: dict[str, str]) -> tuple[tuple[str, ...], dict[str, str]]:
        """What a command is started with: under its role's user where there are users."""
        if self.users is None:
            return args, self.environment() | env
        env, role = self.users.settings_for(args) | env, role_of(args)
        own = {name: self.users.url(role, value) for name, value in env.items()}
        return tuple(self.users.url(role, word) for word in args), self.environment() | own

    def run_unprivileged(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run a command without root's right to ignore permissions."""
        caps = "-dac_override,-dac_read_search"
        drop = ["setpriv", f"--bounding-set={caps}", f"--inh-caps={caps}"] if not os.geteuid() else []
        return subprocess.run(
            [*drop, *ROOST, *args],
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=START_S,
            check=False,
            cwd=self.folder,
        )

    def start(self, *args: str, until: str = "is up", files: str = "", **env: str) -> Started:
        """Start a command that stays, with at most so many open files, and wait until it is ready."""
        log = self.folder / f"out-{len(self.processes)}.log"
        args, env = self._given(args, env)
        with log.open("w") as out:
            process = self._few_files(files, args, env, out) if files else self._forked(args, env, out)
        self.processes.append(process)

        def ready() -> bool:
            if process.poll() is not None:
                raise RuntimeError(f"ended with {process.returncode}: {log.read_text()}")
            return until in log.read_text()

        wait_until(ready, f"{' '.join(args)} to be ready", log.read_text, START_S)
        if self.users is not None:
            self.users.note_users()
        return Started(process, log)

    def _forked(self, args: tuple[str, ...], env: dict[str, str], out: IO[str]) -> Process:
        return forker().start(args, env, self.folder, out, out)

    def _few_files(self, files: str, args: tuple[str, ...], env: dict[str, str], out: IO[str]) -> Process:
        command = ["sh", "-c", f'ulimit -n {files} && exec "$@"', "sh", *ROOST, *args]
        return subprocess.Popen(command, env=env, stdout=out, stderr=out, text=True, cwd=self.folder)

    def up(self, *args: str, **env: str) -> Started:
        """Without the demo, which tests of other things would only wait for."""
        if self.users is not None and "--with" not in args:
            return self._up_by_role(self.users, args, env)
        return self.start("up", "--no-demo", "--port", str(free_port()), *args, **env)

    def _up_by_role(self, users: RoleUsers, args: tuple[str, ...], env: dict[str, str]) -> Started:
        """The gateway and the manager of `up`, each as a process of its own: they have different users."""
        if args[:1] != ("--without",):
            self.start("manager", "--port", str(free_port()), *args, **env)
        else:
            args = args[2:]
        gateway = self.start("gateway", "--port", str(free_port()), *args, **env)
        (self.data / "up.json").write_text(json.dumps({"url": gateway.url, "pid": gateway.process.pid}))
        users.settings = env
        return gateway

    def up_with_demo(self) -> Started:
        if self.users is not None:
            needs_the_embedded_store()
        return self.start("up", "--port", str(free_port()))

    def token(self) -> str:
        return (self.data / "token").read_text().strip()

    @property
    def store_folder(self) -> Path:
        return self.data / "store" if self.users is None else self.users.own.folder

    @property
    def store_url(self) -> str:
        """Of the store that `up` has, for the test itself."""
        return f"embedded:{self.store_folder}" if self.users is None else self.users.own.url

    def store_pid(self) -> int:
        if self.users is not None:
            needs_the_embedded_store()
        return int(json.loads((self.store_folder / "server.json").read_text())["pid"])


@dataclass
class Started:
    process: Process
    log: Path

    @property
    def text(self) -> str:
        return self.log.read_text()

    @property
    def url(self) -> str:
        return next(word for word in self.text.split() if word.startswith("http://"))

    def interrupt(self, number: int = signal.SIGINT, within_s: float = 10.0) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=within_s)


@contextlib.contextmanager
def open_home(folder: Path) -> Iterator[Home]:
    """A home of which nothing runs afterwards, however far it came."""
    with role_users(folder) as users:
        home = Home(folder, users=users)
        try:
            yield home
        finally:
            for process in reversed(home.processes):
                if process.poll() is None:
                    process.kill()
                process.wait()
            if users is None:
                with contextlib.suppress(OSError, ValueError):
                    os.kill(home.store_pid(), signal.SIGKILL)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with open_home(tmp_path) as home:
        yield home


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    """Asked before a test's own store is gone with its fixtures, and where it failed: that may be why."""
    try:
        yield
    finally:
        assert refusals() == [], "refused by the store"
