"""Starting and ending the processes of the demo."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import socket
import sys
from collections.abc import Mapping

from roost.demo.names import ENTITY, GAME, GAME_CAPACITY, PREFIX, WORLD, folder_of
from roost.settings import Settings, environment_for
from roost.web.ops import OPS_PORT_ABOVE

STOP_S = 12.0
HOST = "127.0.0.1"
FIRST_PORT, LAST_PORT = 18_500, 19_400
"""Above the ports of servers that somebody starts, below those that the system gives out."""


class Child:
    """One process; `word` is heard by it, and its end of the pipe is its life line."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self.process = process

    @property
    def is_alive(self) -> bool:
        return self.process.returncode is None

    async def say(self, word: str) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.write(f"{word}\n".encode())
            await self.process.stdin.drain()

    def kill(self) -> None:
        """As a crash would end it."""
        if self.is_alive:
            self.process.kill()

    async def end(self) -> None:
        """Cleanly, or, where that takes too long, not."""
        if self.is_alive:
            self.process.terminate()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STOP_S):
                    await self.process.wait()
        self.kill()
        await self.process.wait()


async def start_entity(settings: Settings, ports: Ports, server_id: str, version: str) -> Child:
    own = {"ROOST_ENTITY__PORT": str(ports.take(1)[0])}
    return await _start(settings, server_id, ("entity", server_id, version), own)


async def start_rest(settings: Settings, ports: Ports, url: str, shards: str, symbols: str) -> Child:
    """Gate, game server, players, and where there are shards for it the order server."""
    gate, game, orders = ports.take(3)
    own = {
        "ROOST_URL": url,
        "ROOST_GATE__PORT": str(gate),
        "ROOST_GATE__TCP_PORT": "0",
        "ROOST_GATE__TYPE": ENTITY,
        "ROOST_GAMESERVER__PORT": str(game),
        "ROOST_GAMESERVER__WORLD": WORLD,
        "ROOST_GAMESERVER__CAPACITY": str(GAME_CAPACITY),
        "ROOST_ORDERS__PORT": str(orders),
    }
    if shards:
        own |= {"ROOST_ORDERS__SHARDS": shards, "ROOST_ORDERS__SYMBOLS": symbols}
    return await _start(settings, f"{PREFIX}rest", ("rest",), own)


async def _start(settings: Settings, name: str, args: tuple[str, ...], own: Mapping[str, str]) -> Child:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "roost.demo",
        *args,
        stdin=asyncio.subprocess.PIPE,
        start_new_session=True,  # a Ctrl-C in the terminal reaches it once, through us
        env={**environment_for(settings), **_shared(settings), **own},
    )
    return Child(name, process)


def _shared(settings: Settings) -> dict[str, str]:
    """What holds for every process of the demo, whatever the environment says for those of the developer."""
    return {
        "ROOST_DATA": str(settings.data),
        "ROOST_PROFILE": settings.profile,
        "ROOST_NAMESPACE": settings.namespace,
        **({"ROOST_CONFIG": settings.config} if settings.config else {}),
        "ROOST_LOG_LEVEL": "error",
        "ROOST_DATABASE": f"sqlite:///{folder_of(settings.data) / 'users.db'}",
        "ROOST_QUEUE__WORLDS": f"{WORLD}={GAME}",
        "ROOST_BINDING__TYPES": ENTITY,
        "ROOST_GATE__WORLD": "",
        "ROOST_GATE__HOST": HOST,
        "ROOST_ENTITY__HOST": HOST,
        "ROOST_ENTITY__DATABASE_LEASE_SECONDS": "0",
        "ROOST_GAMESERVER__HOST": HOST,
        "ROOST_ORDERS__HOST": HOST,
    }


class Ports:
    """Gives out ports that are free, and those of their metrics with them; none twice in a while."""

    def __init__(self) -> None:
        self._next = itertools.cycle(range(FIRST_PORT, LAST_PORT))
        for _ in range(random.randrange(LAST_PORT - FIRST_PORT)):  # others on this machine have demos too
            next(self._next)

    def take(self, count: int) -> list[int]:
        tried = itertools.islice(self._next, LAST_PORT - FIRST_PORT)
        free = (port for port in tried if _is_free(port) and _is_free(port + OPS_PORT_ABOVE))
        return list(itertools.islice(free, count))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
