"""Orders through kills of owners and stores, frozen owners, cut logs: G13 to G16 hold, or a loss is said."""

from __future__ import annotations

import asyncio

import pytest

from roost.lanes.commands import Method, New, Side
from roost.testing import RunningServer, eventually
from tests.faults.trading import Crowd, Exchange

pytestmark = pytest.mark.slow


async def settled(crowd: Crowd, exchange: Exchange) -> None:
    await crowd.all_again()
    crowd.check(await exchange.entries())


async def test_g16_an_owner_killed_while_the_store_holds_its_append(
    exchange: Exchange, durable: RunningServer
) -> None:
    """Whether the entry gets into the log or not, its command is carried out once."""
    exchange.start("a")
    crowd = Crowd(exchange)
    await crowd.trade(accounts=1, commands=5)
    durable.pause()
    late = [New("late", n, 0, f"SYM{n}", Side.BUY, 9, 1) for n in range(1, 9)]
    asked = [asyncio.create_task(crowd.ask(Method.NEW, command)) for command in late]
    await eventually(lambda: crowd.tries >= 5 + len(late), "all are on their way")
    exchange.kill("a")
    durable.resume()
    exchange.start("b")

    await asyncio.gather(*asked)

    await settled(crowd, exchange)


async def test_g13_an_owner_frozen_past_its_lease_appends_nothing_more(exchange: Exchange) -> None:
    exchange.start("a")
    crowd = Crowd(exchange)
    await crowd.trade(accounts=2, commands=10)
    before = {shard: entries[-1].epoch for shard, entries in (await exchange.entries()).items() if entries}
    exchange.freeze("a")
    exchange.start("b")
    await asyncio.wait_for(crowd.ask(Method.NEW, New("new", 1, 0, "SYM1", Side.BUY, 9, 1)), 60)

    exchange.thaw("a")
    late = [New("zombie", n, 0, f"SYM{n}", Side.BUY, 9, 1) for n in range(1, 6)]
    told = [await crowd.once("a", Method.NEW, command) for command in late]

    after = await exchange.entries()
    for answer, command in zip(told, late, strict=True):
        if answer is not None and not answer.code:  # the zombie passed it on
            await crowd.ask(Method.NEW, command)
    assert all(after[shard][-1].epoch > epoch for shard, epoch in before.items())
    await settled(crowd, exchange)


async def test_g16_a_store_that_is_killed_finds_everything_in_its_file(
    exchange: Exchange, durable: RunningServer
) -> None:
    exchange.start("a")
    crowd = Crowd(exchange)
    trading = asyncio.create_task(crowd.trade(accounts=3, commands=60))
    await crowd.reaches(60)

    durable.kill()
    durable.start()

    await trading
    await settled(crowd, exchange)
