"""admit.lua: one tick of a world."""

from __future__ import annotations

import asyncio

import pytest

from roost.store.store import Store
from roost.waitingroom.rules import BATCH_LIMIT
from roost.waitingroom.scripts import Admitted, Deposed, NewsLost, Offered, Ticked
from tests.store.waitingroom.world import (
    BASE_AND_VIP,
    GONE_MS,
    LATE_MS,
    SECOND,
    TICKET_MS,
    World,
    invariants,
)


async def test_from_the_line_into_the_game_and_out(any_world: World) -> None:
    world = any_world
    users = await world.crowd(3)
    await world.report(cap=2)

    assert await world.tick() == Ticked(2, 0, 0, 1, 0, 0)

    for user in users[:2]:
        assert isinstance(await world.goes_in(user), Admitted)
    await world.report(cap=2, n=2, k=2)
    assert (await world.tick()).issued == 0
    await world.release(users[0])
    await world.report(cap=2, n=1, k=2)
    assert (await world.tick()).issued == 1
    assert await world.promoted() == users
    await invariants(world)


async def test_there_are_never_more_tickets_than_ids(world: World) -> None:
    await world.crowd(5)
    await world.report(cap=10)
    assert await world.tick(2) == Ticked(2, 0, 0, 3, 8, 0)
    assert await world.tick(0) == Ticked(0, 0, 0, 3, 8, 0)


async def test_a_hundred_tickets_in_a_tick_are_the_most_whatever_is_asked_for(world: World) -> None:
    await world.crowd(130)
    await world.report(cap=200)
    assert (await world.tick(500)).issued == BATCH_LIMIT
    assert (await world.tick(500)).issued == 30
    await invariants(world)


async def test_a_tick_that_is_doubled_issues_nothing_more(world: World) -> None:
    await world.crowd(9)
    await world.report(cap=4)
    ticks = await asyncio.gather(*(world.tick() for _ in range(10)))
    assert [tick.issued for tick in ticks] == [4] + [0] * 9
    await invariants(world)


@pytest.mark.parametrize(("holder", "epoch"), [("m", 4), ("m", 6), ("another", 5), ("", 5)])
async def test_only_holder_and_epoch_of_the_present_grant_may_tick(
    world: World, holder: str, epoch: int
) -> None:
    await world.crowd(2)
    await world.report(cap=4)
    world.epoch = 5
    await world.tick(1)
    world.now += SECOND
    before = await invariants(world)
    assert await world.admit(holder=holder, epoch=epoch, is_heard=False) == Deposed()
    assert await world.sync(("s1", 7, "0"), holder=holder, epoch=epoch) == Deposed()
    assert await invariants(world) == before
    assert (await world.tick()).issued == 1


async def test_a_store_that_forgot_who_leads_takes_orders_from_nobody(world: World) -> None:
    await world.crowd(2)
    await world.report(cap=4)
    await world.tick(0)
    await world.store.call("DEL", world.key("leader"), key=world.key("leader"))
    assert await world.admit(epoch=world.epoch) == Deposed()
    assert await world.sync(("s1", 7, "1"), epoch=world.epoch) == Deposed()
    assert (await world.tick()).issued == 2


async def test_a_ledger_that_lost_the_news_says_so_and_issues_nothing(world: World) -> None:
    """A failover brought back what the leader wrote before it closed the server."""
    await world.crowd(1)
    await world.report(cap=4)
    news = world.news
    await world.shows(state="0")
    await world.store.call("HSET", world.key("world"), "news", news, key=world.key("world"))
    assert await world.admit() == NewsLost()
    await world.shows(state="0")
    assert (await world.tick()).issued == 0
    assert (await world.shows(state="1")).remaining == 0
    assert (await world.tick()).issued == 1


async def test_tickets_that_ended_are_taken_back_in_parts(world: World) -> None:
    await world.report(cap=5)
    for number in range(5):
        await world.gets_ticket(f"u{number}")
    await world.pass_ms(TICKET_MS, expire_limit=0)
    assert [(await world.tick(0, expire_limit=2)).expired for _ in range(4)] == [2, 2, 1, 0]
    assert (await invariants(world)).number("expired") == 5


async def test_a_ticket_that_ended_and_was_not_taken_back_still_counts(world: World) -> None:
    await world.report(cap=1)
    await world.gets_ticket("ann")
    await world.waits("bob")
    await world.pass_ms(TICKET_MS, expire_limit=0, polling=["bob"], issue=1)
    assert await world.promoted() == ["ann"]


async def test_time_goes_on_only_while_somebody_ticks(world: World) -> None:
    await world.report(cap=1)
    await world.gets_ticket("ann")
    world.now += 3600 * SECOND
    await world.tick(0)
    state = await invariants(world)
    assert (state.clock_ms, list(state.offers)) == (2000, ["ann"])


async def test_who_is_late_is_put_aside_and_blocks_nobody(world: World) -> None:
    await world.crowd(3)
    await world.pass_ms(2000 + LATE_MS, polling=["u00002"])
    await world.report(cap=1)
    await world.pass_ms(1)
    assert (await world.tick()).issued == 1
    assert isinstance(await world.status("u00002"), Offered)
    assert await world.line_of("away") == ["u00000", "u00001"]
    await invariants(world)


async def test_whoever_is_gone_for_long_loses_the_place(world: World) -> None:
    await world.crowd(2)
    ticked = await world.pass_ms(2000 + GONE_MS, polling=["u00001"])
    assert sum(tick.gone for tick in ticked) == 0
    [last] = await world.pass_ms(1, polling=["u00001"])
    assert last.gone == 1
    assert (await invariants(world)).people["u00000"]["cause"] == "gone"


async def test_looks_that_are_no_multiple_of_four_look_at_all(world: World) -> None:
    users = await world.crowd(7)
    await world.report(cap=7)
    for scan_limit in (1, 2, 3, 5, 6, 7):
        await world.tick(1, scan_limit=scan_limit)
    assert await world.promoted() == users[:6]


async def test_a_look_at_one_person_does_not_look_at_the_whole_line(world: World) -> None:
    await world.crowd(20)
    await world.pass_ms(3000 + LATE_MS, scan_limit=1)
    assert len(await world.line_of()) >= 8
    await invariants(world)


async def test_a_long_line_is_swept_part_by_part(world: World) -> None:
    await world.crowd(95)
    await world.pass_ms(2000 + LATE_MS, scan_limit=40)
    left = []
    for _ in range(10):
        await world.pass_ms(1, scan_limit=40)
        left.append(len(await world.line_of()))
    assert left == [85, 75, 65, 55, 45, 35, 25, 15, 5, 0]


async def test_the_lines_take_turns_by_their_weights(two_lines: World) -> None:
    world = two_lines
    await asyncio.gather(world.crowd(100, "b"), world.crowd(100, "v", line=":vip"))
    await world.report(cap=80)
    issued = [(await world.tick(7)).issued for _ in range(12)]
    assert sum(issued) == 80
    assert [user[0] for user in await world.promoted()].count("v") == 20


async def test_turns_are_even_also_one_by_one(two_lines: World) -> None:
    world = two_lines
    await asyncio.gather(world.crowd(40, "b"), world.crowd(40, "v", line=":vip"))
    await world.report(cap=40)
    for _ in range(40):
        await world.tick(1)
    classes = [user[0] for user in await world.promoted()]
    assert all(classes[at : at + 4].count("v") == 1 for at in range(0, 40, 4))


async def test_a_line_alone_gets_every_turn_and_owes_nothing(two_lines: World) -> None:
    world = two_lines
    await world.crowd(60, "b")
    await world.report(cap=50)
    await world.tick(50)
    await world.crowd(20, "v", line=":vip")
    await world.report(cap=58, number=99)
    await world.tick(8)
    assert [user[0] for user in (await world.promoted())[50:]].count("v") == 2


async def test_a_weight_of_nought_goes_first_and_costs_the_others_only_its_turns(store: Store) -> None:
    world = World(store, weights={":vip": 1, ":staff": 0, "": 3})
    await world.tick(0)
    await world.crowd(20, "b")
    await world.crowd(20, "v", line=":vip")
    await world.crowd(12, "s", line=":staff")
    await world.report(cap=24)
    await world.tick(24)
    classes = "".join(user[0] for user in await world.promoted())
    assert classes[:12] == "s" * 12
    assert classes[12:].count("v") == 3
    assert classes[12:].count("b") == 9


async def test_the_pace_of_each_line_is_learnt(two_lines: World) -> None:
    world = two_lines
    assert list(world.weights) == list(BASE_AND_VIP)
    await world.crowd(100, "b")
    await world.touch(*(f"b{number:05}" for number in range(100)), poll_ms=60_000)
    await world.report(cap=1000)
    await world.pass_ms(10_000, issue=2)
    numbers = await world.numbers()
    assert (numbers["fast"], numbers["slow"], numbers.get("fast:vip")) == ("2000", "2000", None)


async def test_a_rush_after_an_idle_hour_is_told_how_fast_it_moves(world: World) -> None:
    """Time in which nobody waited says nothing; it was taken for a line that stands still."""
    await world.pass_ms(3_600_000, issue=2, step_ms=2000)
    await world.touch(*await world.crowd(100), poll_ms=60_000)
    await world.report(cap=1000)
    await world.pass_ms(3000, issue=2)
    numbers = await world.numbers()
    assert (numbers["fast"], numbers["slow"]) == ("2000", "2000")


async def test_who_comes_one_by_one_does_not_make_the_line_slow(world: World) -> None:
    await world.touch(*await world.crowd(100), poll_ms=60_000)
    await world.report(cap=100)
    await world.pass_ms(10_000, issue=10)
    for number in range(20):
        await world.waits(f"late{number}")
        await world.report(cap=101 + number)
        assert [ticked.issued for ticked in await world.pass_ms(1000, issue=10)] == [1]
    assert (await world.numbers())["fast"] == "10000"


async def test_a_pace_is_a_mean_over_what_was_seen_of_it(world: World) -> None:
    await world.touch(*await world.crowd(100), poll_ms=60_000)
    await world.report(cap=1000)
    await world.pass_ms(5000, issue=10)
    await world.pass_ms(5000, issue=0)
    assert (await world.numbers())["fast"] == "5000"


async def test_what_a_repeated_tick_issues_is_counted_by_the_next(world: World) -> None:
    """While people who are away hide those who are there, nothing is issued until the tick is repeated."""
    await world.touch(*await world.crowd(100), poll_ms=60_000)
    await world.report(cap=1000)
    for _ in range(10):
        await world.pass_ms(1000, issue=0)
        assert (await world.tick(1)).issued == 1
        assert (await world.tick(1)).issued == 1
    await world.pass_ms(1000, issue=2)
    numbers = await world.numbers()
    assert [round(int(numbers[name]), -1) for name in ("fast", "slow")] == [2000, 2000]
    assert "unpaced" not in numbers


async def test_the_error_of_what_people_were_told_is_measured(world: World) -> None:
    await world.crowd(10)
    await world.report(cap=100)
    await world.pass_ms(5000, issue=1)
    await world.waits("ann")
    await world.pass_ms(6000, issue=1, polling=["ann"])
    assert await world.number("eta_count") == 1
    assert await world.number("eta_error_ms") <= 1000
