"""govern.lua: how an operator runs a world."""

from __future__ import annotations

import asyncio

from roost.waitingroom.scripts import Closed, Conflict, Governed, Offered, Waiting
from tests.store.waitingroom.world import SECOND, World, invariants


async def test_what_is_empty_stays_and_a_dash_takes_away(any_world: World) -> None:
    assert await any_world.mode("hold", message="soon", limit="5", rate="2") == Governed(1)
    assert await any_world.mode(message="now") == Governed(2)
    numbers = await any_world.numbers()
    assert [numbers[name] for name in ("mode", "message", "limit", "rate")] == ["hold", "now", "5", "2"]

    await any_world.mode("-", message="-", limit="-", rate="-")

    assert not {"mode", "message", "limit", "rate"} & (await any_world.numbers()).keys()


async def test_of_many_who_saw_the_same_revision_one_wins(world: World) -> None:
    await world.mode("hold")
    answers = await asyncio.gather(*(world.mode("auto", expected="1") for _ in range(12)))
    assert answers.count(Governed(2)) == 1
    assert answers.count(Conflict(2)) == 11


async def test_every_change_is_told(world: World) -> None:
    await world.mode("hold", limit="5")
    [entry] = await world.feed()
    assert [entry.fields[name] for name in ("event", "mode", "limit")] == ["governed", "hold", "5"]


async def test_hold_issues_nothing_and_auto_goes_on(world: World) -> None:
    await world.report(cap=2)
    await world.mode("hold")
    assert isinstance(await world.enter("ann"), Waiting)
    assert (await world.tick()).issued == 0
    await world.mode("auto")
    assert (await world.tick()).issued == 1


async def test_hold_lets_a_ticket_in(world: World) -> None:
    await world.report(cap=2)
    await world.gets_ticket("ann")
    await world.mode("hold")
    await world.goes_in("ann")
    await invariants(world)


async def test_closing_admits_who_waits_and_takes_nobody_new(world: World) -> None:
    await world.waits("ann")
    await world.report(cap=2)
    await world.mode("closing")
    assert await world.enter("bob") == Closed("closing")
    assert (await world.tick()).issued == 1


async def test_queue_all_gives_no_ticket_at_once(world: World) -> None:
    await world.report(cap=2)
    await world.mode("queue-all")
    assert isinstance(await world.enter("ann"), Waiting)
    assert (await world.tick()).issued == 1


async def test_off_lets_in_as_long_as_there_is_room_and_keeps_no_line(world: World) -> None:
    await world.waits("ann")
    await world.report(cap=1)
    await world.mode("off")
    assert isinstance(await world.enter("bob"), Offered)
    assert await world.enter("cid") == Closed("off")
    assert (await invariants(world)).people.keys() == {"ann", "bob"}


async def test_a_limit_counts_whatever_the_servers_can_take(world: World) -> None:
    await world.report(cap=10, n=1)
    await world.mode(limit="2")
    await world.gets_ticket("ann")
    await world.waits("bob")
    assert (await world.tick()).issued == 0
    await world.mode(limit="3")
    assert (await world.tick()).issued == 1
    await invariants(world)


async def test_a_limit_above_the_capacity_adds_nothing(world: World) -> None:
    await world.report(cap=1)
    await world.mode(limit="100")
    await world.gets_ticket("ann")
    assert isinstance(await world.enter("bob"), Waiting)


async def test_a_rate_is_kept_over_any_time(world: World) -> None:
    await world.report(cap=1000)
    await world.mode("queue-all", rate="5")
    users = await world.crowd(200)
    issued = 0
    for tenth in range(1, 101):
        world.now += SECOND // 10
        issued += (await world.tick()).issued
        await world.touch(*users, poll_ms=30_000)
        assert issued <= 5 + 5 * tenth / 10
    assert issued >= 5 * 10


async def test_who_is_let_in_at_once_is_within_the_rate(world: World) -> None:
    await world.report(cap=1000)
    await world.mode(rate="3")
    answers = [await world.enter(f"u{number}") for number in range(6)]
    assert [type(answer) for answer in answers] == [Offered] * 3 + [Waiting] * 3

    world.now += SECOND
    assert (await world.tick()).issued == 3
    assert isinstance(await world.enter("late"), Waiting)


async def test_time_without_anybody_is_not_saved_up(world: World) -> None:
    await world.report(cap=1000)
    await world.mode(rate="2")
    await world.gets_ticket("first")
    await world.pass_ms(60_000)
    answers = [await world.enter(f"u{number}") for number in range(5)]
    assert [type(answer) for answer in answers] == [Offered] * 2 + [Waiting] * 3


async def test_a_rate_of_nought_is_none_and_leaves_no_debt(world: World) -> None:
    await world.report(cap=1000)
    await world.mode(rate="0")
    for number in range(50):
        await world.gets_ticket(f"u{number}")
    await world.mode(rate="1")
    await world.gets_ticket("ann")
