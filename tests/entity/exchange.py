"""A user who trades, a real order server in this process, and somebody to trade with."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from roost.core.errors import Unavailable
from roost.db.database import Database
from roost.db.model import Flush
from roost.sdk.connect import connect
from roost.sdk.direct.trader import Trader
from roost.sdk.entity import Entity, Journal, Message, WriteBack, WriteThrough
from roost.sdk.trade import Fill, FillGap, OrderAccepted, OrderRefused
from roost.servers.entity.ledger import unwrap
from roost.servers.orders.registering import OrdersIdentity
from roost.servers.orders.serving import order_server
from roost.settings import Loaded, Settings
from roost.testing import eventually, free_port
from roost.wire.answer import Answer
from roost.wire.codes import Code
from tests.acceptance.conftest import Home as Processes
from tests.acceptance.conftest import Started
from tests.entity.town import SECRET, House, Town

SYMBOL = "AAPL"
NOTHING: dict[str, Any] = {"position": 0, "fills": [], "answers": [], "gaps": 0, "said": 0}


class Merchant(Entity):
    """Trades as the message says; the state is what came of it."""

    durability = WriteThrough()

    def __init__(self) -> None:
        self.kept = copy.deepcopy(NOTHING)

    async def load(self, state: bytes | None) -> None:
        if state is not None:
            self.kept = json.loads(state)

    def save(self) -> bytes:
        return json.dumps(self.kept).encode()

    async def handle(self, message: Message) -> object:
        self.kept["said"] += 1
        match message.body:
            case ["buy" | "sell" as side, symbol, price, quantity]:
                return self.orders.new(symbol, side, price=price, quantity=quantity)
            case ["cancel", order_id, symbol]:
                return self.orders.cancel(order_id, symbol)
            case ["amend", order_id, symbol, price, quantity]:
                return self.orders.amend(order_id, symbol, price=price, quantity=quantity)
        return self.kept

    async def on_order(self, answer: OrderAccepted | OrderRefused) -> None:
        said = answer.state if isinstance(answer, OrderAccepted) else answer.reason
        self.kept["answers"].append([answer.client_seq, said, answer.order_id])

    async def on_fill(self, fill: Fill) -> None:
        self.kept["position"] += fill.quantity if fill.side == "buy" else -fill.quantity
        self.kept["fills"].append([fill.shard, fill.number])

    async def on_fills_missed(self, gap: FillGap) -> None:
        self.kept["gaps"] += 1


class JournaledMerchant(Merchant):
    durability = Journal(ms=60_000)  # type: ignore[assignment]


class LazyMerchant(Merchant):
    durability = WriteBack(ms=60_000)  # type: ignore[assignment]


class Cut:
    """The way to the database, which takes `writes_left` more batches; None: any number."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.writes_left: int | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    async def flush_many(self, flushes: list[Flush]) -> Any:
        if self.writes_left is not None:
            if self.writes_left == 0:
                raise Unavailable("the database does not answer")
            self.writes_left -= 1
        return await self._database.flush_many(flushes)


class Ann:
    """A user whose messages are numbered across homes, as a gate does it."""

    def __init__(self, town: Town) -> None:
        self.home: House
        self._town = town
        self._sequence = 0

    async def lives_on(self, house: House) -> House:
        await self._town.bind("ann", house)
        self.home = house
        return house

    async def moves_in_after_crash(self, dead: House, house: House) -> None:
        await dead.crash()
        await self._town.bury(dead)
        await self.lives_on(house)

    def begins_to_say(self, body: Any) -> asyncio.Task[Answer]:
        self._sequence += 1
        return self.home.put("ann", body, self._sequence, oldest=self._sequence)

    async def says(self, body: Any) -> Any:
        answer = await self.begins_to_say(body)
        assert answer.code is Code.OK, (answer.code, answer.message)
        return msgspec.msgpack.decode(answer.payload)[0]

    async def tries(self, body: Any) -> None:
        """Whether it is answered in time or not."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.1):
                await self.begins_to_say(body)

    async def shows(self, **wanted: Any) -> dict[str, Any]:
        """Wait for it in what the object says."""
        found: dict[str, Any] = {}

        async def shown() -> bool:
            found.update(await self.says("show"))
            return all(found[name] == value for name, value in wanted.items())

        await eventually(shown, f"ann has {wanted}", 20, lambda: str(found))
        return found

    async def is_answered(self, count: int) -> list[Any]:
        found: dict[str, Any] = {}

        async def shown() -> bool:
            found.update(await self.says("show"))
            return len(found["answers"]) >= count

        await eventually(shown, f"{count} answers", 20, lambda: str(found))
        return list(found["answers"])

    async def row_holds(self, **wanted: Any) -> None:
        found: dict[str, Any] = {}

        async def shown() -> bool:
            _, state = unwrap(await self._town.state("ann"))
            found.update(json.loads(state or b"{}"))
            return all(found.get(name) == value for name, value in wanted.items())

        await eventually(shown, f"the row holds {wanted}", 20, lambda: str(found))

    def in_memory(self, house: House) -> dict[str, Any]:
        """What was executed there, whether it is written or not."""
        session = house.host.sessions.get("ann")
        return session.entity.kept if session and isinstance(session.entity, Merchant) else NOTHING


ENVIRONMENT = {
    "ROOST_WIRE_SECRET": SECRET.decode(),
    "ROOST_LANES__DURABILITY": "memory",
    "ROOST_LANES__LEASE_MS": "3000",
}


async def start_order_server(home: Processes, store_url: str, name: str) -> tuple[str, Started]:
    """A process of its own, which the test may kill; its address."""
    port = str(free_port())
    flags = ("--id", name, "--port", port, "--ttl", "6")
    env = {"ROOST_STORE": store_url} | ENVIRONMENT
    started = await asyncio.to_thread(lambda: home.start("orders", "serve", *flags, **env))
    return f"127.0.0.1:{port}", started


def exchange_settings(store_url: str, folder: Path, port: int) -> Settings:
    own = {"ROOST_STORE": store_url, "ROOST_DATA": str(folder), "ROOST_ORDERS__PORT": str(port)}
    return Loaded.load(environ=ENVIRONMENT | own).settings


@asynccontextmanager
async def open_order_server(store_url: str, folder: Path, name: str = "901") -> AsyncIterator[str]:
    """Its address; all shards are its own."""
    port = free_port()
    settings = exchange_settings(store_url, folder, port)
    async with order_server(settings, OrdersIdentity(name), on_end=lambda: None, wait_s=10):
        yield f"127.0.0.1:{port}"


@asynccontextmanager
async def open_trader(
    store_url: str, folder: Path, address: str, account: str = "bob"
) -> AsyncIterator[Trader]:
    settings = exchange_settings(store_url, folder, 1)
    async with (
        connect(store_url) as client,
        client.trader(account, servers=[address], settings=settings) as one,
    ):
        yield one


async def accepted(
    trader: Trader, side: Any, price: int, quantity: int, symbol: str = SYMBOL
) -> OrderAccepted:
    """An order of somebody else, tried until the shard has an owner."""
    found: list[OrderAccepted] = []

    async def taken() -> bool:
        answer = await trader.new(symbol, side, price=price, quantity=quantity)
        if isinstance(answer, OrderAccepted):
            found.append(answer)
        return bool(found)

    await eventually(taken, "the order is taken", 30)
    return found[0]
