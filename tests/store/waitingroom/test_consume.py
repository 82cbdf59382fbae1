"""consume.lua: the one place where somebody gets inside."""

from __future__ import annotations

import asyncio

from roost.waitingroom.scripts import (
    Admitted,
    Expired,
    NotInside,
    ServerFull,
    ServerUnknown,
    Unknown,
    Used,
)
from tests.store.waitingroom.world import TICKET_MS, World, invariants


async def test_the_holder_of_a_ticket_gets_inside(any_world: World) -> None:
    await any_world.report(cap=2)
    ticket = await any_world.gets_ticket("ann", nickname="Ann", region="eu")
    await any_world.pass_ms(1500)

    answer = await any_world.consume("ann", ticket.tid)

    assert answer == Admitted(1, "Ann", "eu", TICKET_MS - 1500)
    state = await invariants(any_world)
    assert (state.offers, state.granted, state.inside["s1:7"]) == ({}, {}, {"ann"})
    assert (state.servers["s1"].consumed, state.number("inside"), state.number("consumed")) == (1, 1, 1)


async def test_the_same_connection_gets_the_same_answer_again(world: World) -> None:
    await world.report(cap=2)
    ticket = await world.gets_ticket("ann")
    first = await world.consume("ann", ticket.tid, conn="c1")
    again = await world.consume("ann", ticket.tid, conn="c1")
    assert isinstance(first, Admitted)
    assert isinstance(again, Admitted)
    assert again.number == first.number
    assert (await invariants(world)).number("inside") == 1


async def test_another_connection_or_another_server_finds_it_used(world: World) -> None:
    await world.report("s1", cap=2)
    await world.report("s2", cap=2)
    ticket = await world.gets_ticket("ann")
    await world.consume("ann", ticket.tid, "s1", conn="c1")
    assert await world.consume("ann", ticket.tid, "s1", conn="c2") == Used()
    assert await world.consume("ann", ticket.tid, "s2", conn="c1") == Used()
    assert await world.release("ann", conn="c2") == NotInside()


async def test_of_many_at_once_one_gets_in(world: World) -> None:
    await world.report("s1", cap=50)
    await world.report("s2", cap=50)
    ticket = await world.gets_ticket("ann")
    answers = await asyncio.gather(
        *(world.consume("ann", ticket.tid, f"s{at % 2 + 1}", conn=f"c{at}") for at in range(50))
    )
    assert [type(answer) for answer in answers].count(Admitted) == 1
    assert answers.count(Used()) == 49


async def test_a_full_server_refuses_and_the_ticket_stays_valid_for_another(world: World) -> None:
    await world.report("s1", cap=1, n=1)
    await world.report("s2", cap=5)
    ticket = await world.gets_ticket("ann")

    assert await world.consume("ann", ticket.tid, "s1") == ServerFull()

    assert (await invariants(world)).offers.keys() == {"ann"}
    assert isinstance(await world.consume("ann", ticket.tid, "s2"), Admitted)


async def test_the_door_counts_who_went_in_since_the_report(world: World) -> None:
    await world.report("s1", cap=2)
    await world.report("s2", cap=2)
    for user in ("ann", "bob"):
        await world.gets_ticket(user)
        await world.goes_in(user, "s1")
    ticket = await world.gets_ticket("cid")
    assert await world.consume("cid", ticket.tid, "s1") == ServerFull()


async def test_a_server_that_never_reported_lets_nobody_in(world: World) -> None:
    await world.report("s1", cap=1)
    ticket = await world.gets_ticket("ann")
    assert await world.consume("ann", ticket.tid, "s9") == ServerUnknown()
    assert await world.consume("ann", ticket.tid, "s1", life=8) == ServerUnknown()
    assert isinstance(await world.consume("ann", ticket.tid, "s1"), Admitted)


async def test_a_ticket_that_nobody_issued_is_unknown(world: World) -> None:
    await world.report(cap=2)
    ticket = await world.gets_ticket("ann")
    await world.gets_ticket("bob")
    assert await world.consume("ann", "t-guessed") == Unknown()
    assert await world.consume("bob", ticket.tid) == Unknown()
    assert await world.consume("eve", ticket.tid) == Unknown()


async def test_a_ticket_is_good_until_the_millisecond_before_its_end(world: World) -> None:
    await world.report(cap=3)
    for user, lasts_ms in (("before", TICKET_MS + 1), ("at", TICKET_MS), ("after", TICKET_MS - 1)):
        world.ticket_ms = lasts_ms
        await world.gets_ticket(user, tid=f"t-{user}")
    await world.pass_ms(TICKET_MS, expire_limit=0)
    assert isinstance(await world.consume("before", "t-before"), Admitted)
    assert await world.consume("at", "t-at") == Expired()
    assert await world.consume("after", "t-after") == Expired()


async def test_reaper_and_door_agree_on_the_instant(world: World) -> None:
    await world.report(cap=2)
    world.ticket_ms = TICKET_MS + 1
    await world.gets_ticket("before", tid="t-before")
    world.ticket_ms = TICKET_MS
    await world.gets_ticket("at", tid="t-at")
    ticked = await world.pass_ms(TICKET_MS)
    assert ticked[-1].expired == 1
    assert await world.consume("at", "t-at") == Unknown()
    assert isinstance(await world.consume("before", "t-before"), Admitted)
    await invariants(world)


async def test_a_ticket_does_not_come_back_with_its_holder(world: World) -> None:
    await world.report(cap=2)
    ticket = await world.gets_ticket("ann")
    await world.goes_in("ann")
    await world.release("ann", "dropped")
    await world.gets_ticket("ann")
    assert await world.consume("ann", ticket.tid) == Unknown()


async def test_the_trace_of_who_was_sampled_goes_along_from_the_entry_to_the_consume(world: World) -> None:
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    await world.mode("queue-all")
    await world.report(cap=2)
    await world.enter("ann", trace=trace)
    await world.enter("bob")

    ticked = await world.tick()

    tids = dict(zip(ticked.tickets[::2], ticked.tickets[1::2], strict=True))
    assert ticked.traces == [tids["ann"], trace]
    told = [
        entry.fields.get("trace", "") for entry in await world.feed() if entry.fields["event"] == "promoted"
    ]
    assert told == [trace, ""]
    sampled, other = await world.consume("ann", tids["ann"]), await world.consume("bob", tids["bob"])
    assert isinstance(sampled, Admitted)
    assert isinstance(other, Admitted)
    assert (sampled.trace, other.trace) == (trace, "")
    await world.release("ann", how="clean")
    assert "trace" not in await world.person("ann")
