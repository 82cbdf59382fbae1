"""Verbs of a trading evening: people trade from their homes, a broker has a terminal at the order servers."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from roost.sdk.connect import connect
from roost.sdk.direct.trader import Trader
from roost.sdk.trade import OrderAccepted
from roost.testing import Command, eventually
from tests.stories.houses import Houses
from tests.stories.people import Person

SYMBOL = "AAPL"
PATIENCE_S = 60.0
PAUSE_S = 0.02
"""Between two shares: order servers keep the last 256 fills for somebody on the move."""


class TradingFloor:
    """One broker, who sells at once to whoever buys, and whose answers say how much that was."""

    def __init__(self, houses: Houses) -> None:
        self._houses = houses
        self._stack = AsyncExitStack()
        self._trader: Trader | None = None
        self._sold = 0
        self._selling: asyncio.Task[None] | None = None
        self._has_enough = False

    async def buys(self, person: Person, quantity: int, price: int) -> str:
        order = {"op": "order", "symbol": SYMBOL, "side": "buy", "price": price, "quantity": quantity}
        number = int(await person.request(order))
        await self._trades(person, lambda shown: shown["answered"] >= number, "an answer")
        return f"{person.name} has an order for {quantity} {SYMBOL}"

    async def holds(self, person: Person, quantity: int) -> str:
        await self._trades(person, lambda shown: shown["holds"].get(SYMBOL, 0) == quantity, f"{quantity}")
        return f"{person.name} holds {quantity} {SYMBOL}"

    async def holds_all(self, person: Person) -> str:
        await self._trades(person, lambda shown: shown["holds"].get(SYMBOL, 0) == self._sold, "all of it")
        return f"{person.name} holds what the broker sold, no more and no less"

    async def broker(self, command: Command) -> str:
        match command.args:
            case ("sells", quantity, "AAPL", "at", price):
                return f"the broker sold {await self._sells(int(quantity), int(price))}"
            case ("goes", "on", "selling"):
                self._selling = asyncio.create_task(self._keep_selling())
                return "the broker goes on selling"
            case ("stops", "selling"):
                assert self._selling is not None
                self._has_enough = True
                await self._selling
                return "the broker has stopped"
        raise ValueError(f"no broker {' '.join(command.args)}")

    async def close(self) -> None:
        if self._selling is not None:
            self._selling.cancel()
            await asyncio.gather(self._selling, return_exceptions=True)
        await self._stack.aclose()

    async def _keep_selling(self) -> None:
        """One share after the other, at least ten of them."""
        number = 0
        while not self._has_enough or number < 10:
            number += await self._sells(1, 1)
            await asyncio.sleep(PAUSE_S)

    async def _sells(self, quantity: int, price: int) -> int:
        trader, found = await self._terminal(), list[int]()

        async def sold() -> bool:
            answer = await trader.new(SYMBOL, "sell", price=price, quantity=quantity, immediate=True)
            if isinstance(answer, OrderAccepted):
                found.append(answer.filled)
            return bool(found)

        await eventually(sold, "an order server takes it", PATIENCE_S)
        self._sold += found[0]
        return found[0]

    async def _terminal(self) -> Trader:
        if self._trader is None:
            client = await self._stack.enter_async_context(connect(self._houses.store.url))
            trader = client.trader("broker", settings=self._houses.settings(), timeout_s=PATIENCE_S)
            self._trader = await self._stack.enter_async_context(trader)
        return self._trader

    async def _trades(self, person: Person, holds: Any, what: str) -> None:
        shown: dict[str, Any] = {}

        async def found() -> bool:
            shown.update(await person.request("trades"))
            return bool(holds(shown))

        await eventually(found, f"{person.name} to have {what}", PATIENCE_S, lambda: str(shown))
