"""drop.lua: capacity, people and gap of a server leave the ledger together."""

from __future__ import annotations

from roost.waitingroom.scripts import Dropped, Fenced, Inside, NoPlace, ServerUnknown, Synced
from tests.store.waitingroom.world import LIFE, World, invariants


async def _people_on(world: World, server: str, count: int, life: int = 7) -> list[str]:
    await world.report(server, cap=count, life=life)
    users = [f"{server}-{number}" for number in range(count)]
    for user in users:
        await world.gets_ticket(user)
        await world.goes_in(user, server, life=life)
    return users


async def test_a_server_that_ended_is_out_of_every_sum(any_world: World) -> None:
    await _people_on(any_world, "s1", 3)
    await any_world.report("s2", cap=4, n=1)

    assert await any_world.drop("s1") == Dropped(0)

    state = await invariants(any_world)
    assert (list(state.servers), state.number("cap"), state.number("inside")) == (["s2"], 4, 1)
    assert {person["cause"] for person in state.people.values()} == {"crash"}


async def test_its_people_are_seen_to_part_by_part(world: World) -> None:
    users = await _people_on(world, "s1", 5)
    assert [(await world.drop("s1", count=2)).remaining for _ in range(3)] == [3, 1, 0]
    assert {type(await world.status(user)) for user in users} == {NoPlace}
    await invariants(world)


async def test_whom_a_crash_threw_out_stands_where_they_stood(world: World) -> None:
    users = await _people_on(world, "s1", 3)
    await world.waits("dan")
    await world.drop("s1")

    for user in reversed(users):
        await world.waits(user)

    assert await world.line_of() == [*users, "dan"]
    await invariants(world)


async def test_a_later_life_stays(world: World) -> None:
    former = await _people_on(world, "s1", 1, life=7)
    await world.report("s1", cap=9, life=8)
    await world.gets_ticket("ann")
    await world.goes_in("ann", "s1", life=8)

    assert await world.drop("s1", life=7) == Dropped(0)

    assert await world.status("ann") == Inside("s1")
    assert await world.status(former[0]) == NoPlace("crash")
    state = await invariants(world)
    assert (state.servers["s1"].life, state.number("cap"), state.number("inside")) == (8, 9, 1)


async def test_a_drop_that_is_repeated_changes_nothing(world: World) -> None:
    await _people_on(world, "s1", 2)
    await world.drop("s1")
    before = await invariants(world)
    assert await world.drop("s1") == Dropped(0)
    after = await invariants(world)
    assert (after.servers, after.people, after.numbers) == (before.servers, before.people, before.numbers)


async def test_who_came_back_meanwhile_is_not_thrown_out_again(world: World) -> None:
    users = await _people_on(world, "s1", 2)
    await world.drop("s1", count=0)
    await world.report("s2", cap=5)
    await world.gets_ticket(users[0])
    await world.goes_in(users[0], "s2")

    await world.drop("s1")

    assert await world.status(users[0]) == Inside("s2")
    assert await world.status(users[1]) == NoPlace("crash")
    await invariants(world)


async def test_nothing_of_a_dropped_life_is_taken_any_more(world: World) -> None:
    await world.report("s1", cap=3)
    ticket = await world.gets_ticket("ann")
    await world.drop("s1")
    assert await world.report("s1", cap=3) == Fenced(7)
    assert await world.consume("ann", ticket.tid, "s1") == ServerUnknown()
    assert (await invariants(world)).servers == {}


async def test_a_life_that_ended_before_it_reported_is_not_taken_either(world: World) -> None:
    await world.drop("s1", life=7)
    assert await world.report("s1", cap=3, life=7) == Fenced(7)
    assert await world.number("cap") == 0


async def test_a_drop_that_was_cut_short_is_finished_by_whoever_looks_at_the_ledger(world: World) -> None:
    await world.report(cap=3)
    for user in ("ann", "bob", "carl"):
        await world.gets_ticket(user)
        await world.goes_in(user)
    await world.report(cap=3, n=3, k=3)
    assert (await world.drop(count=1)).remaining == 2
    assert [await world.number(name) for name in ("cap", "inside")] == [0, 0], (
        "what it added has left at once"
    )
    synced = await world.sync(full=True)
    assert synced == Synced(0, ["s1", "7"]), "a row stays until everybody was seen to"
    assert await world.sync(("s1", 7, "-")) == Synced(0, [])
    assert (await world.board()).servers == []
    left = [await world.store.call("TTL", world.key("people") + user) for user in (b"ann", b"bob", b"carl")]
    assert min(left) > 0, "everybody was seen to: what is known of them ends by itself"


async def test_a_server_that_was_dropped_stays_so_for_as_long_as_it_reports(world: World) -> None:
    await world.report()
    await world.drop()
    ended = world.key("ended") + b"s1"
    await world.store.call("EXPIRE", ended, 10, key=ended)
    assert await world.report() == Fenced(LIFE)
    assert await world.store.call("TTL", ended, key=ended) > 3000
