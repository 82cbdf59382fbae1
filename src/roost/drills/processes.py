"""Roles of Roost as real processes on one data folder: each can be killed, frozen, started again.

The first one owns the store; the server under it has the name `database`.
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
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from roost.core.errors import StartFailed

START_S = 30.0
STOP_S = 10.0
LOOK_S = 0.1
OPS_PORT_ABOVE = 1000
LOWEST_PORT, PORTS = 10_000, 22_000
STORE_OWNER = "store-owner"
DATABASE = "database"
SETTINGS = {
    "ROOST_PROFILE": "dev",
    "ROOST_STORE": "embedded:",
    "ROOST_LOG_FORMAT": "json",
    "ROOST_LOG_LEVEL": "info",
}


class Processes:
    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        """`settings`: of all of them, in the environment, above the drills' own."""
        self.folder = folder
        self.data = folder / "data"
        self.token = secrets.token_hex(16)
        self.lives: dict[str, int] = {}
        """Name → how often it was started."""
        self._settings = {**SETTINGS, "ROOST_API_TOKEN": self.token, **settings}
        self._commands: dict[str, list[str]] = {}
        self._running: dict[str, asyncio.subprocess.Process] = {}
        self.add(STORE_OWNER, "up", "--without", "gateway", "--without", "manager")

    def add(self, name: str, *command: str) -> None:
        """Something to start: a role of `roost` with its flags."""
        self._commands[name] = list(command)
        self.lives[name] = 0

    @property
    def names(self) -> tuple[str, ...]:
        return (DATABASE, *self._commands)

    @contextlib.asynccontextmanager
    async def open(self, names: Sequence[str] = ()) -> AsyncIterator[None]:
        """These, else all of them, one after the other; in the end all are stopped, the store last."""
        try:
            for name in names or self._commands:
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

    def ended(self, name: str) -> int | None:
        """The exit code of one that has ended."""
        return self._running[name].returncode

    # -- what can happen to one of them

    async def start(self, name: str) -> None:
        command = [sys.executable, "-m", "roost", *self._commands[name], "--data", str(self.data)]
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log(name).open("ab") as out:
            before = out.tell()
            self._running[name] = await asyncio.create_subprocess_exec(
                "/usr/bin/env",
                *_assigned(self._settings),
                *command,
                stdout=out,
                stderr=out,
                start_new_session=True,
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

    async def end(self, name: str) -> None:
        """kill -9. The database is started again by whoever owns it."""
        os.kill(self.pid(name), signal.SIGKILL)
        if name != DATABASE:
            await self._running[name].wait()

    async def kill(self, name: str) -> None:
        """kill -9, and start it again."""
        await self.end(name)
        if name != DATABASE:
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


def free_port(and_above: int = 0) -> int:
    """A port that nobody has now, nor the one so far above it, and that stays free until its server starts:
    the kernel gives none this low to outgoing connections, of which a drill makes thousands."""
    for _ in range(100):
        port = LOWEST_PORT + secrets.randbelow(PORTS - and_above)
        with socket.socket() as one, socket.socket() as above, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", port))
            above.bind(("127.0.0.1", port + and_above if and_above else 0))
            return port
    raise StartFailed("no free port was found")
