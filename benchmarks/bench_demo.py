"""How long does a first start take, and what does the demo cost a machine on which nobody looks?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from http_load import cpu_seconds
from report import Figure, publish, result_file
from roost.testing import free_port

STARTS = 5
REST_S = 60.0
SETTLE_S = 20.0
MOST_READY_S = 3.0
MOST_SHARE = 5.0
START_S = 60.0
SERVERS = {"demo-entity": 2, "demo-gate": 1, "demo-game": 1, "demo-orders": 1}
PROCESSES = 5
"""`roost up`, its store, two entity servers, and the rest of the demo in one."""

METHOD = (
    "`roost up` with its embedded store and the demo, each time on a new data folder. Ready: from the "
    f"start of the process to the first 200 of /readyz, asked every 10 ms, {STARTS} times, the median "
    "counts. At rest: processor time of `roost up` and all its descendants (store, entity servers, the "
    f"rest of the demo; with children that ended) over {REST_S:g} s, from {SETTLE_S:g} s after all "
    "servers of the demo are registered; nobody asks anything meanwhile."
)


@dataclass
class Up:
    """A `roost up` that is ready."""

    pid: int
    url: str
    data: Path
    ready_s: float

    def has_all_servers(self) -> bool:
        return all(self._count(type_) >= count for type_, count in SERVERS.items())

    def _count(self, type_: str) -> int:
        token = (self.data / "token").read_text(encoding="utf-8").strip()
        asked = urllib.request.Request(f"{self.url}/sd/v1/instances?type={type_}&group=*")
        asked.add_header("X-API-Token", token)
        with urllib.request.urlopen(asked, timeout=5) as answer:
            return len(json.load(answer)["instances"])

    def share(self, seconds: float) -> float:
        """Of a core, in percent, over so many seconds."""
        pids = family(self.pid)
        assert len(pids) >= PROCESSES, f"{len(pids)} processes"
        before, began = cpu_seconds(pids), time.monotonic()
        time.sleep(seconds)
        used, took = cpu_seconds(pids) - before, time.monotonic() - began
        assert family(self.pid) == pids, "a process ended or began meanwhile"
        return used / took * 100


def family(pid: int) -> list[int]:
    """The process and its descendants."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
    return [pid, *(one for child in children for one in family(int(child)))]


@contextmanager
def up() -> Iterator[Up]:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ROOST_")}
    with tempfile.TemporaryDirectory() as data:
        command = [sys.executable, "-m", "roost", "up", "--port", str(port)]
        began = time.monotonic()
        process = subprocess.Popen(
            command, env=kept | {"ROOST_DATA": data}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            wait_for(lambda: is_ready(url), 0.01)
            yield Up(process.pid, url, Path(data), time.monotonic() - began)
        finally:
            process.terminate()
            process.wait()


def is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError):
        return False


def wait_for(condition: Callable[[], bool], pause_s: float) -> None:
    until = time.monotonic() + START_S
    while not condition():
        assert time.monotonic() < until, "it did not come up"
        time.sleep(pause_s)


def main() -> int:
    ready = Figure("gateway ready, demo on", "s", [], MOST_READY_S)
    rest = Figure("demo at rest, all processes", "% of a core", [], MOST_SHARE)
    for start in range(STARTS):
        with up() as running:
            ready.rounds.append(running.ready_s)
            if start == STARTS - 1:
                wait_for(running.has_all_servers, 1.0)
                time.sleep(SETTLE_S)
                rest.rounds.append(running.share(REST_S))
    return publish("demo", "limits of a first start", METHOD, [ready, rest], result_file())


if __name__ == "__main__":
    sys.exit(main())
