"""The processes of an evening on one store, each with a name: gateways, managers, games, gates and homes."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.test_utils import TestServer

from roost.servers.gameserver import PATH
from roost.settings import Loaded, Settings
from roost.testing import RunningServer, free_port
from tests.acceptance.conftest import Home, Started
from tests.acceptance.queue import TOKEN
from tests.acceptance.store_users import url_of
from tests.faults.harness import Proxy

SETTINGS = {
    "ROOST_PROFILE": "dev",
    "ROOST_API_TOKEN": TOKEN,
    "ROOST_QUEUE__TICK_MS": "100",
    "ROOST_QUEUE__USER_PER_SECOND": "100",
    "ROOST_QUEUE__USER_BURST": "100",
    "ROOST_QUEUE__IP_PER_SECOND": "10000",
    "ROOST_LANES__DURABILITY": "memory",
    "ROOST_LANES__LEASE_MS": "3000",
}
STOP_S = 20.0
JOURNALED = "roost.servers.entity.reference:JournalReference"
"""What homes of these stories hold: nothing that they acknowledged is lost."""


class Pager:
    """Hears the alerts, as an operator's webhook does."""

    def __init__(self) -> None:
        self.url = ""
        self.alerts: list[str] = []
        """In the order of their coming: `501 unhealthy`."""

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/", self._take)
        return app

    async def _take(self, request: web.Request) -> web.Response:
        alert = await request.json()
        self.alerts.append(f"{alert['subject']} {alert['kind']}")
        return web.Response()


class Houses:
    """Starts them by name (`gateway 1`, `game 501`), and again at the same port after their end."""

    def __init__(self, home: Home, store: RunningServer, pager: Pager) -> None:
        self.store = store
        self.pager = pager
        self.rules: dict[str, str] = {}
        """Settings of the waiting room for this evening."""
        self.wire: Proxy | None = None
        """Between the game servers and the first gateway, where a story has one."""
        self._home = home
        self._commands: dict[str, list[str]] = {}
        self._ports: dict[str, int] = {}
        self._running: dict[str, Started] = {}

    async def start(self, name: str, *flags: str) -> None:
        """With these flags; without any as it was started before."""
        if flags or name not in self._commands:
            self._commands[name] = self._command(name, flags)
        role = self._commands[name][0]
        env = SETTINGS | self.rules | {"ROOST_STORE": url_of(role, self.store.url)}
        env["ROOST_ALERTS__WEBHOOKS"] = f"json={self.pager.url}"
        self._running[name] = await asyncio.to_thread(self._home.start, *self._commands[name], **env)

    def _command(self, name: str, flags: tuple[str, ...]) -> list[str]:
        role, _, number = name.partition(" ")
        port = self._ports.setdefault(name, free_port())
        if role == "gate":  # a server of the world, as its game servers are
            own = ("--type", "game", "--server-id", f"gate-{number}", "--tcp-port", "0", "--world", "main")
            return [role, "--port", str(port), *own, *flags]
        if role == "home":
            return ["entity", "--port", str(port), "--id", number, "--class", JOURNALED, *flags]
        if role == "orders":
            return ["orders", "serve", "--port", str(port), "--id", number, *flags]
        if role != "game":
            return [role, "--port", str(port), *flags]
        where = self.wire.url.replace("redis", "http") if self.wire else ",".join(self.gateways)
        return ["gameserver", "--port", str(port), "--server-id", number, "--url", where, *flags]

    def settings(self) -> Settings:
        """Of a program beside them: the same store, the same secret."""
        own = {"ROOST_STORE": url_of("sdk", self.store.url), "ROOST_DATA": str(self._home.data)}
        return Loaded.load(environ=SETTINGS | own).settings

    @property
    def gateways(self) -> list[str]:
        """Addresses of all that were ever started: who calls does not know which of them live."""
        return [
            f"http://127.0.0.1:{port}" for name, port in self._ports.items() if name.startswith("gateway")
        ]

    def server_at(self, url: str) -> str:
        """The number of the game server that players reach there."""
        return next(name.split()[1] for name, port in self._ports.items() if f":{port}/" in url)

    def url_of(self, server: str) -> str:
        """Where players reach it."""
        return f"ws://127.0.0.1:{self._ports[f'game {server}']}{PATH}"

    async def stop(self, name: str) -> int:
        """As a rolling restart does; its exit code."""
        return await asyncio.to_thread(self._running[name].interrupt, signal.SIGTERM, STOP_S)

    async def ended(self, name: str) -> int:
        """Wait for one that ends by itself; its exit code."""
        return await asyncio.to_thread(self._running[name].process.wait, STOP_S)

    async def kill(self, name: str) -> None:
        self._running[name].process.kill()
        await asyncio.to_thread(self._running[name].process.wait)

    def freeze(self, name: str) -> None:
        os.kill(self._running[name].process.pid, signal.SIGSTOP)

    def wake(self, name: str) -> None:
        os.kill(self._running[name].process.pid, signal.SIGCONT)

    async def order(self, *command: str) -> None:
        """What an operator types at the command line."""
        where = {"ROOST_URL": ",".join(self.gateways)}
        done = await asyncio.to_thread(lambda: self._home.run(*command, **SETTINGS, **where))
        assert done.returncode == 0, done.stderr

    async def lay_wire(self) -> None:
        self.wire = Proxy(self._ports["gateway 1"])
        await self.wire.start()


@asynccontextmanager
async def open_houses(home: Home, store: RunningServer) -> AsyncIterator[Houses]:
    """None yet; a wire is taken up in the end, processes are ended by their home."""
    pager = Pager()
    async with TestServer(pager.app()) as server:
        pager.url = str(server.make_url("/"))
        houses = Houses(home, store, pager)
        try:
            yield houses
        finally:
            if houses.wire is not None:
                await houses.wire.close()
