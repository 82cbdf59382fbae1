"""A launch evening while everything dies in turn: gateways, managers, game servers, the store's primary.

All of it as real processes, with `roost drill launch` as the crowd. The invariants: nobody is lost, nobody is
inside twice, no server and no world holds more than it takes, and in the end the ledger is empty and adds up.

A primary that dies may take acknowledged writes with it. Somebody may then have to enter again; what holds all
the same is that nobody is too many and nobody stands outside for ever.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from roost.api.queue import WorldView
from roost.core.ids import Scope
from roost.sdk.http import HttpTransport
from roost.store.store import Store
from roost.store.url import parse_store_url
from roost.testing import RunningCluster, SentinelGroup, free_port, run_cluster, run_sentinel, wait_until
from tests.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]

ROOST = (sys.executable, "-m", "roost")
WORLD = Scope("main")
TTL_S = 6.0
GRACE_S = 10
TICKET_S = 10
HOLDS_PROGRESS_S = 40.0
"""After any one fault people get in again within this: a leader's lease, a server's, and a new primary."""


def key() -> str:
    return "k:" + base64.b64encode(secrets.token_bytes(32)).decode()


@dataclass
class Town:
    """Every process of an evening, by name; each can be killed and started again as what it was."""

    folder: Path
    store: str
    capacity: int
    commands: dict[str, tuple[str, ...]] = field(default_factory=dict)
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ROOST_")}
        self.token = secrets.token_hex(16)
        self.env = kept | {
            "ROOST_PROFILE": "lan",
            "ROOST_STORE": self.store,
            "ROOST_API_TOKEN": self.token,
            "ROOST_QUEUE_KEYS": key(),
            "ROOST_TICKET_KEYS": key(),
            "ROOST_QUEUE__TICKET_SECONDS": str(TICKET_S),
            "ROOST_QUEUE__GRACE_SECONDS": str(GRACE_S),
        }
        self.gateways = [f"http://127.0.0.1:{free_port()}" for _ in range(2)]
        for number, url in enumerate(self.gateways, 1):
            self.commands[f"gateway-{number}"] = ("gateway", "--port", url.rpartition(":")[2])
            self.commands[f"manager-{number}"] = ("manager",)
        # Two by a gateway each, as most would; one straight on the store.
        for number, where in enumerate((*self.gateways, self.store), 1):
            self.commands[f"game-{number}"] = (
                *("gameserver", "--url", where, "--port", str(_port_pair()), "--server-id", f"game-{number}"),
                *("--capacity", str(self.capacity), "--ttl", f"{TTL_S:g}"),
            )

    def start(self, name: str) -> None:
        command = (*ROOST, *self.commands[name], "--data", str(self.folder / name))
        with (self.folder / f"{name}.log").open("ab") as out:
            self.running[name] = subprocess.Popen(
                command, stdout=out, stderr=out, env=self.env, cwd=self.folder
            )

    def start_all(self) -> None:
        for role in ("gateway", "manager", "game"):
            names = [name for name in self.commands if name.startswith(role)]
            for name in names:
                self.start(name)
            for name in names:
                wait_until(lambda name=name: "is up" in self.log(name), name, lambda name=name: self.log(name))  # type: ignore[misc]

    def kill(self, name: str) -> None:
        """kill -9."""
        self.running[name].kill()
        self.running[name].wait()

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def drill(self, *args: str) -> subprocess.Popen[str]:
        command = (*ROOST, "drill", "launch", "--no-servers", "--json", "--url", self.gateways[0])
        process = subprocess.Popen(
            (*command, "--also", self.gateways[1], *args),
            env=self.env,
            cwd=self.folder,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.running["drill"] = process  # type: ignore[assignment]
        return process

    def end(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
