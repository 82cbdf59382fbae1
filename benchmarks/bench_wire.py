"""How many calls per second go from one process to another, beside grpc.aio, with and without uvloop?"""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from report import Case, publish, result_file

ROUNDS = 5
ROUND_S = 1.0
WARM_UP_S = 0.3
PROMISED = {"grpc.aio": 15.0, "grpc + uvloop": 15.0}

METHOD = (
    f"Each contender is a server process and a client process of its own on loopback TCP; only one pair "
    f"works at a time. Callers each repeat one call with 32 bytes, which come back, as soon as its reply "
    f"is there, for {ROUND_S:g} s; the rate is replies per second. Contenders take turns within each of "
    f"{ROUNDS} rounds; the median counts. Handlers are async functions that do not wait. Ours: handshake, "
    f"deadlines and limits on; calls are awaited except where the case says callback. grpc.aio: generic "
    f"handlers with bytes, so no protobuf is paid for; a channel with a subchannel pool of its own for "
    f"each connection. Everybody has a deadline of 10 s. NB: callers that do nothing between two calls "
    f"fall into step, so with 64 in flight our writes carry many of them; 64 connections with one call "
    f"each show what is left without that."
)

HERE = Path(__file__).resolve().parent


class Contender:
    """A server and a client process that does what it is told."""

    def __init__(self, kind: str, loop: str, stack: ExitStack) -> None:
        self._stack = stack
        server = self._start("serve", kind, loop)
        self._client = self._start("drive", kind, loop, _said(server))
        assert _said(self._client) == "ready"

    def rate(self, what: str, callers: int, seconds: float) -> float:
        assert self._client.stdin is not None
        self._client.stdin.write(f"{what} {callers} {seconds}\n")
        self._client.stdin.flush()
        return float(_said(self._client))

    def _start(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(HERE / "wire_contender.py"), *words]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._stack.callback(_end, process)
        return process


def _said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line:
        sys.exit("a process of the benchmark ended")
    return line


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.communicate()


def measure(case: Case, contenders: dict[str, tuple[Contender, str]], callers: int) -> Case:
    """`contenders`: name → who, and over what (`one` connection, `many`, or by `callback`)."""
    for one, what in contenders.values():
        one.rate(what, callers, WARM_UP_S)
    for number in range(1, ROUNDS + 1):
        print(f"{case.name}: round {number} of {ROUNDS}", flush=True)
        for name, (one, what) in contenders.items():
            case.add(name, one.rate(what, callers, ROUND_S))
    return case


def main() -> list[Case]:
    with ExitStack() as stack:
        fast, plain = Contender("ours", "uvloop", stack), Contender("ours", "asyncio", stack)
        grpc_fast, grpc_plain = Contender("grpc", "uvloop", stack), Contender("grpc", "asyncio", stack)

        def beside(ours: Contender, what: str, peers_do: str) -> dict[str, tuple[Contender, str]]:
            peers = {"grpc.aio": (grpc_plain, peers_do), "grpc + uvloop": (grpc_fast, peers_do)}
            return {"ours": (ours, what)} | peers

        return [
            measure(Case("64 in flight, one connection", PROMISED), beside(fast, "one", "one"), 64),
            measure(Case("the same, ours on asyncio's loop"), beside(plain, "one", "one"), 64),
            measure(Case("the same, ours by callback"), beside(fast, "callback", "one"), 64),
            measure(Case("1 in flight"), beside(fast, "one", "one"), 1),
            measure(Case("64 connections, one in flight each"), beside(fast, "many", "many"), 64),
        ]


if __name__ == "__main__":
    path = result_file()
    sys.exit(publish("wire", "calls per second", METHOD, main(), path))
