"""The processes of the demo: one for each entity server, and one for all the rest with the players in it."""

from __future__ import annotations

import asyncio
import contextlib

from roost.core.loops import Loops
from roost.demo.names import ENTITY, GAME, GATE, GROUP, ORDERS, PREFIX
from roost.demo.parent import following_parent
from roost.demo.players import AT_GATE, IN_GAME, People, trade
from roost.demo.purge import erase_shard
from roost.local import api_token
from roost.servers.entity.reference import Reference
from roost.servers.entity.serving import EntityIdentity, entity_server
from roost.servers.gate.hosting import Identity as GateIdentity
from roost.servers.gate.hosting import gate_server
from roost.servers.hosting import Identity, game_server
from roost.servers.orders.registering import OrdersIdentity
from roost.servers.orders.serving import Running, order_server
from roost.settings import Settings

TTL_S = 15.0
WAIT_S = 20.0


async def entity(settings: Settings, server_id: str, version: str) -> None:
    """One entity server of the demo, until it is drained or told to end."""
    identity = EntityIdentity(server_id, version, ENTITY, GROUP, TTL_S)
    async with contextlib.AsyncExitStack() as stack:
        stop = await stack.enter_async_context(following_parent(lambda word: None))
        opening = entity_server(settings, Reference, identity, on_end=stop.set, wait_s=WAIT_S)
        await stack.enter_async_context(opening)
        await stop.wait()


async def rest(settings: Settings) -> None:
    """Gate, game server and order server of the demo, and everybody who plays there."""
    people = People(Loops(), settings.url, api_token(settings))
    market = Market(settings, people.loops)

    def hear(word: str) -> None:
        if word == "flood":
            people.flood()
        elif word == "close-market":
            market.close_soon()

    async with contextlib.AsyncExitStack() as stack:
        stop = await stack.enter_async_context(following_parent(hear))
        gate = await stack.enter_async_context(
            gate_server(
                settings,
                api_token(settings),
                GateIdentity(GATE, GROUP, f"{PREFIX}gate", TTL_S),
                on_end=stop.set,
                wait_s=WAIT_S,
            )
        )
        identity = Identity(GAME, GROUP, f"{PREFIX}game", TTL_S)
        await stack.enter_async_context(
            game_server(
                settings, settings.store, api_token(settings), identity, on_end=stop.set, wait_s=WAIT_S
            )
        )
        if settings.orders.shards != "auto":
            await market.open()
        stack.push_async_callback(market.close)
        stack.push_async_callback(people.close)
        for number in range(1, AT_GATE + 1):
            stack.callback(asyncio.create_task(people.play(f"player-{number}", gate.url)).cancel)
        for number in range(1, IN_GAME + 1):
            stack.callback(asyncio.create_task(people.visit(f"visitor-{number}")).cancel)
        await stop.wait()


class Market:
    """The order server of the demo and its traders; its shards are left as empty as they were found."""

    def __init__(self, settings: Settings, loops: Loops) -> None:
        self._settings = settings
        self._loops = loops
        self._stack = contextlib.AsyncExitStack()
        self._closing: asyncio.Task[None] | None = None
        self._server: Running | None = None

    async def open(self) -> None:
        settings = self._settings
        identity = OrdersIdentity(f"{PREFIX}orders", "1.0", GROUP, TTL_S, ORDERS)
        server = await self._stack.enter_async_context(
            order_server(settings, identity, on_end=self.close_soon, wait_s=WAIT_S, erase=self._erase)
        )
        self._server = server
        trading = trade(
            self._loops,
            settings,
            server.url.removeprefix("wire://"),
            sorted(settings.orders.traded()),
            api_token(settings),
        )
        task = asyncio.create_task(trading)
        self._stack.push_async_callback(_ended, task)

    async def _erase(self, shard: int) -> None:
        if self._server is not None and self._server.platform is not None:
            await erase_shard(self._server.platform.store, shard)

    def close_soon(self) -> None:
        """Somebody else serves orders now."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._stack.aclose())

    async def close(self) -> None:
        if self._closing is not None:
            await asyncio.gather(self._closing, return_exceptions=True)
        await self._stack.aclose()


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
