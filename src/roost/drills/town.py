"""What a launch evening needs, as real processes: each can be measured, killed, frozen, started again.

    store-owner (with the database under it)   gateway-1 gateway-2   manager-1 manager-2   game-1 game-2

NB: it reads /proc, so it runs on Linux only.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from roost.core.errors import StartFailed

START_S = 30.0
STOP_S = 10.0
LOOK_S = 0.1
OPS_PORT_ABOVE = 1000
DATABASE = "database"
SETTINGS = {
    "ROOST_PROFILE": "dev",
    "ROOST_STORE": "embedded:",
    "ROOST_LOG_FORMAT": "json",
    "ROOST_LOG_LEVEL": "info",
    "ROOST_QUEUE__TICKET_SECONDS": "10",
    "ROOST_QUEUE__GRACE_SECONDS": "10",
    "ROOST_QUEUE__IP_PER_SECOND": "100000",
}


@dataclass(frozen=True, slots=True)
class Size:
    """Of one process, now."""

    memory_mb: float
    files: int


class Town:
    def __init__(self, folder: Path, capacity: int) -> None:
        self.folder = folder
        self.token = secrets.token_hex(16)
        self.data = folder / "data"
        ports = {name: _free_port() for name in ("gateway-1", "gateway-2", "manager-1", "manager-2")}
        ports |= {name: _free_port(OPS_PORT_ABOVE) for name in ("game-1", "game-2")}
        self.gateways = [f"http://127.0.0.1:{ports[name]}" for name in ("gateway-1", "gateway-2")]
        self._commands: dict[str, list[str]] = {
            "store-owner": ["up", "--without", "gateway", "--without", "manager"]
        }
        self.metrics: dict[str, str] = {}
        for name, port in ports.items():
            role = name.partition("-")[0].replace("game", "gameserver")
            command = [role, "--port", str(port)]
            if role == "gameserver":
                command += ["--url", self.gateways[0], "--server-id", name, "--ttl", "6"]
                command += ["--capacity", str(capacity // 2)]
            self._commands[name] = command
            ops = port + OPS_PORT_ABOVE if role == "gameserver" else port
            self.metrics[name] = f"http://127.0.0.1:{ops}/metrics"
        self._running: dict[str, asyncio.subprocess.Process] = {}
        self.lives: dict[str, int] = dict.fromkeys(self._commands, 0)

    @property
    def names(self) -> tuple[str, ...]:
        return (DATABASE, *self._commands)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """All of them, one after the other; in the end all are stopped, the store last."""
        try:
            for name in self._commands:
                await self.start(name)
            yield
        finally:
            for name in reversed(self._commands):
                await self._stop(name)

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def pid(self, name: str) -> int:
        if name == DATABASE:
            return int(json.loads((self.data / "store" / "server.json").read_text(encoding="utf-8"))["pid"])
        return self._running[name].pid

    def size(self, name: str) -> Size:
        process = Path(f"/proc/{self.pid(name)}")
        status = process.joinpath("status").read_text(encoding="utf-8")
        resident = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return Size(int(resident.split()[1]) / 1024, len(list(process.joinpath("fd").iterdir())))

    # -- what can happen to one of them

    async def start(self, name: str) -> None:
        command = [sys.executable, "-m", "roost", *self._commands[name], "--data", str(self.data)]
        settings = SETTINGS | {"ROOST_API_TOKEN": self.token}
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log(name).open("ab") as out:
            before = out.tell()
            self._running[name] = await asyncio.create_subprocess_exec(
                "/usr/bin/env", *_assigned(settings), *command, stdout=out, stderr=out, start_new_session=True
            )
        self.lives[name] += 1
        await self._wait_until_up(name, before)

    async def _wait_until_up(self, name: str, after: int) -> None:
        try:
            async with asyncio.timeout(START_S):
                while b"is up" not in self.log(name).read_bytes()[after:]:
                    if self._running[name].returncode is not None:
                        raise StartFailed(f"{name} ended at its start", hint=str(self.log(name)))
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            raise StartFailed(f"{name} is not up after {START_S:g} s", hint=str(self.log(name))) from None

    async def kill(self, name: str) -> None:
        """kill -9, and start it again. The database is started again by whoever owns it."""
        os.kill(self.pid(name), signal.SIGKILL)
        if name != DATABASE:
            await self._running[name].wait()
            await self.start(name)

    async def restart(self, name: str) -> None:
        """As in a rolling update: asked to stop, then started again."""
        await self._stop(name)
        await self.start(name)

    async def freeze(self, name: str, seconds: float) -> None:
        pid = self.pid(name)
        os.kill(pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    async def _stop(self, name: str) -> None:
        process = self._running.get(name)
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(STOP_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def _assigned(settings: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in settings.items()]


def _free_port(and_above: int = 0) -> int:
    """A port that nobody has now, nor the one so far above it."""
    for _ in range(100):
        with socket.socket() as one, socket.socket() as above, contextlib.suppress(OSError, OverflowError):
            one.bind(("127.0.0.1", 0))
            port = int(one.getsockname()[1])
            above.bind(("127.0.0.1", port + and_above if and_above else 0))
            return port
    raise StartFailed("no free port was found")
