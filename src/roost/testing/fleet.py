"""Game servers for tests: registered, sending heartbeats, in a process that can be killed and stopped.

with run_fleet(server.url, 3) as fleet:
    fleet.kill()  # three servers fall silent at once
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from roost.testing.waiting import START_S, wait_until

Fault = Literal["", "hang", "skew", "sweep"]
"""hang: the main loop blocks a second after the servers have registered, their process lives on. skew: the
process's clock is an hour ahead. sweep: it also makes time pass, for a store on which no gateway does."""


@dataclass
class Fleet:
    """Servers `s0`, `s1`, … of type `game` in group `kr-1`, all in one process."""

    ids: list[str]
    """Instance ids, in the order of the server ids."""
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """kill -9: nobody says goodbye."""
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        """SIGSTOP: the servers hang, their connections stay open."""
        os.kill(self.process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)


@contextlib.contextmanager
def run_fleet(url: str, count: int = 1, *, ttl_seconds: float = 30.0, fault: Fault = "") -> Iterator[Fleet]:
    """`count` servers registered at the gateway or store behind `url`; killed on the way out."""
    command = [sys.executable, "-m", "roost.testing.fleet_process", url, str(count), str(ttl_seconds)]
    with tempfile.NamedTemporaryFile(prefix="roost-fleet-", suffix=".log") as log:
        process = subprocess.Popen([*command, *([fault] if fault else [])], stdout=log, stderr=log)

        def said() -> str:
            # By its name: the process writes where our own handle stands.
            return Path(log.name).read_text(errors="replace")

        def has_registered() -> bool:
            if process.poll() is not None:
                raise RuntimeError(f"the fleet ended with {process.returncode}: {said()}")
            return said().endswith("]\n")

        try:
            wait_until(has_registered, "the fleet to register", said, START_S)
            yield Fleet(json.loads(said().splitlines()[-1]), process)
        finally:
            process.kill()  # also ends a process that is stopped
            process.wait()
