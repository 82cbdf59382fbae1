"""The synthetic people of the demo: they play at the gate, come and go in the game, and trade a little.

They are gentle: all of them together send about one message in a second, so that a laptop stays cool.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from aiohttp import ClientSession, ClientTimeout

from roost.core.errors import RoostError
from roost.core.loops import Loops
from roost.demo.names import CROWD, ENTITY, PREFIX, WORLD
from roost.drills.doors import SocketDoors
from roost.drills.ledger import Book
from roost.drills.player import TIMEOUTS, Habits, Player, Refused
from roost.sdk.connect import connect
from roost.sdk.play import play
from roost.sdk.trade import OrderAccepted, Side
from roost.settings import Settings

if TYPE_CHECKING:
    from roost.sdk.direct.trader import Trader

AT_GATE = 12
THINK_S = (8.0, 24.0)
"""How long one at the gate thinks between two messages."""
IN_GAME = 6
AWAY_S = (20.0, 60.0)
"""How long one stays away from the game between two visits."""
MOST_IN_CROWDS = 480
TRADE_S = 4.0
FAIR_PRICE = 1000
MOST_OPEN = 12
SIDES: tuple[Side, Side] = ("buy", "sell")

REST = Habits(arrive_s=10.0, session_s=100.0, blip_share=0.0, no_show_share=0.0, crash_share=0.0)
RUSH = Habits(arrive_s=6.0, session_s=5.0, no_show_share=0.05, crash_share=0.0)


class People:
    """Everybody of the demo, as loops and tasks of one process."""

    def __init__(self, loops: Loops, gateway: str, token: str) -> None:
        self.loops = loops
        self._gateway = gateway
        self._headers = {"X-API-Token": token}
        self._rng = random.Random()
        self._crowds = itertools.count(1)
        self._crowd: set[asyncio.Task[None]] = set()

    # -- at the gate

    async def play(self, name: str, gate: str) -> None:
        """One user at the gate, for ever: a message now and then."""

        async def session() -> None:
            user = f"{PREFIX}{name}"
            async with play(gate, f"dev:{user}", types=[ENTITY]) as player:
                for n in itertools.count(1):
                    await asyncio.sleep(self._rng.uniform(*THINK_S))
                    body = {"op": "give", "item": "coin", "n": 1} if n % 5 == 0 else {"op": "count"}
                    with contextlib.suppress(RoostError):  # a server was killed: the next one is answered
                        await player.request(body)

        await self.loops.keep_running("demo players", session, pause_s=2.0)

    # -- in the game

    async def visit(self, name: str) -> None:
        """One player of the game world, for ever: the line, the game, a pause."""

        async def evening() -> None:
            await self._enter(f"{PREFIX}{name}", REST)
            await asyncio.sleep(self._rng.uniform(*AWAY_S))

        await self.loops.keep_running("demo visitors", evening)

    def flood(self) -> int:
        """A crowd comes at once; how many of it come."""
        number = next(self._crowds)
        size = max(0, min(CROWD, MOST_IN_CROWDS - len(self._crowd)))
        for one in range(size):
            task = asyncio.create_task(self._in_crowd(f"{PREFIX}crowd-{number}-{one + 1}"))
            self._crowd.add(task)
            task.add_done_callback(self._crowd.discard)
        return size

    async def _in_crowd(self, user: str) -> None:
        with contextlib.suppress(Refused, *TIMEOUTS):
            await self._enter(user, RUSH)

    async def _enter(self, user: str, habits: Habits) -> None:
        timeout = ClientTimeout(total=None, sock_connect=5, sock_read=None)
        async with ClientSession(self._gateway, headers=self._headers, timeout=timeout) as session:
            doors = SocketDoors(session)
            await Player(user, session, doors, Book(1), habits, self._rng, world=WORLD).run()

    async def close(self) -> None:
        for task in list(self._crowd):
            task.cancel()
        await asyncio.gather(*self._crowd, return_exceptions=True)


class Market:
    """A maker and a taker: an order every few seconds, and the oldest ones are taken back."""

    def __init__(self, maker: Trader, taker: Trader, symbols: Sequence[str]) -> None:
        self._maker = maker
        self._taker = taker
        self._symbols = symbols
        self._resting = deque[tuple[int, str]]()
        self._rng = random.Random()

    async def turn(self, number: int) -> None:
        symbol, side = self._rng.choice(self._symbols), self._rng.choice(SIDES)
        price = FAIR_PRICE + self._rng.randint(1, 8) * (-1 if side == "buy" else 1)
        if number % 3 == 0:
            crossing = 2 * FAIR_PRICE - price
            await self._taker.new(symbol, side, price=crossing, quantity=3, immediate=True)
            return
        answer = await self._maker.new(symbol, side, price=price, quantity=self._rng.randint(1, 9))
        if isinstance(answer, OrderAccepted) and answer.state == "open":
            self._resting.append((answer.order_id, symbol))
        if len(self._resting) > MOST_OPEN:
            await self._maker.cancel(*self._resting.popleft())


async def trade(loops: Loops, settings: Settings, address: str, symbols: Sequence[str], token: str) -> None:
    """For ever; a session ends with what it cannot get over, and the next one begins."""

    async def session() -> None:
        async with contextlib.AsyncExitStack() as stack:
            client = await stack.enter_async_context(connect(settings.url, token=token))
            maker, taker = [
                await stack.enter_async_context(
                    client.trader(f"{PREFIX}{name}", servers=[address], timeout_s=5.0, settings=settings)
                )
                for name in ("maker", "taker")
            ]
            market = Market(maker, taker, symbols)
            for number in itertools.count(1):
                await asyncio.sleep(TRADE_S)
                await market.turn(number)

    await loops.keep_running("demo traders", session, pause_s=5.0)
