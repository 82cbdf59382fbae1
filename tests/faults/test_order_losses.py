"""A store that loses what it had acknowledged: a living owner gives it back; else the loss is said (G16)."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from roost.db.orders import LOST
from roost.lanes.commands import Durability, Method, New, Outcome, Query, Reason, Side, State
from roost.testing import RunningServer, eventually, run_sentinel, run_valkey
from tests.faults.test_launch import cut_off_replicas
from tests.faults.trading import SYMBOLS, Crowd, Exchange

pytestmark = pytest.mark.slow

LATE = [New("late", n, 0, SYMBOLS[n], Side.BUY, 9, 1) for n in range(1, 9)]
"""What is accepted, and then lost by the store."""


@pytest.fixture
async def open_exchange(tmp_path: Path) -> AsyncIterator[Callable[[str, str], Exchange]]:
    opened: list[Exchange] = []

    def open_(store: str, durability: str) -> Exchange:
        opened.append(Exchange(tmp_path, store, durability=durability))
        return opened[-1]

    yield open_
    for one in opened:
        one.close()
        await one.hang_up()


async def late_orders(crowd: Crowd) -> dict[int, Outcome]:
    """By the account's number; each was accepted."""
    made = {command.client_seq: await crowd.ask(Method.NEW, command) for command in LATE}
    assert all(outcome.state == State.OPEN for outcome in made.values())
    return made


async def written(exchange: Exchange, name: str) -> None:
    async def is_empty() -> bool:
        return await exchange.metric(name, "roost_orders_outbox_waiting") == 0

    await eventually(is_empty, "the database has everything", timeout_s=20)


async def judge_loss(exchange: Exchange, crowd: Crowd, lost: dict[int, Outcome], known: int) -> None:
    """What a client that holds receipts hears of the new owner `b`, and that all else is as it was.

    `known`: of how many lost commands the database has heard.
    """
    crowd.forget("late")
    await crowd.all_again()  # what was not lost has its first answers
    for number, outcome in lost.items():
        standing = await crowd.standing(Query("late", outcome.order_id))
        assert (standing.state, standing.reason) == (State.REFUSED, Reason.UNKNOWN_ORDER)
        assert not await crowd.has_answer(Query("late", 0, number, SYMBOLS[number]))
    again = await late_orders(crowd)
    ids = {outcome.order_id for outcome in lost.values()}
    assert not ids & {outcome.order_id for outcome in again.values()}, "an id was given out twice (G15)"
    for number, outcome in again.items():
        assert outcome.epoch > lost[number].epoch
        assert not known or outcome.seq > lost[number].seq, "a number was used twice"
    assert await exchange.metric("b", "roost_orders_lost_total") == known

    async def is_shown() -> bool:
        return sum(status.lost for status in await exchange.statuses()) == known

    await eventually(is_shown, "`roost orders shards` shows it")
    assert ("commands were lost by the store" in exchange.said("b")) == (known > 0)
    crowd.check(await exchange.entries(), lost=True)
    await written(exchange, "b")
    with sqlite3.connect(exchange.database) as rows:
        (marked,) = rows.execute("SELECT count(*) FROM roost_orders WHERE state = ?", (LOST,)).fetchone()
    assert marked == known


def newest_aof(server: RunningServer) -> Path:
    return max(server.folder.rglob("*.incr.aof"))


@pytest.mark.parametrize("database_knows", [True, False], ids=["database_knows", "nobody_knows"])
async def test_g16_a_tail_that_the_store_lost_with_its_owner_is_not_hidden(
    open_exchange: Callable[[str, str], Exchange], database_knows: bool
) -> None:
    """The end of the append-only file is cut. What nothing else has heard of only receipts can tell."""
    with run_valkey(persistent=True) as durable:
        exchange = open_exchange(durable.url, "everysec")
        exchange.start("a")
        crowd = Crowd(exchange)
        await crowd.trade(accounts=2, commands=12)
        await written(exchange, "a")
        size = newest_aof(durable).stat().st_size
        held = sqlite3.connect(exchange.database, isolation_level=None)
        if not database_knows:
            held.execute("BEGIN IMMEDIATE")  # so that no row of a lost command is written
        lost = await late_orders(crowd)
        if database_knows:
            await written(exchange, "a")

        exchange.kill("a")
        durable.kill()
        held.close()
        with open(newest_aof(durable), "r+b") as file:
            file.truncate(size)
        durable.start()
        exchange.start("b")

        await asyncio.wait_for(crowd.once_more(), 30)
        await judge_loss(exchange, crowd, lost, known=len(lost) if database_knows else 0)


@pytest.mark.parametrize("owner_lives", [True, False], ids=["owner_lives", "owner_dead"])
async def test_g16_a_failover_to_a_replica_that_lags(
    open_exchange: Callable[[str, str], Exchange], owner_lives: bool
) -> None:
    """The owner's memory gives back what the replica never had; where there is none, the loss is reported."""
    with run_sentinel() as group:
        exchange = open_exchange(group.url, "memory")
        exchange.start("a")
        crowd = Crowd(exchange)
        await crowd.trade(accounts=2, commands=12)
        primary = group.primary()
        primary.command_reply("WAIT", 2, 5000)
        cut_off_replicas(primary)
        late = await late_orders(crowd)
        await written(exchange, "a")
        if not owner_lives:
            exchange.kill("a")
        primary.kill()
        await asyncio.to_thread(group.wait_for_new_primary, primary.port)

        if not owner_lives:
            exchange.start("b")
            await asyncio.wait_for(crowd.once_more(), 30)
            await judge_loss(exchange, crowd, late, known=len(late))
            return
        await asyncio.wait_for(crowd.once_more(), 30)
        assert await exchange.metric("a", "roost_orders_lost_total") == 0
        exchange.kill("a")
        exchange.start("b")
        await asyncio.wait_for(crowd.all_again(), 60)
        assert await exchange.metric("b", "roost_orders_lost_total") == 0
        crowd.check(await exchange.entries(), from_memory=True)


async def test_g16_replica_survives_the_loss_of_the_primary_and_of_the_owner(
    open_exchange: Callable[[str, str], Exchange],
) -> None:
    """At this level nothing waits for the replica to catch up, and nothing is lost.

    A primary that is only slow must not be taken for dead: a second failover would have the new owner go on
    from memory, which is another story.
    """
    with run_sentinel(down_after_ms=4000) as group:
        exchange = open_exchange(group.url, "replica")
        exchange.start("a")
        crowd = Crowd(exchange)
        await crowd.trade(accounts=2, commands=12)
        late = await late_orders(crowd)
        assert {outcome.durability for outcome in late.values()} == {Durability.REPLICA}
        primary = group.primary()
        primary.kill()
        exchange.kill("a")
        await asyncio.to_thread(group.wait_for_new_primary, primary.port)

        exchange.start("b")
        await asyncio.wait_for(crowd.all_again(), 60)
        assert await exchange.metric("b", "roost_orders_lost_total") == 0
        crowd.check(await exchange.entries())
