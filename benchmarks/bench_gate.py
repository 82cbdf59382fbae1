"""What does a message cost through a gate to its entity and back, beside a bare WebSocket echo?"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from report import Case, Figure, publish, result_file
from roost.testing import free_port

ROUNDS = 5
ROUND_S = 2.0
WARM_UP_S = 1.5
CLIENTS = 1000
OPEN_PER_S = 2000
OPEN_S = 3.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")

METHOD = (
    f"`roost up` (gateway, manager, embedded store), one entity server with the reference class and one "
    f"gate, each a process; {CLIENTS} WebSocket clients in one more process, logged in, send JSON of 64 "
    f"bytes. Beside it an aiohttp WebSocket echo under uvloop with as many clients of the same program. "
    f"Closed loop: each client sends as soon as its reply is there, for {ROUND_S:g} s; contenders take turns "
    f"within each of {ROUNDS} rounds, the median counts. CPU seconds are those of the gate, and of the echo "
    f"server. Open loop: {OPEN_PER_S} messages a second on a schedule over all clients; the time is from "
    f"when a message was due. NB: gate, entity (which executes, numbers and flushes), store and clients "
    f"share the machine's cores, the echo has them with its clients alone."
)

HERE = Path(__file__).resolve().parent


class Processes:
    """What a contender runs."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))

    def roost(self, *words: str) -> subprocess.Popen[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ROOST_")}
        environment = kept | {"ROOST_DATA": str(self._folder), "ROOST_LOG_LEVEL": "warning"}
        return self._start([sys.executable, "-m", "roost", *words], "is up", environment)

    def part(self, *words: str) -> subprocess.Popen[str]:
        return self._start([sys.executable, str(HERE / "gate_contender.py"), *words], "ready", None)

    def _start(
        self, command: list[str], until: str, environment: dict[str, str] | None
    ) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self._stack.callback(_end, process)
        assert process.stdout is not None
        while until not in (line := process.stdout.readline()):
            if not line:
                sys.exit(f"{' '.join(command[2:])} ended")
        return process


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.communicate()


class Contender:
    """A server with its clients."""

    def __init__(self, server: subprocess.Popen[str], clients: subprocess.Popen[str]) -> None:
        self._pid = server.pid
        self._clients = clients

    def rate(self, seconds: float) -> tuple[float, float]:
        """Messages per second, and per CPU second of the server."""
        before = self._cpu_s()
        rate = float(self._ask(f"closed {seconds}"))
        return rate, rate * seconds / (self._cpu_s() - before)

    def latency_ms(self) -> tuple[float, float]:
        p50, p99 = self._ask(f"open {OPEN_PER_S} {OPEN_S}").split()
        return float(p50), float(p99)

    def _ask(self, words: str) -> str:
        assert self._clients.stdin is not None
        assert self._clients.stdout is not None
        self._clients.stdin.write(words + "\n")
        self._clients.stdin.flush()
        return self._clients.stdout.readline() or sys.exit("the clients ended")

    def _cpu_s(self) -> float:
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def contenders(stack: ExitStack) -> dict[str, Contender]:
    run = Processes(stack)
    port, tcp_port, echo_port = free_port(), free_port(), free_port()
    run.roost("up", "--no-demo", "--port", str(free_port()))
    run.roost("entity", "--id", "501", "--port", str(free_port()))
    gate = run.roost("gate", "--port", str(port), "--tcp-port", str(tcp_port))
    echo = run.part("echo", str(echo_port))
    through_gate = run.part("drive", f"ws://127.0.0.1:{port}", str(CLIENTS), "gate")
    to_echo = run.part("drive", f"ws://127.0.0.1:{echo_port}", str(CLIENTS), "echo")
    return {"ours": Contender(gate, through_gate), "echo": Contender(echo, to_echo)}


def main() -> list[Case | Figure]:
    with ExitStack() as stack:
        both = contenders(stack)
        rate = Case(f"messages/s, {CLIENTS} clients", {"echo": 0.4})
        per_cpu = Case("messages per CPU second of the server", {"echo": 0.5})
        for one in both.values():
            one.rate(WARM_UP_S)
        for number in range(1, ROUNDS + 1):
            print(f"closed loop: round {number} of {ROUNDS}", flush=True)
            for name, one in both.items():
                found = one.rate(ROUND_S)
                rate.add(name, found[0])
                per_cpu.add(name, found[1])
        figures: list[Case | Figure] = [rate, per_cpu]
        for name, one in both.items():
            rounds = [one.latency_ms() for _ in range(3)]
            who = "gate" if name == "ours" else name
            for which, place in (("p50", 0), ("p99", 1)):
                shown = [found[place] for found in rounds]
                figures.append(Figure(f"{who}: {which} at {OPEN_PER_S}/s, open loop", "ms", shown))
        return figures


if __name__ == "__main__":
    path = result_file()
    sys.exit(publish("gate", "messages per second", METHOD, main(), path))
