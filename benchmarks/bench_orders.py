"""How many commands does an order server carry out and log, what does one cost, how long does one take?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from orders_load import CANCELS, SYMBOLS
from report import Case, Figure, publish, result_file
from roost.testing import RunningServer, free_port, run_valkey, wait_until

ROUNDS = 5
ROUND_S = 1.5
WARM_UP_S = 1.0
WINDOWS = (1, 64, 512)
LOADS = ("equal", "zipf", "single")
OPEN_PER_S = 2000
OPEN_FAST_PER_S = 8000
OPEN_S = 3.0
OPEN_ROUNDS = 3
SETTLE_S, QUIET_S, LOOK_S, QUIET_SHARE = 10.0, 2.5, 0.25, 0.15
"""A run is over when the server has used less than this share of a core for `QUIET_S`: longer than the pause
between two batches for the database."""
PROMISED_RATE = 15_000.0
PROMISED_RATIO = 4.0
PROMISED_CPU_US = 35.0
SECRET = "only-for-this-benchmark"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
HERE = Path(__file__).resolve().parent

METHOD = (
    f"One order server (`roost orders serve`, all 16 shards, SQLite for its orders) on a throwaway "
    f"valkey-server with its append-only file (synced once a second; at `replica` another one follows it); "
    f"the load is one more process with one connection that writes and reads frames by hand, for either "
    f"contender. "
    f"{SYMBOLS:,} symbols, drawn equally, by Zipf(1), or one alone; an account for each "
    f"command under way; {CANCELS:.0%} of the commands of an account with a resting order cancel it, the "
    f"others are new limit orders, of which about a third meet one in the book. Rates are of accepted "
    f"commands (sequenced, carried out, in the log at the level named; a cancel that comes after the "
    f"fill is not counted) in a closed loop with so many under way, {ROUND_S:g} s; contenders take turns "
    f"within each of {ROUNDS} rounds, the median counts. CPU is that of the order server's process, all "
    f"threads (fills, index and database included), until it is quiet after a run, divided by all answered "
    f"commands; the store's is apart. The next contender's turn begins then. Open loop: on a schedule; the "
    f"time is from when a command was due, and the load looks at its schedule once a millisecond. The naive "
    f"server is orders_naive.py on the same store, under uvloop (as ours is) and on asyncio's own loop: JSON "
    f"lines, a queue and task for each symbol, XADD by redis-py for each command; no idempotency, fills, "
    f"receipts, index or database. NB: server, store and load share the machine's cores."
)


class Found(NamedTuple):
    rate: float
    cpu_us: float
    """Of the server, for each command that was answered."""
    refused: float
    times_ms: dict[str, float]


class Contender:
    """A server with its load."""

    def __init__(
        self, server: subprocess.Popen[str], load: subprocess.Popen[str], *, settles: bool = True
    ) -> None:
        """`settles`: it does something after its answers, which is waited for."""
        self._pid = server.pid
        self._load = load
        self._settles = settles

    def closed(self, in_flight: int, seconds: float, load: str = "equal") -> Found:
        return self._run(f"closed {in_flight} {seconds} {load}")

    def open(self, per_second: int) -> Found:
        return self._run(f"open {per_second} {OPEN_S} equal")

    def _run(self, words: str) -> Found:
        before = self._cpu_s()
        assert self._load.stdin is not None
        assert self._load.stdout is not None
        self._load.stdin.write(words + "\n")
        self._load.stdin.flush()
        said = json.loads(self._load.stdout.readline() or sys.exit("the load ended"))
        answered = said["accepted"] + said["refused"] + said["not_taken"]
        if said["not_taken"]:
            print(f"  NB: {said['not_taken']} of {answered} commands were not taken ({words})", flush=True)
        cpu_us = (self._settled_cpu_s() - before) * 1e6 / answered
        times = {name: said[name] for name in ("p50", "p99", "p999") if name in said}
        return Found(said["accepted"] / said["seconds"], cpu_us, 1 - said["accepted"] / answered, times)

    def _settled_cpu_s(self) -> float:
        """When it has done what it does after its answers: that belongs to this run, not to the next one."""
        until, quiet_since = time.monotonic() + SETTLE_S, time.monotonic()
        used = self._cpu_s()
        while self._settles and time.monotonic() < until and time.monotonic() - quiet_since < QUIET_S:
            time.sleep(LOOK_S)
            now = self._cpu_s()
            if now - used > LOOK_S * QUIET_SHARE:
                quiet_since = time.monotonic()
            used = now
        return used

    def _cpu_s(self) -> float:
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def _started(
    stack: ExitStack, command: list[str], until: str, environment: dict[str, str] | None = None
) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=HERE
    )
    stack.callback(_end, process)
    assert process.stdout is not None
    while until not in (line := process.stdout.readline()):
        if not line:
            sys.exit(f"{' '.join(command[1:])} ended")
    return process, line


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.communicate()


@contextmanager
def ours(store_url: str, durability: str, profiler: tuple[str, ...] = ()) -> Iterator[Contender]:
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ROOST_")}
        environment = kept | {
            "ROOST_DATA": folder,
            "ROOST_STORE": store_url,
            "ROOST_WIRE_SECRET": SECRET,
            "ROOST_LOG_LEVEL": "error",
        }
        port = free_port()
        words = ["orders", "serve", "--port", str(port), "--durability", durability]
        command = [sys.executable, *profiler, "-m", "roost", *words]
        server, _ = _started(stack, command, "is up", environment)
        yield Contender(server, _load(stack, "ours", port))


@contextmanager
def naive(store_url: str, *loop: str) -> Iterator[Contender]:
    with ExitStack() as stack:
        server, line = _started(stack, [sys.executable, "orders_naive.py", store_url, *loop], "ready")
        yield Contender(server, _load(stack, "naive", int(line.split()[1])), settles=False)


def _load(stack: ExitStack, kind: str, port: int) -> subprocess.Popen[str]:
    return _started(stack, [sys.executable, "orders_load.py", kind, str(port), SECRET], "ready")[0]


# -- the questions


def beside_naive(store_url: str) -> list[Case | Figure]:
    """At everysec: every window with equal load, every load with window 64."""
    combinations = [(window, "equal") for window in WINDOWS] + [(64, load) for load in LOADS[1:]]
    cpu = Figure("server CPU per command, 64 in flight", "µs", [], PROMISED_CPU_US)
    found: list[Case | Figure] = []
    with ours(store_url, "everysec") as we, naive(store_url) as peer, naive(store_url, "asyncio") as plain:
        for one in (we, peer, plain):
            one.closed(64, WARM_UP_S)
        for window, load in combinations:
            is_main = (window, load) == (64, "equal")
            promised = {"naive": PROMISED_RATIO, "promised": 1.0} if is_main else {}
            case = Case(f"commands/s, everysec, {window} in flight, {load}", promised)
            for number in range(1, ROUNDS + 1):
                print(f"{case.name}: round {number} of {ROUNDS}", flush=True)
                measured = we.closed(window, ROUND_S, load)
                case.add("ours", measured.rate)
                case.add("naive", peer.closed(window, ROUND_S, load).rate)
                case.add("without uvloop", plain.closed(window, ROUND_S, load).rate)
                if is_main:
                    cpu.rounds.append(measured.cpu_us)
            if is_main:
                case.add("promised", PROMISED_RATE)
            found.append(case)
        found.append(cpu)
        found += latencies("everysec", lambda: we.open(OPEN_PER_S), OPEN_PER_S)
        found += latencies("everysec", lambda: we.open(OPEN_FAST_PER_S), OPEN_FAST_PER_S)
        found += latencies("naive", lambda: peer.open(OPEN_PER_S), OPEN_PER_S)
    return found


def at_level(store_url: str, durability: str) -> list[Case | Figure]:
    found: list[Case | Figure] = []
    with ours(store_url, durability) as we:
        we.closed(64, WARM_UP_S)
        for window in WINDOWS:
            case = Case(f"commands/s, {durability}, {window} in flight, equal")
            for number in range(1, ROUNDS + 1):
                print(f"{case.name}: round {number} of {ROUNDS}", flush=True)
                case.add("ours", we.closed(window, ROUND_S).rate)
            found.append(case)
        return found + latencies(durability, lambda: we.open(OPEN_PER_S), OPEN_PER_S)


def latencies(who: str, once: Callable[[], Found], per_second: int) -> list[Case | Figure]:
    rounds = [once().times_ms for _ in range(OPEN_ROUNDS)]
    return [
        Figure(f"{who}: {name} at {per_second:,}/s, open loop", "ms", [one[name] for one in rounds])
        for name in ("p50", "p99", "p999")
    ]


def main() -> list[Case | Figure]:
    found: list[Case | Figure] = []
    with run_valkey(persistent=True) as store:
        found += beside_naive(store.url)
    for durability in ("memory", "fsync"):
        with run_valkey(persistent=True) as store:
            found += at_level(store.url, durability)
    with run_valkey(persistent=True) as store, replica_of(store):
        found += at_level(store.url, "replica")
    return found


@contextmanager
def replica_of(store: RunningServer) -> Iterator[None]:
    with run_valkey(options=["--replicaof", "127.0.0.1", str(store.port)]):
        wait_until(lambda: b"state=online" in store.command_reply("INFO", "replication"), "the replica")
        yield


if __name__ == "__main__":
    path = result_file()
    sys.exit(publish("orders", "accepted commands per second", METHOD, main(), path))
