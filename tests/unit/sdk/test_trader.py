"""A trader at order servers that refuse, forget to answer, hang up and change."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import msgspec
import pytest

from roost.core.errors import InvalidId, InvalidInput, OutcomeUnknown
from roost.lanes.commands import Method, Side, Standing, State, encode
from roost.lanes.ids import pack
from roost.sdk.direct import shard_owners
from roost.sdk.direct.shard_owners import ASK_MS
from roost.sdk.direct.trader import Trader
from roost.sdk.trade import Fill, FillGap, Order, OrderAccepted, OrderRefused
from roost.testing import eventually
from roost.wire.answer import Answer, refusal
from roost.wire.codes import Code
from roost.wire.server import Call
from tests.unit.sdk.order_servers import (
    Act,
    Market,
    OrderServer,
    accept,
    event,
    hang_up,
    not_taken,
    outcome,
    refuse_by_shard,
    say_nothing,
)

NOW_MS = 1_790_000_000_000


@pytest.fixture
async def market() -> AsyncIterator[Market]:
    async with AsyncExitStack() as stack:
        yield Market(stack)


def numbers(server: OrderServer) -> list[int]:
    return [command.client_seq for _, command in server.commands]


# -- answers


async def test_an_accepted_command_comes_back_with_its_receipt(market: Market) -> None:
    server = await market.server()
    trader = await market.trader()

    answer = await trader.new("aapl", "buy", price=100, quantity=5)

    assert isinstance(answer, OrderAccepted)
    assert (answer.order_id, answer.state, answer.remaining, answer.client_seq) == (1001, "open", 5, 1)
    assert (answer.receipt.shard, answer.receipt.lane, answer.receipt.epoch) == (3, 17, 42)
    assert (answer.receipt.seq, answer.receipt.durability) == (1, "everysec")
    method, command = server.commands[0]
    assert (method, command.account, command.symbol, command.side) == (Method.NEW, "acct-7", "AAPL", Side.BUY)


async def test_a_refusal_of_the_shard_is_a_value_with_a_receipt(market: Market) -> None:
    server = await market.server()
    server.script.append(refuse_by_shard("BAD_PRICE"))
    trader = await market.trader()

    answer = await trader.new("AAPL", "sell", price=-1, quantity=5)

    assert isinstance(answer, OrderRefused)
    assert answer.reason == "BAD_PRICE"
    assert answer.receipt is not None
    assert answer.receipt.seq == 9


async def test_receipts_prove_that_a_log_has_lost_commands(market: Market) -> None:
    """A later owner that numbers lower than an earlier one does not have what that one answered."""

    def numbered(epoch: int, seq: int) -> Act:
        given = msgspec.structs.replace(outcome(1, State.OPEN, "", seq), epoch=epoch)
        return lambda server, call: Answer(encode(given))

    server = await market.server()
    trader = await market.trader()
    lost: list[int] = []
    for epoch, seq in ((42, 7), (42, 9), (42, 8), (43, 10), (42, 9), (43, 12), (44, 12), (44, 13)):
        server.script.append(numbered(epoch, seq))
        await trader.new("AAPL", "buy", price=100, quantity=5)
        lost.append(trader.counts["lost"])

    assert lost == [0, 0, 0, 0, 0, 0, 1, 1]


async def test_a_full_lane_is_said_at_once_with_its_depth_and_when_to_come_again(market: Market) -> None:
    server = await market.server()
    server.script.append(not_taken("QUEUE_FULL", depth=65_536, retry_after_ms=250))
    trader = await market.trader()

    answer = await trader.new("AAPL", "buy", price=100, quantity=5)

    assert isinstance(answer, OrderRefused)
    assert (answer.reason, answer.depth, answer.retry_after_ms) == ("QUEUE_FULL", 65_536, 250)
    assert answer.receipt is None
    assert len(server.commands) == 1


async def test_every_command_is_counted_as_accepted_refused_or_unknown(market: Market) -> None:
    server = await market.server()
    server.script.extend((accept, not_taken("TOO_SLOW"), refuse_by_shard("HALTED"), accept))
    trader = await market.trader()

    for _ in range(4):
        await trader.new("AAPL", "buy", price=100, quantity=5)

    assert trader.counts == {"sent": 4, "accepted": 2, "refused": 2}


async def test_numbers_rise_and_say_up_to_where_answers_were_seen(market: Market) -> None:
    server = await market.server()
    trader = await market.trader(next_seq=70)

    for _ in range(3):
        await trader.new("AAPL", "buy", price=100, quantity=5)

    assert [(one.client_seq, one.acked) for _, one in server.commands] == [(70, 70), (71, 71), (72, 72)]
    assert trader.next_seq == 73


async def test_a_later_trader_numbers_above_an_earlier_one(market: Market) -> None:
    await market.server()
    earlier = await market.trader(next_seq=0)
    await earlier.new("AAPL", "buy", price=100, quantity=5)

    later = await market.trader(next_seq=0)

    assert later.next_seq > 1_600_000_000_000_000
    assert later.next_seq >= earlier.next_seq


@pytest.mark.parametrize("side", ["", "BUY", "hold"])
async def test_a_side_that_is_none_is_not_sent(market: Market, side: str) -> None:
    server = await market.server()
    trader = await market.trader()

    with pytest.raises(InvalidInput, match="buy or sell"):
        await trader.new("AAPL", side, price=100, quantity=5)  # type: ignore[arg-type]
    with pytest.raises(InvalidId):
        await trader.new("A B", "buy", price=100, quantity=5)
    with pytest.raises(InvalidInput, match="cannot be sent"):
        await trader.new("AAPL", "buy", price=2**70, quantity=5)

    assert server.commands == []
    assert (await trader.new("AAPL", "buy", price=100, quantity=5)).client_seq == 1


# -- the same number again


async def test_a_command_whose_answer_is_lost_goes_again_under_its_number(market: Market) -> None:
    server = await market.server()
    server.script.append(hang_up)
    trader = await market.trader()

    answer = await trader.new("AAPL", "buy", price=100, quantity=5)

    assert isinstance(answer, OrderAccepted)
    assert numbers(server) == [1, 1]
    assert server.commands[0] == server.commands[1]


async def test_a_command_goes_to_the_new_owner_of_its_shard(market: Market) -> None:
    former, owner = await market.server(), await market.server()
    owner.owns.clear()
    trader = await market.trader()

    def hand_over(server: OrderServer, call: Call) -> Answer | None:
        former.owns, owner.owns = set(), former.owns
        return not_taken("NOT_OWNER")(server, call)

    former.script.append(hand_over)
    answer = await trader.new("AAPL", "buy", price=100, quantity=5)

    assert isinstance(answer, OrderAccepted)
    assert (numbers(former), numbers(owner)) == ([1], [1])


async def test_a_symbol_that_is_being_moved_is_waited_for(market: Market) -> None:
    server = await market.server()
    server.script.extend((not_taken("MOVING"), not_taken("NOT_OWNER"), accept))
    trader = await market.trader()

    answer = await trader.new("AAPL", "buy", price=100, quantity=5)

    assert isinstance(answer, OrderAccepted)
    assert numbers(server) == [1, 1, 1]


async def test_a_full_lane_decides_nothing_about_a_command_that_may_be_carried_out(market: Market) -> None:
    server = await market.server()
    server.script.extend((hang_up, not_taken("QUEUE_FULL", retry_after_ms=20), accept))
    trader = await market.trader()

    answer = await trader.new("AAPL", "buy", price=100, quantity=5)

    assert isinstance(answer, OrderAccepted)
    assert numbers(server) == [1, 1, 1]


@pytest.mark.parametrize(
    "later",
    [
        lambda server, call: refusal(Code.BAD_REQUEST, "AAPL is not traded here"),
        lambda server, call: refusal(Code.FAILED, "the order could not be looked up"),
        not_taken("UNKNOWN_ORDER"),
    ],
    ids=["not-traded-any-more", "failed", "not-found"],
)
async def test_a_refusal_says_nothing_of_an_attempt_before_it(market: Market, later: Act) -> None:
    server = await market.server()
    server.script += [hang_up, later, later]
    trader = await market.trader(timeout_s=5.0)

    answer = await trader.new("AAPL", "buy", price=100, quantity=5)

    assert isinstance(answer, OrderAccepted), "the shard's own word, once it says one"
    assert numbers(server) == [1, 1, 1, 1]

    server.script += [hang_up, *[later] * 10_000]
    trader = await market.trader(timeout_s=0.5)
    with pytest.raises(OutcomeUnknown):
        await trader.new("AAPL", "buy", price=100, quantity=5)


async def test_what_nobody_answers_in_time_is_unknown_and_stays_unseen(market: Market) -> None:
    server = await market.server()
    server.script.extend((say_nothing, accept))
    trader = await market.trader(timeout_s=0.2)

    with pytest.raises(OutcomeUnknown, match="command 1"):
        await trader.new("AAPL", "buy", price=100, quantity=5)
    await trader.new("MSFT", "buy", price=100, quantity=5)

    assert trader.counts == {"sent": 2, "unknown": 1, "accepted": 1}
    assert server.commands[1][1].acked == 1  # so the server keeps the answer to it
    assert isinstance(await trader.answer_to(1, "AAPL"), OrderRefused)  # which this one does not
    assert server.queries[0].client_seq == 1


@pytest.mark.parametrize("answer", ["UNKNOWN_ORDER", "TOO_OLD", "accepted"])
async def test_a_command_whose_answer_was_asked_for_holds_up_no_others(market: Market, answer: str) -> None:
    """Else its number is unseen for ever, and the shards keep the answers to all that came after."""
    server = await market.server()
    server.script.append(say_nothing)
    trader = await market.trader(timeout_s=0.2)
    with pytest.raises(OutcomeUnknown):
        await trader.new("AAPL", "buy", price=100, quantity=5)
    if answer == "accepted":
        server.answer = outcome(1001, State.OPEN, "", 1)
    else:
        server.unknown = answer

    await trader.answer_to(1, "AAPL")
    await trader.new("AAPL", "buy", price=100, quantity=5)

    assert server.commands[-1][1].acked == 2


async def test_a_command_whose_shard_said_nothing_of_it_stays_unseen(market: Market) -> None:
    server = await market.server()
    server.script.append(say_nothing)
    trader = await market.trader(timeout_s=0.2)
    with pytest.raises(OutcomeUnknown):
        await trader.new("AAPL", "buy", price=100, quantity=5)
    server.unknown = "QUEUE_FULL"

    with contextlib.suppress(OutcomeUnknown):
        await trader.answer_to(1, "AAPL")
    await trader.new("AAPL", "buy", price=100, quantity=5)

    assert server.commands[-1][1].acked == 1


async def test_where_no_owner_is_known_nothing_was_done(market: Market) -> None:
    server = await market.server()
    server.owns.clear()
    trader = await market.trader(timeout_s=0.2)

    answer = await trader.new("AAPL", "buy", price=100, quantity=5)

    assert isinstance(answer, OrderRefused)
    assert answer.reason == "UNREACHABLE"
    assert answer.retry_after_ms > 0
    assert server.commands == []


async def test_a_command_is_not_held_up_by_a_discovery_that_hangs(
    market: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order servers that are known say who owns what."""
    monkeypatch.setattr(shard_owners, "LIST_S", 0.05)
    server = await market.server()
    server.script.append(hang_up)
    lists = [server.address]

    async def listed() -> list[str]:
        if not lists:
            await asyncio.Event().wait()
        return [lists.pop()]

    async with market.trader_of(listed) as trader:
        assert isinstance(await trader.new("AAPL", "buy", price=100, quantity=5), OrderAccepted)
    assert numbers(server) == [1, 1]


async def test_a_command_ends_in_time_while_nobody_says_who_owns_what(market: Market) -> None:
    server = await market.server()
    server.owns.clear()
    trader = await market.trader(timeout_s=0.2)
    server.is_silent = True
    began = asyncio.get_running_loop().time()

    answer = await trader.new("AAPL", "buy", price=100, quantity=5)

    assert isinstance(answer, OrderRefused)
    assert asyncio.get_running_loop().time() - began < ASK_MS / 1000


async def test_a_trader_that_is_closed_sends_nothing_again(market: Market) -> None:
    """Nor does it connect again, for nobody would hang up."""
    server = await market.server()
    server.script.append(say_nothing)
    trader = await market.trader()
    under_way = asyncio.create_task(trader.new("AAPL", "buy", price=100, quantity=5))
    behind_it = asyncio.create_task(trader.new("AAPL", "buy", price=101, quantity=5))
    await eventually(lambda: server.commands != [], "it is sent")

    await trader.close()

    with pytest.raises(OutcomeUnknown, match="command 1"):
        await under_way
    assert isinstance(await behind_it, OrderRefused)
    assert numbers(server) == [1]
    assert trader.counts == {"sent": 2, "unknown": 1, "refused": 1}


async def test_a_command_that_looks_for_its_owner_ends_when_its_trader_is_closed(market: Market) -> None:
    server = await market.server()
    server.owns.clear()
    trader = await market.trader()
    looks = server.places
    under_way = asyncio.create_task(trader.new("AAPL", "buy", price=100, quantity=5))
    server.is_silent = True
    await eventually(lambda: server.places > looks, "it asks who owns the shard")

    await trader.close()

    answer = await under_way
    assert isinstance(answer, OrderRefused)
    assert answer.reason == "UNREACHABLE"


# -- order


async def test_commands_of_one_symbol_go_one_after_the_other_and_others_do_not_wait(market: Market) -> None:
    server = await market.server()
    held: list[Call] = []
    server.script.append(lambda _, call: held.append(call))
    trader = await market.trader()

    first = asyncio.create_task(trader.new("AAPL", "buy", price=1, quantity=1))
    second = asyncio.create_task(trader.new("AAPL", "buy", price=2, quantity=1))
    third = asyncio.create_task(trader.cancel(5, "aapl"))
    await eventually(lambda: held != [], "the first is at the server")
    other = await trader.new("MSFT", "buy", price=3, quantity=1)

    assert isinstance(other, OrderAccepted)
    assert [getattr(one, "price", 0) for _, one in server.commands] == [1, 3]
    held[0].reply(accept(server, held[0]))
    await asyncio.gather(first, second, third)
    assert [method for method, one in server.commands if one.symbol == "AAPL"] == [
        Method.NEW,
        Method.NEW,
        Method.CANCEL,
    ]


async def test_a_command_that_is_sent_again_is_not_overtaken(market: Market) -> None:
    server = await market.server()
    server.script.extend((hang_up, not_taken("NOT_OWNER"), accept, accept))
    trader = await market.trader()

    await asyncio.gather(*(trader.new("AAPL", "buy", price=price, quantity=1) for price in (1, 2)))

    assert [one.price for _, one in server.commands] == [1, 1, 1, 2]


# -- ids


async def test_a_cancel_by_id_alone_goes_the_way_of_its_symbol_if_the_trader_made_the_order(
    market: Market,
) -> None:
    server = await market.server()
    trader = await market.trader()
    made = await trader.new("AAPL", "buy", price=100, quantity=5)
    assert isinstance(made, OrderAccepted)

    await trader.cancel(made.order_id)
    await trader.amend(made.order_id, price=99, quantity=4)

    assert [one.symbol for _, one in server.commands[1:]] == ["AAPL", "AAPL"]
    assert (server.commands[2][1].price, server.commands[2][1].quantity) == (99, 4)


async def test_any_other_id_goes_to_the_shard_of_its_bits(market: Market) -> None:
    one, two = await market.server(), await market.server()
    one.owns, two.owns = set(range(8)), set(range(8, 16))
    trader = await market.trader()
    of_one, of_two = pack(NOW_MS, 2, 5, 0), pack(NOW_MS, 11, 5, 0)

    await trader.cancel(of_one)
    await trader.cancel(of_two)

    assert [command.order_id for _, command in one.commands] == [of_one]
    assert [command.order_id for _, command in two.commands] == [of_two]


async def test_an_order_can_be_asked_for(market: Market) -> None:
    server = await market.server()
    trader = await market.trader()
    server.standing = Standing(5, State.FILLED, "AAPL", Side.SELL, 100, 7, 0, "", 3, 12)

    assert await trader.query(5, "aapl") == Order(5, "filled", "AAPL", "sell", 100, 7, 0, 3, 12)
    server.standing = Standing(5, State.REFUSED, "AAPL", 0, 0, 0, 0, "NOT_YOURS", 3, 12)
    refused = await trader.query(5, "aapl")
    assert isinstance(refused, OrderRefused)
    assert refused.reason == "NOT_YOURS"


# -- fills


async def take(trader: Trader, count: int) -> list[Fill | FillGap]:
    found: list[Fill | FillGap] = []
    async with asyncio.timeout(10):
        async for told in trader.fills():
            found.append(told)
            if len(found) == count:
                break
    return found


def shown(told: list[Fill | FillGap]) -> list[tuple[str, int, int]]:
    return [
        ("fill", one.shard, one.number) if isinstance(one, Fill) else ("gap", one.shard, one.after)
        for one in told
    ]


async def test_fills_go_on_after_the_cursor_and_move_it(market: Market) -> None:
    server = await market.server()
    server.missed = [event(8), event(9), event(1, shard=5)]
    trader = await market.trader(cursor={3: 7})

    found = await take(trader, 3)

    assert server.follows == [{3: 7}]
    assert shown(found) == [("fill", 3, 8), ("fill", 3, 9), ("fill", 5, 1)]
    assert trader.cursor == {3: 9, 5: 1}
    assert found[0] == Fill(3, 8, 108, 77, "AAPL", "buy", 100, 1, 0, 1_700_000_000_000)


async def test_the_cursor_is_that_of_what_was_taken_not_of_what_arrived(market: Market) -> None:
    server = await market.server()
    server.missed = [event(1), event(2)]
    trader = await market.trader()

    await take(trader, 1)

    assert trader.cursor == {3: 1}


async def test_a_fill_that_comes_twice_is_told_once_and_those_of_others_never(market: Market) -> None:
    server = await market.server()
    server.missed = [event(1), event(1), event(2, account="acct-8"), event(2)]
    trader = await market.trader()

    assert shown(await take(trader, 2)) == [("fill", 3, 1), ("fill", 3, 2)]


async def test_a_fill_that_comes_too_early_makes_the_trader_ask_for_those_before_it(market: Market) -> None:
    server = await market.server()
    server.missed = [event(1)]
    trader = await market.trader()
    assert shown(await take(trader, 1)) == [("fill", 3, 1)]

    server.missed = [event(2), event(3)]
    server.push(event(3))

    assert shown(await take(trader, 2)) == [("fill", 3, 2), ("fill", 3, 3)]
    assert server.follows == [{}, {3: 1}]


async def test_after_a_lost_connection_the_fills_go_on(market: Market) -> None:
    server = await market.server()
    server.missed = [event(1)]
    trader = await market.trader()
    await take(trader, 1)

    server.missed = [event(1), event(2)]
    server.connections.pop().cut("by the test")

    assert shown(await take(trader, 1)) == [("fill", 3, 2)]
    assert server.follows[-1] == {3: 1}


async def test_a_new_owner_is_followed_from_where_the_former_one_stopped(market: Market) -> None:
    former, owner = await market.server(), await market.server()
    owner.owns = {0}
    former.owns = set(range(1, 16))
    former.missed = [event(1)]
    trader = await market.trader()
    await take(trader, 1)
    await eventually(lambda: owner.follows != [], "the other server is followed too")

    owner.missed = [event(2)]
    former.owns, owner.owns = set(), set(range(16))

    assert shown(await take(trader, 1)) == [("fill", 3, 2)]
    assert owner.follows[-1] == {3: 1}


async def test_an_owner_that_lost_its_shards_and_has_them_again_is_followed_anew(market: Market) -> None:
    """What happened meanwhile it does not push by itself."""
    owner, other = await market.server(), await market.server()
    other.owns = set()
    owner.missed = [event(1)]
    trader = await market.trader()
    await take(trader, 1)

    other.owns, owner.owns = owner.owns, set()
    await eventually(lambda: other.follows != [], "the other owner is followed")
    owner.missed = [event(2)]
    other.owns, owner.owns = set(), other.owns

    assert shown(await take(trader, 1)) == [("fill", 3, 2)]
    assert owner.follows == [{}, {3: 1}]


async def test_fills_that_are_kept_no_longer_are_told_as_a_gap_and_those_that_are_kept_follow(
    market: Market,
) -> None:
    server = await market.server()
    server.gaps = {3: 498}
    server.missed = [event(499), event(500)]
    trader = await market.trader(cursor={3: 7})

    (gap,) = await take(trader, 1)

    assert gap == FillGap(3, 7, 498)
    assert trader.cursor == {3: 498}
    assert shown(await take(trader, 2)) == [("fill", 3, 499), ("fill", 3, 500)]
    assert trader.cursor == {3: 500}
    assert server.follows == [{3: 7}, {3: 498}]


async def test_a_fill_that_is_dropped_while_the_trader_asks_is_asked_for_again(market: Market) -> None:
    """What is pushed before the answer and cannot be taken must not count as followed by the answer."""
    server = await market.server()
    server.missed_first = [event(2)]
    server.missed = [event(1), event(2)]
    trader = await market.trader()

    assert shown(await take(trader, 2)) == [("fill", 3, 1), ("fill", 3, 2)]
    assert server.follows == [{}, {}]


async def test_a_trader_that_is_closed_has_no_more_fills(market: Market) -> None:
    server = await market.server()
    trader = await market.trader()
    taking = asyncio.create_task(take(trader, 1))
    await eventually(lambda: server.follows != [], "it follows")

    await trader.close()

    assert await taking == []
