"""The whole example in one command: ann plays on version 1.0, and it is replaced by 2.0 while she does.

She stays connected, nothing that she was told is lost, and the old server ends by itself.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import roost

HERE = Path(__file__).parent
PORTS = {"gateway": "8400", "gate": "8410", "first": "8430", "second": "8431"}
WITHIN_S = 60


def start(log: Path, *args: str) -> subprocess.Popen[bytes]:
    """A part of Roost; returns when it is up."""
    process = subprocess.Popen(
        [sys.executable, "-m", "roost", *args], cwd=HERE, stdout=log.open("wb"), stderr=subprocess.STDOUT
    )
    deadline = time.monotonic() + WITHIN_S
    while "is up" not in log.read_text():
        if process.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"roost {args[0]} did not start:\n{log.read_text()}")
        time.sleep(0.05)
    return process


class Ann:
    """Asks for gold without pause, and tells when the answer comes from another version."""

    def __init__(self) -> None:
        self.said: dict[str, int] = {}
        self.sees: dict[str, asyncio.Event] = {"1.0": asyncio.Event(), "2.0": asyncio.Event()}
        self.gold = 0

    async def play(self, url: str, is_over: asyncio.Event) -> None:
        async with roost.play(url, "dev:ann") as ann:
            while not is_over.is_set():
                self.hear(await ann.request("gold"))
            print(f"ann has {self.gold} gold and was connected {ann.connects} time", flush=True)

    def hear(self, said: dict[str, int | str]) -> None:
        if said["gold"] != self.gold + 1:
            sys.exit(f"ann had {self.gold} gold and was told {said}")
        self.gold += 1
        version = str(said["version"])
        if not self.sees[version].is_set():
            purse = "gold and silver" if "silver" in said else "gold"
            print(f"ann sees version {version}, a purse of {purse}", flush=True)
            self.sees[version].set()


async def patch(logs: Path, ports: dict[str, str], entity: list[str], first: subprocess.Popen[bytes]) -> None:
    """What an operator does on patch night, while ann plays."""
    data, ann, is_over = ("--data", str(logs)), Ann(), asyncio.Event()
    playing = asyncio.create_task(ann.play(f"ws://127.0.0.1:{ports['gate']}", is_over))
    await asyncio.wait_for(ann.sees["1.0"].wait(), WITHIN_S)
    second = await asyncio.to_thread(
        lambda: start(
            logs / "502.log",
            *(*entity, "--id", "502", "--version", "2.0", "--class", "hero_v2:Hero"),
            *("--port", ports["second"]),
        )
    )
    try:
        print("$ roost entity_hotfix 501", flush=True)
        order = [sys.executable, "-m", "roost", "entity_hotfix", "501", *data]
        done = await asyncio.create_subprocess_exec(*order)
        if await done.wait():
            sys.exit("the hot update did not go well")
        await asyncio.wait_for(ann.sees["2.0"].wait(), WITHIN_S)
        print("server 501 ended with", await asyncio.to_thread(first.wait, WITHIN_S), flush=True)
        is_over.set()
        await playing
    finally:
        second.terminate()
        await asyncio.to_thread(second.wait, WITHIN_S)


def main() -> None:
    ports = {name: os.environ.get(f"EXAMPLE_{name.upper()}_PORT", port) for name, port in PORTS.items()}
    with tempfile.TemporaryDirectory() as folder:
        logs, data, processes = Path(folder), ("--data", folder), []
        try:
            processes.append(start(logs / "up.log", "up", *data, "--port", ports["gateway"]))
            entity = ["entity", *data]
            first = start(
                logs / "501.log",
                *(*entity, "--id", "501", "--version", "1.0", "--class", "hero_v1:Hero"),
                *("--port", ports["first"]),
            )
            processes.append(first)
            gate = ("gate", *data, "--tcp-port", "0", "--port", ports["gate"])
            processes.append(start(logs / "gate.log", *gate))
            asyncio.run(patch(logs, ports, entity, first))
        finally:
            for process in reversed(processes):
                process.terminate()
                process.wait(WITHIN_S)


if __name__ == "__main__":
    main()
