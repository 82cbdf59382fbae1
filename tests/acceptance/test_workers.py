"""`roost gateway --workers 2`: two processes on one port, which look like one from outside."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from roost.testing import START_S, RunningServer, free_port, run_valkey, wait_until
from roost.web.ops import READY_S

from .conftest import Home, Started, http, open_home

TOKEN = "a-token-for-the-tests"
HEALTH = re.compile(rb'^roost_http_requests_total\{method="GET",route="/healthz",status="200"\} (\S+)$', re.M)
RESTARTS = re.compile(rb"^roost_worker_restarts_total (\S+)$", re.M)


class Gateway(NamedTuple):
    started: Started
    valkey: RunningServer
    store_file: Path

    @property
    def url(self) -> str:
        return self.started.url

    def metric(self, pattern: re.Pattern[bytes]) -> float:
        found = pattern.search(http(f"{self.url}/metrics", token=TOKEN).body)
        return float(found[1]) if found else 0.0

    def workers(self) -> set[int]:
        return children_of(self.started.process.pid)

    def answering(self) -> set[int]:
        """Which processes answer; each connection goes to one of them."""
        ask = f"{self.url}/admin/v1/status"
        return {json.loads(http(ask, token=TOKEN).body)["pid"] for _ in range(20)}


def children_of(pid: int) -> set[int]:
    return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


def states_of(pid: int) -> set[str]:
    """Of its threads, each by one letter: a process ends and stops thread by thread."""
    found: set[str] = set()
    for thread in Path(f"/proc/{pid}/task").glob("*/stat"):
        with suppress(OSError):
            found.add(thread.read_text().rpartition(")")[2].split()[0])
    return found


def is_alive(pid: int) -> bool:
    return bool(states_of(pid) - {"Z", "X"})


def start(home: Home, valkey: RunningServer, store_file: Path) -> Gateway:
    store_file.write_text(valkey.url)
    started = home.start(
        *("gateway", "--workers", "2", "--port", str(free_port()), "--profile", "lan"),
        ROOST_STORE_FILE=str(store_file),
        ROOST_API_TOKEN=TOKEN,
    )
    return Gateway(started, valkey, store_file)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("workers")
    with run_valkey(password="old") as valkey, open_home(folder) as home:
        yield start(home, valkey, folder / "store-url")


def test_every_worker_answers_on_the_one_port_and_the_counts_of_all_are_added(gateway: Gateway) -> None:
    wait_until(lambda: gateway.answering() == gateway.workers(), "both to answer")
    before = gateway.metric(HEALTH)

    for _ in range(30):
        assert http(f"{gateway.url}/healthz").status == 200

    assert gateway.metric(HEALTH) == before + 30
    page = http(f"{gateway.url}/metrics", token=TOKEN).body.decode()
    assert 'roost_worker_up{worker="2"} 1.0' in page
    assert len(re.findall(r"^roost_info\{", page, re.M)) == 1


def test_a_killed_worker_is_started_again_while_the_port_answers_and_no_sum_falls(gateway: Gateway) -> None:
    before, victim = gateway.workers(), min(gateway.workers())
    counted, restarts = gateway.metric(HEALTH), gateway.metric(RESTARTS)

    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: victim not in gateway.workers(), "its end, with its sockets")

    def is_back() -> bool:
        assert http(f"{gateway.url}/readyz").status == 200
        assert gateway.metric(HEALTH) >= counted
        return gateway.answering() == gateway.workers() and len(gateway.workers()) == 2

    wait_until(is_back, "a worker in its place", lambda: gateway.started.text, START_S)
    assert victim not in gateway.workers()
    assert gateway.workers() & before
    assert gateway.metric(RESTARTS) == restarts + 1


def test_a_worker_that_hangs_makes_the_port_not_ready_whichever_worker_is_asked(gateway: Gateway) -> None:
    frozen = min(gateway.workers())
    os.kill(frozen, signal.SIGSTOP)
    try:
        wait_until(lambda: states_of(frozen) == {"T"}, "it to stand still")
        time.sleep(2 * READY_S)  # what was judged before that holds for so long
        # Of many connections the kernel hands some to the other one, which answers; the frozen one's wait.
        with ThreadPoolExecutor(12) as callers:
            asking = [callers.submit(http, f"{gateway.url}/readyz", timeout_s=60) for _ in range(12)]
            first = next(as_completed(asking)).result()
            os.kill(frozen, signal.SIGCONT)
    finally:
        with suppress(ProcessLookupError):
            os.kill(frozen, signal.SIGCONT)
    assert first.status == 503
    assert b"no answer in time" in first.body
    wait_until(lambda: http(f"{gateway.url}/readyz").status == 200, "it to be ready again")


def test_sighup_reaches_every_worker_so_that_each_has_the_new_password(gateway: Gateway) -> None:
    gateway.valkey.command_reply("ACL", "SETUSER", "default", ">new")
    gateway.store_file.write_text(gateway.valkey.url.replace("old", "new"))

    gateway.started.process.send_signal(signal.SIGHUP)

    def renewed() -> bool:
        return gateway.started.text.count("store password renewed") == 2

    wait_until(renewed, "both to renew it", lambda: gateway.started.text)


def test_sigterm_ends_all_of_them_and_the_exit_code_is_0(home: Home, valkey: RunningServer) -> None:
    gateway = start(home, valkey, home.folder / "store-url")
    workers = gateway.workers()
    assert len(workers) == 2

    assert gateway.started.interrupt(signal.SIGTERM) == 0

    assert not any(map(is_alive, workers))


@pytest.mark.slow
def test_workers_end_by_themselves_when_their_supervisor_is_killed(home: Home, valkey: RunningServer) -> None:
    gateway = start(home, valkey, home.folder / "store-url")
    workers = gateway.workers()

    gateway.started.process.kill()

    wait_until(lambda: not any(map(is_alive, workers)), "their end")


def test_a_worker_that_cannot_start_ends_all_with_one_message(home: Home) -> None:
    away = f"redis://127.0.0.1:{free_port()}"

    ended = home.run(
        "gateway", "--workers", "2", "--wait", "0.1", "--port", str(free_port()), "--store", away
    )

    assert ended.returncode != 0
    assert ended.stderr.count("hint") <= 2
    assert "a worker could not start" in ended.stderr


def test_a_port_that_others_share_already_is_taken(home: Home, gateway: Gateway) -> None:
    port = gateway.url.rpartition(":")[2]

    ended = home.run("gateway", "--workers", "2", "--port", port, "--store", "redis://127.0.0.1:1")

    assert ended.returncode != 0
    assert f"port {port} is taken" in ended.stderr
