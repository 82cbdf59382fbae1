"""Owners that are killed again and again while accounts trade: G13 to G16 hold, and soon all is answered."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.faults.trading import Crowd, Exchange

pytestmark = pytest.mark.slow

ANSWERED_S = 60.0
"""On a machine that others use. What is red here is red for ever: a server that waits for its id."""


@pytest.mark.parametrize("names", [("a",), ("a", "b")], ids=["same_id", "another_id"])
async def test_g16_owners_killed_at_random_moments_while_accounts_trade(
    exchange: Exchange, names: tuple[str, ...]
) -> None:
    """Each restart is at once, under the server id that the dead process had, or under another."""
    chance = random.Random(len(names))
    crowd = Crowd(exchange)
    exchange.start(names[0])
    await crowd.trade(accounts=2, commands=4)
    trading = asyncio.create_task(crowd.trade(accounts=3, commands=24, first=2))
    for kill in range(1, 4):
        await crowd.answers_more(chance.randint(1, 9))
        exchange.kill(names[(kill - 1) % len(names)])
        exchange.start(names[kill % len(names)])
    await crowd.answers_more(1, ANSWERED_S)

    await trading

    await crowd.all_again()
    crowd.check(await exchange.entries())
