"""sync.lua: the leader writes which lives of servers there are, and which of them take new users."""

from __future__ import annotations

import pytest

from roost.waitingroom.scripts import (
    Fenced,
    Inside,
    NoPlace,
    Pending,
    Reported,
    ServerFull,
    ServerUnknown,
    Stale,
    Synced,
)
from tests.store.waitingroom.world import World, invariants


async def test_a_report_of_a_life_that_nobody_wrote_waits_and_counts_for_nothing(any_world: World) -> None:
    world = any_world
    assert await world.report("ghost", cap=1_000_000, life=9, shown=False) == Pending()
    assert await world.report("ghost", cap=1_000_000, life=9, number=1, shown=False) == Pending()

    state = await invariants(world)

    assert (state.servers, state.number("cap")) == ({}, 0)
    await world.waits("ann")
    assert (await world.tick()).issued == 0
    assert (await world.board()).pending[0] == "ghost"


async def test_a_report_that_waits_counts_as_soon_as_its_life_is_written(world: World) -> None:
    await world.report("s1", cap=3, n=1, k=4, shown=False)
    await world.shows("s1")
    state = await invariants(world)
    assert (state.number("cap"), state.number("inside"), state.servers["s1"].consumed) == (3, 1, 4)
    assert (await world.board()).pending == []


async def test_an_invented_life_displaces_and_fences_nobody(world: World) -> None:
    await world.report("s1", cap=5)
    for life in (8, 10**15, 3):
        assert await world.report("s1", cap=0, life=life, shown=False) == Pending()
        assert isinstance(await world.report("s1", cap=5), Reported)
    await world.gets_ticket("ann")
    await world.goes_in("ann")
    state = await invariants(world)
    assert (state.number("lost_writes"), state.number("doubt"), state.number("drift")) == (0, 0, 0)


async def test_reports_that_wait_are_bounded(world: World) -> None:
    for number in range(300):
        assert await world.report(f"ghost{number}", life=9, shown=False) == Pending()
    assert len((await world.board()).pending) == 2 * 256


async def test_nobody_is_let_in_where_the_life_is_not_known_and_the_ticket_is_spared(world: World) -> None:
    await world.report("s1", cap=5)
    ticket = await world.gets_ticket("ann")
    await world.report("ghost", life=9, shown=False)
    assert await world.consume("ann", ticket.tid, "ghost", life=9) == ServerUnknown()
    await world.shows("s2")
    assert await world.consume("ann", ticket.tid, "s2") == ServerUnknown(), "it has not reported yet"
    assert (await world.person("ann"))["spared"] == "1"


async def test_a_server_that_does_not_take_users_gives_no_room_and_keeps_its_people(world: World) -> None:
    await world.report("s1", cap=5)
    await world.gets_ticket("ann")
    await world.goes_in("ann")
    held = await world.gets_ticket("bob")

    await world.shows("s1", state="0")

    assert await world.consume("bob", held.tid) == ServerFull()
    assert (await world.person("bob"))["spared"] == "1"
    await world.waits("dan")
    assert (await world.tick()).issued == 0
    assert await world.status("ann") == Inside("s1")
    await world.shows("s1", state="1")
    assert (await world.tick()).issued == 1
    await invariants(world)


async def test_people_on_a_closed_server_keep_nobody_off_the_others(world: World) -> None:
    """A cut below those inside, or a server that closes: its people take no seat of another server."""
    await world.report("s1", cap=1)
    await world.gets_ticket("ann")
    await world.goes_in("ann")
    await world.report("s1", cap=0, n=1, k=1)
    await world.report("s2", cap=1)
    await world.gets_ticket("bob")
    state = await invariants(world)
    assert (state.capacity, state.number("inside")) == (2, 1)


async def test_the_limit_counts_everybody(world: World) -> None:
    await world.report("s1", cap=1, n=1)
    await world.shows("s1", state="0")
    await world.report("s2", cap=5)
    await world.mode(limit="1")
    await world.waits("ann")
    assert (await world.tick()).issued == 0


async def test_a_new_life_ends_the_one_before_it_in_the_same_write(world: World) -> None:
    await world.report("s1", cap=5, life=7)
    await world.gets_ticket("ann")
    await world.goes_in("ann", life=7)

    await world.shows("s1", life=3)

    assert await world.status("ann") == NoPlace("crash")
    assert await world.report("s1", cap=5, life=7, shown=False) == Fenced(7)
    assert await world.report("s1", cap=5, life=3, shown=False) == Reported(0)
    state = await invariants(world)
    assert (state.servers["s1"].life, state.number("cap"), state.number("inside")) == (3, 5, 0)


async def test_an_ended_life_does_not_return(world: World) -> None:
    await world.report("s1", cap=5)
    assert await world.sync(("s1", 7, "-")) == Synced(0, [])
    await world.shows("s1")
    assert (await invariants(world)).servers == {}
    assert await world.report("s1", cap=5) == Fenced(7)


async def test_all_servers_that_are_not_named_are_closed_and_told_back(any_world: World) -> None:
    for server in ("s1", "s2"):
        await any_world.report(server, cap=5)
    answer = await any_world.sync(("s2", 7, "1"), full=True)
    assert answer == Synced(0, ["s1", "7"])
    state = await invariants(any_world)
    assert (state.servers["s1"].open, state.number("cap")) == (0, 5)


async def test_older_news_is_ignored_and_the_same_is_taken_again(world: World) -> None:
    await world.report("s1", cap=5)
    await world.sync(("s1", 7, "0"), number=50)
    assert await world.sync(("s1", 7, "1"), number=49) == Stale()
    assert (await invariants(world)).servers["s1"].open == 0
    assert await world.sync(("s1", 7, "0"), number=50) == Synced(0, [])


async def test_people_of_an_ended_life_are_let_out_part_by_part(world: World) -> None:
    await world.report("s1", cap=5)
    users = [f"u{number}" for number in range(5)]
    for user in users:
        await world.gets_ticket(user)
        await world.goes_in(user)
    left = [await world.sync(("s1", 7, "-"), count=2) for _ in range(3)]
    assert [answer.remaining for answer in left if isinstance(answer, Synced)] == [3, 1, 0]
    assert {await world.status(user) for user in users} == {NoPlace("crash")}
    assert (await invariants(world)).servers == {}


async def test_people_of_many_ended_lives_share_one_bound(world: World) -> None:
    """A whole fleet may end in one write, which the store must not be held up by."""
    servers = ("s1", "s2", "s3")
    for server in servers:
        await world.report(server, cap=2)
        for user in (f"{server} a", f"{server} b"):
            await world.gets_ticket(user)
            await world.goes_in(user, server)
    ended = [(server, 7, "-") for server in servers]
    left = [await world.sync(*ended, count=3) for _ in range(2)]
    assert [answer.remaining for answer in left if isinstance(answer, Synced)] == [3, 0]
    assert (await invariants(world)).servers == {}


async def test_people_of_replaced_lives_share_the_bound_and_are_let_out_by_reports(world: World) -> None:
    for server in ("s1", "s2"):
        await world.report(server, cap=1)
        await world.gets_ticket(f"{server} a")
        await world.goes_in(f"{server} a", server)
    await world.sync(("s1", 9, "1"), ("s2", 9, "1"), count=1)
    states = [(await world.person(f"{server} a"))["state"] for server in ("s1", "s2")]
    assert states == ["left", "inside"]
    assert await world.status("s2 a") == NoPlace("crash"), "they are taken for out all the same"
    assert await world.report("s2", cap=1, life=9, shown=False) == Reported(0)
    assert (await world.person("s2 a"))["state"] == "left"
    await invariants(world)


async def test_the_lives_that_ended_are_bounded(world: World) -> None:
    for life in range(1, 250):
        await world.sync(("s1", life, "-"))
    assert await world.store.call("ZCARD", world.key("ended") + b"s1") == 100
    assert await world.report("s1", life=249, shown=False) == Fenced(249)


@pytest.mark.parametrize("state", ["1", "0"])
async def test_news_of_many_servers_is_one_call(world: World, state: str) -> None:
    rows = [(f"s{number}", 7, state) for number in range(3000)]
    assert await world.sync(*rows, full=True) == Synced(0, [])
    assert await world.store.call("HLEN", world.key("known")) == 3000
    assert (await world.board()).servers == [], "who has not reported is in nobody's way"


async def test_what_waits_under_a_former_life_is_forgotten_when_the_known_one_reports(world: World) -> None:
    """A store that was wiped hears of the life before, until the server has registered again."""
    await world.report("s1", life=7, shown=False)
    await world.shows("s1", life=9)
    await world.report("s1", life=9)
    assert (await world.board()).pending == []


async def test_a_repeated_report_of_a_life_that_waits_is_told_that_it_waits(world: World) -> None:
    for number in (5, 5, 4):
        assert await world.report("s1", number=number, cap=number, shown=False) == Pending()
    await world.shows("s1")
    assert (await invariants(world)).servers["s1"].capacity == 5


async def test_what_waits_under_a_life_that_ends_unseen_is_forgotten_with_it(any_world: World) -> None:
    """Registered, reported and died before the leader wrote anything of it."""
    world = any_world
    await world.report("s1", life=7, shown=False)
    await world.report("s2", life=7, shown=False)
    await world.lead()
    await world.sync(("s1", 8, "-"))
    assert (await world.board()).pending[::2] == ["s1", "s2"], "another life of it"
    await world.sync(("s1", 7, "-"))
    assert (await world.board()).pending[::2] == ["s2"]
    await world.drop("s2", life=7)
    assert (await world.board()).pending == []


async def test_a_report_that_waits_in_vain_ends_a_minute_after_the_last(world: World) -> None:
    await world.report("gone", life=7, shown=False)
    await world.report("here", life=7, shown=False)
    await world.pass_ms(40_000)
    await world.report("here", life=7, shown=False)
    await world.pass_ms(20_000)
    assert (await world.board()).pending[::2] == ["here"]
    await world.shows("here")
    await world.pass_ms(60_000)
    assert (await world.board()).servers[::2] == ["here"]
    assert await world.store.call("ZCARD", world.key("pending_at")) == 0


async def test_a_report_whose_time_was_not_kept_ends_too(world: World) -> None:
    """A process of a former version wrote it."""
    await world.report("gone", life=7, shown=False)
    await world.store.call("DEL", world.key("pending_at"), key=world.key("pending_at"))
    await world.pass_ms(61_000)
    assert (await world.board()).pending == []
