"""enter.lua: one place per person, and a ticket at once where nobody waits and there is room."""

from __future__ import annotations

from roost.waitingroom.scripts import Closed, Full, Inside, Limited, Offered, Released, Waiting
from tests.store.waitingroom.world import BASE_AND_VIP, GRACE_MS, MS, TICKET_MS, World, invariants


async def test_who_comes_first_stands_first(any_world: World) -> None:
    first, second = await any_world.waits("ann"), await any_world.waits("bob")

    assert (first.rank, second.rank) == (1, 2)
    assert second.seq == first.seq + 1
    assert (await invariants(any_world)).waiting == {"": {"ann": first.seq, "bob": second.seq}}


async def test_where_nobody_waits_and_there_is_room_the_ticket_comes_at_once(any_world: World) -> None:
    await any_world.report(cap=1)

    ticket = await any_world.enter("ann", tid="t-ann", nickname="Ann", region="eu")

    assert isinstance(ticket, Offered)
    assert (ticket.tid, ticket.left_ms) == ("t-ann", TICKET_MS)
    state = await invariants(any_world)
    assert state.granted == {"t-ann": "ann"}
    assert (state.people["ann"]["nick"], state.people["ann"]["region"]) == ("Ann", "eu")
    assert await any_world.promoted() == ["ann"]


async def test_nobody_passes_a_line_by_coming_when_there_is_room(world: World) -> None:
    await world.waits("ann")
    await world.report(cap=5)
    assert isinstance(await world.enter("bob"), Waiting)


async def test_a_line_of_another_class_is_not_passed_either(two_lines: World) -> None:
    await two_lines.waits("ann")
    await two_lines.report(cap=5)
    assert isinstance(await two_lines.enter("eve", line=":vip"), Waiting)


async def test_classes_stand_in_lines_of_their_own(two_lines: World) -> None:
    await two_lines.waits("ann")
    assert (await two_lines.waits("eve", line=":vip")).rank == 1
    assert (await two_lines.waits("bob")).rank == 2
    assert (await invariants(two_lines)).waiting.keys() == BASE_AND_VIP.keys()


async def test_who_asks_again_is_told_what_they_have(world: World) -> None:
    await world.report(cap=1)
    ticket = await world.gets_ticket("ann")
    place = await world.waits("bob")

    assert await world.enter("ann") == ticket
    assert await world.enter("bob") == place
    await world.goes_in("ann")
    assert await world.enter("ann") == Inside("s1")
    assert (await invariants(world)).number("entries") == 2


async def test_who_dropped_out_gets_a_ticket_for_the_place_that_is_held(world: World) -> None:
    await world.report(cap=1)
    await world.gets_ticket("ann")
    await world.goes_in("ann")
    assert await world.release("ann", "dropped") == Released(GRACE_MS)
    await world.waits("bob")

    assert isinstance(await world.enter("ann"), Offered)

    state = await invariants(world)
    assert (list(state.offers), state.grace) == (["ann"], {})


async def test_a_full_line_takes_nobody_more(world: World) -> None:
    await world.waits("ann")
    assert await world.enter("bob", most_waiting=1) == Full(1)
    assert isinstance(await world.enter("ann", most_waiting=1), Waiting)


async def test_a_closing_world_takes_nobody_new(world: World) -> None:
    await world.waits("ann")
    await world.mode("closing")
    assert await world.enter("bob") == Closed("closing")
    assert isinstance(await world.enter("ann"), Waiting)


async def test_who_asks_too_often_is_told_when_to_come_again(world: World) -> None:
    world.period_ms = 200
    await world.enter("ann")
    answers = [await world.enter("ann") for _ in range(10)]
    assert [type(answer) for answer in answers] == [Waiting] * 9 + [Limited], "the first entry counts too"
    assert answers[-1] == Limited(200)

    world.now += 199 * MS
    assert await world.enter("ann") == Limited(1)
    world.now += 1 * MS
    assert isinstance(await world.enter("ann"), Waiting)


async def test_to_leave_and_come_again_does_not_escape_the_limit(world: World) -> None:
    world.period_ms = 200
    await world.enter("ann")
    answers = []
    for _ in range(12):
        await world.leave("ann")
        answers.append(await world.enter("ann"))
    assert [type(answer) for answer in answers] == [Waiting] * 9 + [Limited] * 3


async def test_who_left_comes_again_at_the_back(world: World) -> None:
    await world.waits("ann")
    await world.waits("bob")
    await world.leave("ann")
    again = await world.waits("ann")
    assert again.rank == 2
    assert (await invariants(world)).waiting[""]["ann"] == again.seq


async def test_whom_a_dead_server_still_counts_comes_back_to_the_old_place(world: World) -> None:
    """The people of a server are seen to part by part; who comes in between is not worse off."""
    await world.report(cap=3)
    ticket = await world.gets_ticket("ann")
    await world.goes_in("ann")
    await world.report("s1", cap=0, life=99)

    assert (await world.waits("ann")).seq == ticket.seq
    await world.drop()
    assert (await invariants(world)).people["ann"]["state"] == "waiting"
