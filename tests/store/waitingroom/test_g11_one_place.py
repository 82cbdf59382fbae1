"""G11: per world one place and at most one valid ticket per user; a ticket is consumed at most once."""

from __future__ import annotations

import asyncio

from roost.store.store import Store
from roost.waitingroom.scripts import Admitted, Deposed, Inside, NewsLost, Offered, Ticked, Used, Waiting
from tests.store.waitingroom.world import LATE_MS, TICKET_MS, World, invariants


async def test_g11_a_thousand_entries_of_one_user_are_one_place(any_world: World) -> None:
    answers = await asyncio.gather(*(any_world.enter("ann") for _ in range(1000)))
    assert len({answer.seq for answer in answers if isinstance(answer, Waiting)}) == 1
    assert all(isinstance(answer, Waiting) for answer in answers)
    state = await invariants(any_world)
    assert (len(state.waiting[""]), state.number("entries")) == (1, 1)


async def test_g11_a_thousand_entries_of_one_user_are_one_ticket(world: World) -> None:
    await world.report(cap=1000)
    answers = await asyncio.gather(*(world.enter("ann") for _ in range(1000)))
    assert len({answer.tid for answer in answers if isinstance(answer, Offered)}) == 1
    assert all(isinstance(answer, Offered) for answer in answers)
    state = await invariants(world)
    assert (len(state.granted), state.number("issued")) == (1, 1)


async def test_g11_who_enters_while_a_ticket_is_out_gets_the_same_ticket(world: World) -> None:
    await world.report(cap=5)
    ticket = await world.gets_ticket("ann")
    await world.pass_ms(1000)
    assert await world.enter("ann") == Offered(ticket.seq, ticket.tid, TICKET_MS - 1000)
    assert (await world.tick()).issued == 0


async def test_g11_who_enters_while_inside_is_inside(world: World) -> None:
    await world.report(cap=5)
    await world.gets_ticket("ann")
    await world.goes_in("ann")
    assert await world.enter("ann") == Inside("s1")
    assert (await world.tick()).issued == 0
    assert (await invariants(world)).number("inside") == 1


async def test_g11_many_entries_while_a_place_is_held_are_one_ticket(world: World) -> None:
    await world.report(cap=1)
    await world.gets_ticket("ann")
    await world.goes_in("ann")
    await world.release("ann", "dropped")
    answers = await asyncio.gather(*(world.enter("ann") for _ in range(50)))
    assert len({answer.tid for answer in answers if isinstance(answer, Offered)}) == 1
    state = await invariants(world)
    assert (list(state.offers), state.grace) == (["ann"], {})


async def test_g11_who_enters_after_the_ticket_ended_has_the_old_place(world: World) -> None:
    await world.report(cap=1)
    ticket = await world.gets_ticket("ann")
    await world.waits("bob")
    await world.pass_ms(TICKET_MS, expire_limit=0)

    again = await world.waits("ann")

    assert (again.seq, again.rank) == (ticket.seq, 1)
    assert not isinstance(await world.consume("ann", ticket.tid), Admitted)
    await invariants(world)


async def test_g11_who_enters_while_away_has_the_old_place(world: World) -> None:
    first = await world.waits("ann")
    await world.waits("bob")
    await world.pass_ms(3000 + LATE_MS, polling=["bob"])
    again = await world.waits("ann")
    assert (again.seq, again.rank, again.was_away) == (first.seq, 1, 1)
    assert await world.line_of() == ["ann", "bob"]
    await invariants(world)


async def test_g11_another_class_is_no_second_place(two_lines: World) -> None:
    first = await two_lines.waits("ann")
    again = await two_lines.waits("ann", line=":vip")
    assert (again.seq, again.line) == (first.seq, "")
    assert (await invariants(two_lines)).waiting[":vip"] == {}


async def test_g11_two_leaders_issue_one_ticket_each_time(store: Store) -> None:
    one, two = World(store), World(store)
    one.epoch, two.epoch = 1, 2
    await one.tick(0)
    users = await one.crowd(20)
    await one.report(cap=10)
    two.news = one.news
    ticks: list[Ticked | NewsLost | Deposed] = await asyncio.gather(
        *(leader.admit(3) for _ in range(10) for leader in (one, two))
    )
    assert sum(tick.issued for tick in ticks if isinstance(tick, Ticked)) == 10
    assert await one.promoted() == users[:10]
    await invariants(one)


async def test_g11_a_ticket_that_is_used_everywhere_at_once_lets_one_in(any_world: World) -> None:
    servers = [f"s{number}" for number in range(5)]
    for server in servers:
        await any_world.report(server, cap=100)
    ticket = await any_world.gets_ticket("ann")
    answers = await asyncio.gather(
        *(
            any_world.consume("ann", ticket.tid, server, conn=f"c{at}")
            for at in range(40)
            for server in servers
        )
    )
    assert [type(answer) for answer in answers].count(Admitted) == 1
    assert answers.count(Used()) == 199
    assert (await invariants(any_world)).number("inside") == 1


async def test_g11_entries_ticks_and_departures_at_once_leave_everybody_in_one_place(world: World) -> None:
    await world.report(cap=10)
    users = [f"u{number}" for number in range(30)]
    for _ in range(5):
        await asyncio.gather(
            *(world.enter(user) for user in users for _ in range(3)),
            *(world.tick(2) for _ in range(5)),
            *(world.leave(user) for user in users[::3]),
        )
        state = await invariants(world)
        assert len(state.offers) <= 10
