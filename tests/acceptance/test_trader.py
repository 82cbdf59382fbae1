"""Traders at order servers that are real processes: what they were told holds, whoever dies."""

from __future__ import annotations

import asyncio
import itertools
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from roost.sdk.connect import connect
from roost.sdk.direct.trader import Trader
from roost.sdk.trade import Fill, FillGap, Order, OrderAccepted, OrderRefused
from roost.settings import Loaded
from roost.testing import eventually, free_port, run_valkey
from tests.acceptance.conftest import Home, Started

SECRET = "a-secret-for-these-tests"
LEASE_MS = "3000"
TTL_S = "6"
SYMBOLS = [f"SYM{number}" for number in range(24)]

accounts = (f"acct-{number}" for number in itertools.count(1))


@dataclass
class Exchange:
    """A store and the order servers on it."""

    home: Home
    store: str
    servers: dict[str, Started] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        return {
            "ROOST_STORE": self.store,
            "ROOST_WIRE_SECRET": SECRET,
            "ROOST_LANES__LEASE_MS": LEASE_MS,
            "ROOST_DATA": str(self.home.data),
        }

    def serve(self, server_id: str) -> Started:
        flags = ("--id", server_id, "--port", str(free_port()), "--ttl", TTL_S)
        started = self.servers[server_id] = self.home.start("orders", "serve", *flags, **self.environment())
        return started

    @asynccontextmanager
    async def traders(self, count: int, **options: Any) -> AsyncIterator[list[Trader]]:
        """Of accounts that nobody used before."""
        settings = Loaded.load(environ=self.environment()).settings
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(connect(self.store))
            yield [
                await stack.enter_async_context(client.trader(next(accounts), settings=settings, **options))
                for _ in range(count)
            ]


@pytest.fixture
def exchange(home: Home) -> Iterator[Exchange]:
    with run_valkey(persistent=True) as store:
        yield Exchange(home, store.url)
        for process in home.processes:
            process.kill()
            process.wait()


async def all_shards_served(*traders: Trader) -> None:
    """Until each symbol of the tests has an owner."""

    async def served() -> bool:
        answers = [await trader.cancel(1, symbol) for trader in traders for symbol in SYMBOLS]
        return all(isinstance(one, OrderRefused) and one.receipt is not None for one in answers)

    await eventually(served, "all shards are owned", timeout_s=30)


async def follow(trader: Trader, told: list[Fill | FillGap]) -> None:
    async for one in trader.fills():
        told.append(one)


def traded(told: list[Fill | FillGap]) -> Counter[int]:
    """By order, how much was filled; each fill once and no gap."""
    fills = [one for one in told if isinstance(one, Fill)]
    assert len(fills) == len(told), "there is a gap"
    assert len({(one.shard, one.number) for one in fills}) == len(fills)
    found: Counter[int] = Counter()
    for one in fills:
        found[one.order_id] += one.quantity
    return found


async def test_two_traders_meet_and_both_hear_of_it_once(exchange: Exchange) -> None:
    exchange.serve("901")
    async with exchange.traders(2) as (ann, bob):
        await all_shards_served(ann)
        told: list[Fill | FillGap] = []
        following = asyncio.create_task(follow(ann, told))

        asked = await ann.new("aapl", "sell", price=100, quantity=10)
        bought = await bob.new("AAPL", "buy", price=101, quantity=4)

        assert isinstance(asked, OrderAccepted)
        assert isinstance(bought, OrderAccepted)
        assert (asked.state, asked.remaining) == ("open", 10)
        assert (bought.state, bought.filled) == ("filled", 4)
        assert bought.receipt.seq > asked.receipt.seq
        assert bought.receipt.shard == asked.receipt.shard
        assert bought.receipt.durability == "everysec"
        await eventually(lambda: len(told) == 1, "the seller hears of it")
        assert isinstance(told[0], Fill)
        assert (told[0].order_id, told[0].price, told[0].quantity) == (asked.order_id, 100, 4)
        assert ann.cursor == {asked.receipt.shard: 1}
        following.cancel()


async def test_an_order_is_amended_asked_for_and_cancelled_by_its_owner_alone(exchange: Exchange) -> None:
    exchange.serve("901")
    async with exchange.traders(2) as (ann, bob):
        await all_shards_served(ann)
        made = await ann.new("MSFT", "buy", price=50, quantity=10)
        assert isinstance(made, OrderAccepted)

        of_another = await bob.cancel(made.order_id)
        amended = await ann.amend(made.order_id, price=50, quantity=6)
        found = await ann.query(made.order_id)
        cancelled = await ann.cancel(made.order_id, "MSFT")
        again = await ann.cancel(made.order_id, "MSFT")

        assert isinstance(of_another, OrderRefused)
        assert of_another.reason == "NOT_YOURS"
        assert isinstance(amended, OrderAccepted)
        assert isinstance(found, Order)
        assert (found.state, found.quantity, found.remaining) == ("open", 6, 6)
        assert isinstance(cancelled, OrderAccepted)
        assert cancelled.state == "cancelled"
        assert isinstance(again, OrderRefused)
        assert again.reason == "CLOSED"


async def test_an_earlier_traders_cursor_goes_on_where_it_stood(exchange: Exchange) -> None:
    exchange.serve("901")
    async with exchange.traders(2) as (ann, bob):
        await all_shards_served(ann)
        await ann.new("AAPL", "sell", price=100, quantity=9)
        await bob.new("AAPL", "buy", price=100, quantity=1)
        first = await anext(aiter(ann.fills()))
        kept = ann.cursor
        await ann.close()
        await bob.new("AAPL", "buy", price=100, quantity=2)
        settings = Loaded.load(environ=exchange.environment()).settings
        async with (
            connect(exchange.store) as client,
            client.trader(ann.account, cursor=kept, settings=settings) as later,
        ):
            second = await anext(aiter(later.fills()))

        assert isinstance(first, Fill)
        assert isinstance(second, Fill)
        assert (first.quantity, second.quantity) == (1, 2)
        assert second.number == first.number + 1


async def trade(trader: Trader, side: Any, rounds: int, made: list[OrderAccepted]) -> None:
    """One order after the other in each symbol; whatever happens to the servers, each has its answer."""

    async def in_symbol(symbol: str) -> None:
        for _ in range(rounds):
            answer = await trader.new(symbol, side, price=100, quantity=2)
            assert isinstance(answer, OrderAccepted), answer
            made.append(answer)

    await asyncio.gather(*(in_symbol(symbol) for symbol in SYMBOLS))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_a_trading_evening_survives_its_order_servers(exchange: Exchange, how: signal.Signals) -> None:
    """Two servers share the shards; one ends meanwhile, by kill -9 or in good order."""
    exchange.serve("901")
    exchange.serve("902")
    async with exchange.traders(2, timeout_s=40.0) as (ann, bob):
        await all_shards_served(ann, bob)
        before = dict(ann.counts)
        told: dict[str, list[Fill | FillGap]] = {"ann": [], "bob": []}
        following = [
            asyncio.create_task(follow(ann, told["ann"])),
            asyncio.create_task(follow(bob, told["bob"])),
        ]
        sold: list[OrderAccepted] = []
        bought: list[OrderAccepted] = []
        trading = asyncio.gather(trade(ann, "sell", 12, sold), trade(bob, "buy", 12, bought))
        await eventually(lambda: len(sold) > len(SYMBOLS), "they trade")

        exchange.servers["901"].process.send_signal(how)
        async with asyncio.timeout(60):
            await trading

        total = 12 * 2 * len(SYMBOLS)
        await eventually(
            lambda: sum(traded(told["ann"]).values()) == sum(traded(told["bob"]).values()) == total,
            "both hear of every fill",
            timeout_s=30,
            details=lambda: f"{ {who: sum(traded(of).values()) for who, of in told.items()} }",
        )
        assert len({one.order_id for one in sold + bought}) == len(sold) + len(bought)
        assert all(quantity == 2 for quantity in (traded(told["ann"]) | traded(told["bob"])).values())
        assert ann.counts["accepted"] - before.get("accepted", 0) == len(sold)
        assert ann.counts["sent"] == ann.counts["accepted"] + ann.counts["refused"]
        for one in following:
            one.cancel()


async def test_a_later_server_takes_its_share_and_nobody_is_refused(exchange: Exchange) -> None:
    exchange.serve("901")
    async with exchange.traders(1, timeout_s=40.0) as (ann,):
        await all_shards_served(ann)
        made: list[OrderAccepted] = []
        trading = asyncio.create_task(trade(ann, "sell", 30, made))
        await asyncio.to_thread(exchange.serve, "902")

        async with asyncio.timeout(60):
            await trading

        numbered = sorted((one.receipt.shard, one.receipt.seq) for one in made)
        assert len(set(numbered)) == len(numbered) == 30 * len(SYMBOLS)
