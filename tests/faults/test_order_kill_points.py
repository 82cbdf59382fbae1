"""kill -9 of a real order server at named points: what was answered stays, nothing is done twice (G16).

The store holds what the server writes (`CLIENT PAUSE WRITE`) until it is seen from outside to have arrived;
then the server is frozen, the store goes on, and the server dies without having heard of it.
"""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from roost.lanes.commands import Method, New, Side
from roost.lanes.placement import Place, Table
from roost.store.keys.lanes import shard_keys
from roost.store.scopes import shard as shard_scope
from roost.testing import RunningServer, eventually, open_store
from tests.faults.trading import SYMBOLS, Crowd, Exchange
from tests.store.lanes.hall import Hall

pytestmark = pytest.mark.slow

SYMBOL = SYMBOLS[1]
HELD_MS = 60_000
WRITER = b"name=roost-orders-log"


def shard_of(symbol: str) -> int:
    place = Table().of(symbol)
    assert isinstance(place, Place)
    return place.shard


def hold_writes(store: RunningServer) -> None:
    store.command_reply("CLIENT", "PAUSE", HELD_MS, "WRITE")


def let_go(store: RunningServer) -> None:
    store.command_reply("CLIENT", "UNPAUSE")


async def holds_a_write(store: RunningServer) -> None:
    """Returns when the connection for the log waits in the store."""

    def is_held() -> bool:
        clients = store.command_reply("CLIENT", "LIST").splitlines()
        return any(WRITER in one.split() and b"flags=b" in one.split() for one in clients)

    await eventually(is_held, "a write that the store holds")


async def logged(exchange: Exchange) -> int:
    """Commands in the log of the symbol's shard."""
    async with open_store(exchange.store) as store:
        entries = await Hall(store).entries(shard_of(SYMBOL))
    return entries[-1].last_seq if entries else 0


async def snapshot_seq(exchange: Exchange) -> int:
    """The last command that the snapshot of the symbol's shard includes."""
    async with open_store(exchange.store) as store:
        key = shard_keys(store.keys, shard_scope(shard_of(SYMBOL)))["snapshot"]
        return int(await store.call("HGET", key, "@seq", key=key) or 0)


def orders(account: str, count: int) -> list[New]:
    return [
        New(account, n, 0, SYMBOL, Side.BUY if n % 3 else Side.SELL, 10 + n % 2, 2)
        for n in range(1, count + 1)
    ]


async def ask_all(crowd: Crowd, commands: list[New]) -> None:
    await asyncio.gather(*(crowd.ask(Method.NEW, command) for command in commands))


async def all_is_well(exchange: Exchange, crowd: Crowd) -> None:
    await crowd.all_again()
    crowd.check(await exchange.entries())
    for name in exchange.up:
        assert await exchange.metric(name, "roost_orders_lost_total") == 0
        assert await exchange.metric(name, "roost_orders_replay_mismatches_total") == 0


@pytest.mark.parametrize("point", ["before_the_append", "after_the_append"])
async def test_g16_killed_before_anybody_is_answered(
    exchange: Exchange, durable: RunningServer, point: str
) -> None:
    exchange.start("a")
    crowd = Crowd(exchange)
    await ask_all(crowd, orders("early", 5))
    before, answered = await logged(exchange), len(crowd.outcomes)
    hold_writes(durable)
    asked = asyncio.create_task(ask_all(crowd, orders("late", 8)))
    await holds_a_write(durable)

    exchange.freeze("a")
    if point == "before_the_append":
        exchange.kill("a")
        let_go(durable)
        assert await logged(exchange) == before
    else:
        let_go(durable)

        async def is_there() -> bool:
            return await logged(exchange) > before

        await eventually(is_there, "the append stands in the log")
        exchange.kill("a")
    assert len(crowd.outcomes) == answered, "somebody was answered before"
    exchange.start("b")

    await asyncio.wait_for(asked, 60)
    await all_is_well(exchange, crowd)


async def up_to_a_snapshot(exchange: Exchange, crowd: Crowd, store: RunningServer) -> int:
    """Trade until the next write is a snapshot, which is due each 100 commands, and have the store hold it.

    Returns which one is kept. All is answered and the digest, which is due after 50, is in the log.
    """
    await ask_all(crowd, orders("first", 120))

    async def is_kept() -> bool:
        return await snapshot_seq(exchange) > 0

    await eventually(is_kept, "the first snapshot: with it the store knows the script")
    for attempt in range(20):
        before = await snapshot_seq(exchange)
        await ask_all(crowd, orders(f"early{attempt}", 60))
        await eventually(partial(has_digest_after, exchange, before), "the digest in the log")
        await ask_all(crowd, orders(f"more{attempt}", 60))
        hold_writes(store)
        if await snapshot_seq(exchange) == before:
            return before
        let_go(store)  # it was faster
    raise AssertionError("each snapshot was written before it could be held")


async def has_digest_after(exchange: Exchange, seq: int) -> bool:
    async with open_store(exchange.store) as store:
        return any(
            command[0] == Method.CHECK and number > seq
            for entry in await Hall(store).entries(shard_of(SYMBOL))
            for number, command in enumerate(entry.batch.commands, entry.seq)
        )


@pytest.mark.parametrize("point", ["before_it_is_kept", "after_it_is_kept"])
async def test_g16_killed_during_a_snapshot(exchange: Exchange, durable: RunningServer, point: str) -> None:
    exchange.start("a")
    crowd = Crowd(exchange)
    before = await up_to_a_snapshot(exchange, crowd, durable)
    await holds_a_write(durable)

    exchange.freeze("a")
    if point == "before_it_is_kept":
        exchange.kill("a")
        let_go(durable)
        assert await snapshot_seq(exchange) == before
    else:
        let_go(durable)

        async def is_kept() -> bool:
            return await snapshot_seq(exchange) > before

        await eventually(is_kept, "the snapshot is kept")
        exchange.kill("a")
    exchange.start("b")

    await asyncio.wait_for(ask_all(crowd, orders("late", 20)), 60)
    await all_is_well(exchange, crowd)
