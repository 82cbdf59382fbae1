"""The way of an entity server to order servers: it follows whom it has, and nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial

import pytest

from roost.servers.entity.ledger import Ledger
from roost.servers.entity.market import Market
from roost.servers.entity.trading import Trading
from roost.testing import eventually
from roost.wire.client import Peer
from tests.unit.sdk.order_servers import SECRET, OrderServer


@asynccontextmanager
async def running() -> AsyncIterator[OrderServer]:
    server = OrderServer()
    await server.start()
    yield server
    await server.server.close(0.1)


@pytest.fixture
async def server() -> AsyncIterator[OrderServer]:
    async with running() as server:
        yield server


@pytest.fixture
async def other() -> AsyncIterator[OrderServer]:
    """One of which the market hears from the first alone."""
    async with running() as other:
        yield other


@pytest.fixture
async def market(server: OrderServer) -> AsyncIterator[Market]:
    async def servers() -> list[str]:
        return [server.address]

    market = Market(servers, partial(Peer, secret=SECRET.encode(), role="entity"))
    async with AsyncExitStack() as stack:
        stack.push_async_callback(market.close)

        async def steps() -> None:
            while True:
                await market.step()

        running = asyncio.create_task(steps())
        stack.callback(running.cancel)
        yield market
    with suppress(asyncio.CancelledError):
        await running


def user(account: str) -> Trading:
    return Trading(account, Ledger(), send=lambda trading, command: None, ring=lambda: None)


async def test_a_user_who_left_is_not_followed_any_more(server: OrderServer, market: Market) -> None:
    ann, bob = user("player:ann"), user("player:bob")
    for one in (ann, bob):
        market.enter(one)
    await eventually(lambda: bool(ann.followed and bob.followed), "both are followed")

    market.leave(ann)

    await eventually(lambda: server.unfollows == ["player:ann"], "nobody follows ann")


async def test_a_user_who_came_back_before_they_left_is_followed(server: OrderServer, market: Market) -> None:
    before, now = user("player:ann"), user("player:ann")
    market.enter(before)
    await eventually(lambda: bool(before.followed), "she is followed")

    market.enter(now)
    market.leave(before)

    await eventually(lambda: bool(now.followed), "she is followed again")
    assert server.unfollows == []


async def test_an_owner_that_lost_its_shards_and_has_them_again_is_followed_anew(
    server: OrderServer, other: OrderServer, market: Market
) -> None:
    ann, all_shards = user("player:ann"), set(server.owns)
    market.enter(ann)
    await eventually(lambda: len(server.follows) == 1, "she is followed")

    server.owns, server.others = set(), dict.fromkeys(all_shards, other.address)
    await eventually(lambda: len(other.follows) == 1, "she is followed at the other owner")
    server.owns, server.others = all_shards, {}
    await eventually(lambda: len(server.follows) == 2, "she is followed anew")

    market.leave(ann)
    await eventually(lambda: server.unfollows == other.unfollows == ["player:ann"], "nobody follows ann")
