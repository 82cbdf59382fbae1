"""The whole example in one command: a store, an entity server, a gate, and ann, who comes twice.

Between her two visits the entity server is killed. Nothing is lost, and another one takes over.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from counter import play

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


def main() -> None:
    ports = {name: os.environ.get(f"EXAMPLE_{name.upper()}_PORT", port) for name, port in PORTS.items()}
    with tempfile.TemporaryDirectory() as folder:
        data = ("--data", folder)
        entity = ("entity", *data, "--class", "counter:Counter")
        processes = []
        try:
            logs = Path(folder)
            processes.append(start(logs / "up.log", "up", *data, "--port", ports["gateway"]))
            first = start(logs / "501.log", *entity, "--id", "501", "--port", ports["first"])
            processes.append(first)
            processes.append(
                start(logs / "gate.log", "gate", *data, "--tcp-port", "0", "--port", ports["gate"])
            )
            asyncio.run(play(f"ws://127.0.0.1:{ports['gate']}"))
            first.send_signal(signal.SIGKILL)
            print("server 501 is killed, 502 starts", flush=True)
            processes.append(start(logs / "502.log", *entity, "--id", "502", "--port", ports["second"]))
            asyncio.run(play(f"ws://127.0.0.1:{ports['gate']}"))
        finally:
            for process in reversed(processes):
                process.terminate()
                process.wait(WITHIN_S)


if __name__ == "__main__":
    main()
