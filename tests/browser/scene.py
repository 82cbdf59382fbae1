"""A small Roost in which something happens: servers of two versions, players, people who wait, orders."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Any

import roost
from roost.core.errors import RoostError
from roost.testing import free_port
from tests.acceptance.conftest import Home, Started, http

OLD, NEW = "501", "502"
SYMBOLS = ("ACME", "BOLT", "CORN", "DUNE", "EAST", "FERN", "GLOW", "HIVE", "IRIS", "JADE", "KELP", "LIME")
TICK_S = 0.25


@dataclass
class Scene:
    home: Home
    up: Started
    gate: str = ""
    """Where players connect."""
    servers: dict[str, Started] = field(default_factory=dict)

    def call(self, method: str, path: str, body: Any = None, token: str = "") -> Any:
        """An operator's call; fails the test where it is refused."""
        raw = None if body is None else json.dumps(body).encode()
        answer = http(self.up.url + path, method=method, token=token or self.home.token(), body=raw)
        assert answer.status < 400, answer.body
        return answer.json if answer.body else None

    def new_token(self, *scopes: str) -> str:
        return str(self.call("POST", "/auth/v1/tokens", {"name": "reader", "scopes": scopes})["token"])

    # -- who runs

    def start_homes(self, *more: tuple[str, str]) -> None:
        """A gate, and an entity server of each version."""
        port, tcp = free_port(), free_port()
        self.gate = f"ws://127.0.0.1:{port}"
        self.home.start("gate", "--port", str(port), "--tcp-port", str(tcp))
        for server_id, version in ((OLD, "1.0"), (NEW, "2.0"), *more):
            self.start_entity(server_id, version)

    def start_entity(self, server_id: str, version: str) -> None:
        flags = ("--id", server_id, "--version", version, "--port", str(free_port()), "--capacity", "500")
        self.servers[server_id] = self.home.start("entity", *flags)

    def start_game(self, server_id: str, capacity: int) -> None:
        flags = ("--server-id", server_id, "--port", str(free_port()), "--capacity", str(capacity))
        self.servers[server_id] = self.home.start("gameserver", *flags, "--url", self.up.url)

    def start_orders(self) -> None:
        self.servers["901"] = self.home.start("orders", "serve", "--id", "901", "--port", str(free_port()))

    def start_evening(self, users: int) -> None:
        """People who come, wait, play for a while and leave, and the game servers for them."""
        flags = ("--users", str(users), "--arrive", "150", "--session", "20", "--capacity", "80")
        self.home.start("drill", "launch", *flags, "--url", self.up.url, until="")

    def register(self, ids: Iterable[str], **more: Any) -> None:
        """Servers that are there and say nothing more for an hour."""
        for number, server_id in enumerate(ids):
            record = {
                "type": "battle",
                "group": ("kr-1", "kr-2", "jp-1")[number % 3],
                "serverId": server_id,
                "hostname": f"battle-{server_id}.example",
                "ports": {"udp": 7000 + number},
                "capacity": 200,
                "load": (number * 37) % 201,
                "version": ("4.1.0", "4.1.0", "4.2.0")[number % 3],
                "labels": {"tier": ("ranked", "casual")[number % 2]},
                "ttlSeconds": 3600,
            }
            self.call("POST", "/sd/v1/instances", record | more)

    def flood(self, count: int, world: str = "main") -> None:
        """So many people take a place in the line."""
        for number in range(count):
            self.call("POST", "/api/queue/entry", {"userId": f"p{number}", "world": world})

    # -- what happens

    @contextlib.asynccontextmanager
    async def players(self, count: int, *, trade: bool = False) -> AsyncIterator[None]:
        """So many play without pause, and trade if they are to."""
        playing = [asyncio.create_task(self._play(f"player-{n}", trade)) for n in range(1, count + 1)]
        try:
            yield
        finally:
            for one in playing:
                one.cancel()
            await asyncio.gather(*playing, return_exceptions=True)

    async def _play(self, user: str, trade: bool) -> None:
        chance = random.Random(user)
        async with roost.play(self.gate, f"dev:{user}") as player:
            for number in itertools.count():
                message: dict[str, Any] = {"op": "count"}
                if trade and number % 2:
                    symbol = SYMBOLS[min(int(chance.expovariate(0.35)), len(SYMBOLS) - 1)]
                    side = chance.choice(("buy", "sell"))
                    order = {"side": side, "price": 100 + chance.randint(-4, 4), "quantity": 1}
                    message = {"op": "order", "symbol": symbol, **order}
                with contextlib.suppress(RoostError):
                    await player.request(message)
                await asyncio.sleep(TICK_S * chance.uniform(0.5, 1.5))
