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
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from roost.testing import Answer, free_port, wait_until

ROOST = [sys.executable, "-m", "roost"]


def http(url: str, *, method: str = "GET", token: str = "", body: bytes | None = None) -> Answer:
    request = urllib.request.Request(url, method=method, data=body)
    if token:
        request.add_header("X-API-Token", token)
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return Answer(response.status, dict(response.headers), response.read())
    except urllib.error.HTTPError as error:
        return Answer(error.code, dict(error.headers), error.read())


def cpu_s(pid: int) -> float:
    """Processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Home:
    """A clean home for commands: a data folder of its own, no settings from outside."""

    folder: Path
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ROOST_")}
        return kept | {"ROOST_DATA": str(self.data), "HOME": str(self.folder), "COLUMNS": "200"}

    def run(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        return self._run(list(ROOST), args, env)

    def run_for(self, timeout_s: float, *args: str) -> subprocess.CompletedProcess[str]:
        return self._run(list(ROOST), args, {}, timeout_s)

    def run_unprivileged(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run a command without root's right to ignore permissions."""
        caps = "-dac_override,-dac_read_search"
        drop = ["setpriv", f"--bounding-set={caps}", f"--inh-caps={caps}"] if not os.geteuid() else []
        return self._run([*drop, *ROOST], args, {})

    def _run(
        self, program: list[str], args: tuple[str, ...], env: dict[str, str], timeout_s: float = 30
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*program, *args],
            env=self.environment() | env,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            cwd=self.folder,
        )

    def start(self, *args: str, until: str = "is up", files: str = "", **env: str) -> Started:
        """Start a command that stays, with at most so many open files, and wait until it is ready."""
        few = ["sh", "-c", f'ulimit -n {files} && exec "$@"', "sh"] if files else []
        log = self.folder / f"out-{len(self.processes)}.log"
        with log.open("w") as out:
            process = subprocess.Popen(
                [*few, *ROOST, *args],
                env=self.environment() | env,
                stdout=out,
                stderr=out,
                text=True,
                cwd=self.folder,
            )
        self.processes.append(process)

        def ready() -> bool:
            if process.poll() is not None:
                raise RuntimeError(f"ended with {process.returncode}: {log.read_text()}")
            return until in log.read_text()

        wait_until(ready, f"{' '.join(args)} to be ready", log.read_text)
        return Started(process, log)

    def up(self, *args: str, **env: str) -> Started:
        return self.start("up", "--port", str(free_port()), *args, **env)

    def token(self) -> str:
        return (self.data / "token").read_text().strip()

    def store_pid(self) -> int:
        return int(json.loads((self.data / "store" / "server.json").read_text())["pid"])


@dataclass
class Started:
    process: subprocess.Popen[str]
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


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path)
    yield home
    for process in home.processes:
        if process.poll() is None:
            process.kill()
        process.wait()
    with contextlib.suppress(OSError, ValueError):
        os.kill(home.store_pid(), signal.SIGKILL)
