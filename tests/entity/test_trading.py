"""Users who trade: an order leaves once, a fill counts once, whoever of the two servers dies or moves."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from roost.core.loops import Loops
from roost.sdk.direct.trader import Trader
from roost.sdk.entity import Entity
from roost.sdk.trade import OrderAccepted
from roost.servers.entity.ledger import MARK
from roost.testing import RunningServer, eventually
from roost.wire.codes import Code
from tests.acceptance.conftest import Home as Processes
from tests.acceptance.conftest import home
from tests.entity.exchange import (
    SYMBOL,
    Ann,
    Cut,
    JournaledMerchant,
    LazyMerchant,
    Merchant,
    accepted,
    open_order_server,
    open_trader,
    start_order_server,
)
from tests.entity.town import Counter, Town

__all__ = ["home"]

ALL = [Merchant, JournaledMerchant, LazyMerchant]


@pytest.fixture
async def bob(town: Town, server: RunningServer, tmp_path: Path) -> AsyncIterator[Trader]:
    """Somebody to trade with, at an order server that the homes of the town know."""
    async with AsyncExitStack() as stack:
        address = await stack.enter_async_context(open_order_server(server.url, tmp_path))
        town.order_servers.append(address)
        trader = await stack.enter_async_context(open_trader(server.url, tmp_path, address))
        await accepted(trader, "sell", 10**6, 1)  # the shard has an owner
        yield trader


@pytest.fixture
def ann(town: Town) -> Ann:
    return Ann(town)


async def sells(bob: Trader, quantity: int, price: int = 100, symbol: str = SYMBOL) -> int:
    """At once, to whoever buys; how much that was."""
    answer = await bob.new(symbol, "sell", price=price, quantity=quantity, immediate=True)
    assert isinstance(answer, OrderAccepted), answer
    return answer.filled


@pytest.mark.parametrize("entity", ALL)
async def test_an_order_is_answered_and_filled_in_turns_of_its_user(
    town: Town, bob: Trader, ann: Ann, entity: type[Entity]
) -> None:
    home = await ann.lives_on(await town.open(entity=entity))
    assert await ann.says(["buy", SYMBOL, 100, 5]) == 1
    [[number, state, order_id]] = await ann.is_answered(1)
    assert (number, state) == (1, "open")

    assert await sells(bob, 3) == 3
    await ann.shows(position=3)

    await ann.says(["amend", order_id, SYMBOL, 100, 4])
    await ann.says(["cancel", order_id, SYMBOL])
    answers = await ann.is_answered(3)
    assert [one[:2] for one in answers[1:]] == [[2, "open"], [3, "cancelled"]]
    assert await sells(bob, 3) == 0
    assert home.users == ["ann"]


async def test_a_refusal_of_the_shard_is_an_answer(town: Town, bob: Trader, ann: Ann) -> None:
    await ann.lives_on(await town.open(entity=Merchant))
    await ann.says(["buy", SYMBOL, -1, 5])
    await ann.says(["cancel", 77, SYMBOL])
    assert [one[:2] for one in await ann.is_answered(2)] == [[1, "BAD_PRICE"], [2, "UNKNOWN_ORDER"]]


async def test_without_order_servers_a_class_is_told_so(town: Town, ann: Ann) -> None:
    home = await ann.lives_on(await town.open(entity=Merchant))
    answer = await home.ask("ann", ["buy", SYMBOL, 100, 5])
    assert answer.code is Code.FAILED


async def test_the_row_of_one_who_never_traded_holds_the_state_alone(town: Town, ann: Ann) -> None:
    await ann.lives_on(await town.open(entity=Counter))
    await ann.says("up")
    await eventually(lambda: _is_written(town, b"1"), "the state is written")


async def _is_written(town: Town, state: bytes) -> bool:
    return await town.state("ann") == state


class Lookalike(Counter):
    """Its states begin as rows with a ledger do."""

    async def load(self, state: bytes | None) -> None:
        self.count = len(state or MARK) - len(MARK)

    def save(self) -> bytes:
        return MARK + b"x" * self.count


async def test_a_state_that_looks_like_a_ledger_is_read_as_it_was_written(town: Town, ann: Ann) -> None:
    home = await ann.lives_on(await town.open(entity=Lookalike))
    assert await ann.says("up") == 1
    other = await town.open("502", Lookalike)
    assert await home.outcome(other, "ann") == "moved"
    ann.home = other
    assert await ann.says("up") == 2


# -- crashes


@pytest.mark.parametrize("entity", ALL)
async def test_a_fill_whose_effect_was_not_written_is_told_to_the_next_home(
    town: Town, bob: Trader, ann: Ann, entity: type[Entity]
) -> None:
    cut = Cut(town.database)
    home = await ann.lives_on(await town.open(entity=entity, database=cut))
    await ann.says(["buy", SYMBOL, 100, 5])
    await ann.is_answered(1)
    await ann.row_holds(position=0)
    cut.writes_left = 0
    assert await sells(bob, 2) == 2
    await eventually(lambda: ann.in_memory(home)["position"] == 2, "the fill is told")

    await ann.moves_in_after_crash(home, await town.open("502", entity))
    assert await sells(bob, 2) == 2
    shown = await ann.shows(position=4)
    assert [number for _, number in shown["fills"]] == [1, 2]


@pytest.mark.parametrize("entity", ALL)
async def test_an_order_of_a_turn_that_was_not_written_was_never_sent(
    town: Town, bob: Trader, ann: Ann, entity: type[Entity]
) -> None:
    cut = Cut(town.database)
    home = await ann.lives_on(await town.open(entity=entity, database=cut))
    await ann.says(["buy", SYMBOL, 50, 5])
    await ann.is_answered(1)
    cut.writes_left = 0
    said = ann.in_memory(home)["said"]
    asked = ann.begins_to_say(["buy", SYMBOL, 100, 5])
    await eventually(lambda: ann.in_memory(home)["said"] == said + 1, "it was executed")
    assert [await sells(bob, 5) for _ in range(20)] == [0] * 20
    await home.crash()
    assert await sells(bob, 5) == 0
    asked.cancel()


@pytest.mark.parametrize("entity", ALL)
async def test_an_order_whose_answer_was_not_written_is_sent_again_and_is_one_order(
    town: Town, bob: Trader, ann: Ann, entity: type[Entity]
) -> None:
    cut = Cut(town.database)
    home = await ann.lives_on(await town.open(entity=entity, database=cut))
    cut.writes_left = 1
    await ann.says(["buy", SYMBOL, 100, 5])
    await eventually(lambda: ann.in_memory(home)["answers"] != [], "it was answered")
    answers = list(ann.in_memory(home)["answers"])

    await ann.moves_in_after_crash(home, await town.open("502", entity))
    assert await ann.is_answered(1) == answers
    assert await sells(bob, 9) == 5
    await ann.shows(position=5)
    await ann.says(["buy", SYMBOL, 90, 1])
    assert [number for number, *_ in await ann.is_answered(2)] == [1, 2]


# -- moves and absence


async def test_a_user_who_is_moved_hears_of_every_fill_once(town: Town, bob: Trader, ann: Ann) -> None:
    home = await ann.lives_on(await town.open(entity=Merchant))
    other = await town.open("502", Merchant)
    await ann.says(["buy", SYMBOL, 100, 40])
    await ann.is_answered(1)
    for turn in range(4):
        source, target = (home, other) if turn % 2 == 0 else (other, home)
        selling = asyncio.gather(*(sells(bob, 1) for _ in range(5)))
        assert await source.outcome(target, "ann") == "moved"
        ann.home = target
        assert await selling == [1] * 5
    shown = await ann.shows(position=20)
    assert [number for _, number in shown["fills"]] == list(range(1, 21))


async def test_an_order_that_is_under_way_in_a_move_is_answered_at_the_new_home(
    town: Town, bob: Trader, ann: Ann
) -> None:
    home = await ann.lives_on(await town.open(entity=LazyMerchant))
    other = await town.open("502", LazyMerchant)
    for price in range(1, 11):
        await ann.says(["buy", SYMBOL, price, 1])
    assert await home.outcome(other, "ann") == "moved"
    ann.home = other
    answers = await ann.is_answered(10)
    assert sorted(number for number, *_ in answers) == list(range(1, 11))
    assert await sells(bob, 99, price=1) == 10


async def test_one_who_is_logged_out_and_one_without_a_home_miss_nothing(
    town: Town, bob: Trader, ann: Ann
) -> None:
    home = await ann.lives_on(await town.open(entity=Merchant))
    assert (await home.login("ann")).code is Code.OK
    await ann.says(["buy", SYMBOL, 100, 9])
    await ann.is_answered(1)
    await home.logout("ann")
    assert await sells(bob, 2) == 2
    await ann.row_holds(position=2)

    await home.crash()
    await town.bury(home)
    assert await sells(bob, 3) == 3
    other = await ann.lives_on(await town.open("502", Merchant))
    assert (await other.login("ann")).code is Code.OK
    await ann.row_holds(position=5)


async def test_more_fills_than_are_kept_are_told_as_a_gap_and_those_that_are_kept_count(
    town: Town, bob: Trader, ann: Ann
) -> None:
    home = await ann.lives_on(await town.open(entity=Merchant))
    await ann.says(["buy", SYMBOL, 100, 400])
    await ann.is_answered(1)
    await home.crash()
    await town.bury(home)
    for _ in range(300):
        assert await sells(bob, 1) == 1

    other = await ann.lives_on(await town.open("502", Merchant))
    await ann.shows(gaps=1, position=256)
    assert await sells(bob, 1) == 1
    shown = await ann.shows(position=257)
    assert [number for _, number in shown["fills"]] == list(range(45, 302))
    await ann.moves_in_after_crash(other, await town.open("503", Merchant))
    assert await sells(bob, 1) == 1
    assert (await ann.shows(position=258))["gaps"] == 1


# -- owners


async def test_when_the_owner_of_a_shard_is_killed_the_next_one_is_followed_from_the_cursor(
    town: Town, server: RunningServer, home: Processes, tmp_path: Path, ann: Ann
) -> None:
    first, killed = await start_order_server(home, server.url, "901")
    town.order_servers.append(first)
    house = await ann.lives_on(await town.open(entity=Merchant))
    house.loops.append(asyncio.create_task(Loops().keep_running("beat", house.beat, pause_s=0.5)))
    async with open_trader(server.url, tmp_path, first) as bob:
        await accepted(bob, "sell", 10**6, 1)
        await ann.says(["buy", SYMBOL, 100, 9])
        await ann.is_answered(1)
        assert await sells(bob, 2) == 2
        await ann.shows(position=2)
    killed.process.kill()
    killed.process.wait()
    assert await ann.says(["buy", SYMBOL, 90, 4]) == 2

    second, _ = await start_order_server(home, server.url, "902")
    town.order_servers.append(second)
    async with open_trader(server.url, tmp_path, second) as bob:
        answers = await ann.is_answered(2)
        assert [one[:2] for one in answers] == [[1, "open"], [2, "open"]]
        assert await sells(bob, 99, price=90) == 11
        shown = await ann.shows(position=13)
    assert [number for _, number in shown["fills"]] == [1, 2, 3]
    assert house.users == ["ann"]


# -- drawn


@pytest.mark.parametrize("seed", range(6))
async def test_wherever_homes_die_the_position_is_the_sum_of_the_fills(
    town: Town, bob: Trader, ann: Ann, seed: int
) -> None:
    draw = random.Random(seed)
    entity = ALL[seed % len(ALL)]
    symbols = [SYMBOL, "TSLA", "BTCUSDT"]
    for symbol in symbols[1:]:
        await accepted(bob, "sell", 10**6, 1, symbol)
    cut = Cut(town.database)
    home, bought, names = (
        await ann.lives_on(await town.open(entity=entity, database=cut)),
        0,
        iter(range(502, 999)),
    )
    for _ in range(30):
        match draw.choice(["order", "order", "sell", "sell", "cut", "crash", "move"]):
            case "order":
                await ann.tries(["buy", draw.choice(symbols), 100, draw.randint(1, 5)])
            case "sell":
                bought += await sells(bob, draw.randint(1, 4), symbol=draw.choice(symbols))
            case "cut":
                cut.writes_left = draw.randint(0, 3)
            case "crash":
                cut = Cut(town.database)
                other = await town.open(str(next(names)), entity, database=cut)
                await ann.moves_in_after_crash(home, other)
                home = other
            case _:
                cut.writes_left, fresh = None, Cut(town.database)
                other = await town.open(str(next(names)), entity, database=fresh)
                outcome = await home.outcome(other, "ann")
                if outcome == "moved":
                    ann.home, home, cut = other, other, fresh
                elif outcome == "released":  # she had not come yet
                    await ann.lives_on(home)
    cut.writes_left = None
    for symbol in symbols:
        bought += await sells(bob, 10**6, symbol=symbol)
    shown = await ann.shows(position=bought)
    for shard in {shard for shard, _ in shown["fills"]}:
        numbers = [number for one, number in shown["fills"] if one == shard]
        assert numbers == list(range(1, len(numbers) + 1))
    numbers = [number for number, *_ in shown["answers"]]
    assert len(numbers) == len(set(numbers))
