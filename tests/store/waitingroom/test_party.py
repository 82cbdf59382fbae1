"""Parties: everybody of it gets in at once, or nobody yet."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roost.store.store import Store
from roost.waitingroom.scripts import Offered, Waiting
from tests.store.waitingroom.world import GONE_MS, LATE_MS, TICKET_MS, World, invariants


async def comes(world: World, party: str, *users: str, size: int | None = None) -> None:
    for user in users:
        await world.waits(user, party=party, size=size or len(users))


async def has_ticket(world: World, *users: str) -> list[bool]:
    return [isinstance(await world.status(user), Offered) for user in users]


async def test_a_party_stands_at_the_place_of_its_first_member(any_world: World) -> None:
    await any_world.waits("ann", party="p", size=2)
    await any_world.waits("carl")
    await any_world.waits("bob", party="p", size=2)
    assert await any_world.rank("carl") == 2, "what was shown does not rise"
    await any_world.report(cap=2)
    assert (await any_world.tick()).issued == 2
    assert await has_ticket(any_world, "ann", "bob", "carl") == [True, True, False]


async def test_nobody_of_an_incomplete_party_gets_in_and_it_blocks_nobody(world: World) -> None:
    await comes(world, "p", "ann", "bob", size=3)
    await world.waits("carl")
    await world.report(cap=10)
    assert (await world.tick()).issued == 1
    assert await has_ticket(world, "ann", "bob", "carl") == [False, False, True]
    await world.waits("dora", party="p", size=3)
    assert (await world.tick()).issued == 3
    await invariants(world)


async def test_a_party_waits_until_there_is_room_for_all_and_is_not_overtaken(world: World) -> None:
    await world.report(cap=4)
    await world.gets_ticket("first")
    await world.gets_ticket("second")
    await world.waits("ann", party="p", size=3)
    await comes(world, "p", "bob", "carl", size=3)
    await world.waits("dora")
    assert (await world.tick()).issued == 0
    await world.report(cap=5)
    assert (await world.tick()).issued == 3
    assert await has_ticket(world, "ann", "bob", "carl", "dora") == [True, True, True, False]


async def test_a_member_who_is_away_is_waited_for_and_who_is_gone_is_not(world: World) -> None:
    await comes(world, "p", "ann", "bob")
    await world.report(cap=10)
    await world.mode("hold")
    await world.pass_ms(LATE_MS + 4000, polling=["ann"])
    await world.mode("auto")
    assert (await world.tick()).issued == 0, "bob is away"
    await world.pass_ms(GONE_MS + LATE_MS, polling=["ann"], issue=100)
    assert await has_ticket(world, "ann") == [True]


async def test_who_leaves_a_party_is_not_waited_for(world: World) -> None:
    await comes(world, "p", "ann", "bob", "carl")
    await world.leave("carl")
    await world.report(cap=10)
    assert (await world.tick()).issued == 2


async def test_whose_ticket_ended_comes_back_alone(world: World) -> None:
    await comes(world, "p", "ann", "bob")
    await world.report(cap=2)
    await world.tick()
    await world.goes_in("ann")
    await world.pass_ms(TICKET_MS, polling=["bob"], issue=100)
    assert await has_ticket(world, "bob") == [True]
    await invariants(world)


async def test_lines_that_take_turns_split_no_party(two_lines: World) -> None:
    world = two_lines
    await comes(world, "p", "ann", "bob", "carl")
    for user in ("v1", "v2", "v3"):
        await world.waits(user, line=":vip")
    for cap in range(1, 7):
        await world.report(cap=cap)
        await world.tick()
        assert len(set(await has_ticket(world, "ann", "bob", "carl"))) == 1, f"with room for {cap}"
    assert await has_ticket(world, "ann", "v1", "v2", "v3") == [True] * 4


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=8),
    caps=st.lists(st.integers(1, 5), min_size=1, max_size=12),
)
async def test_all_or_none_whatever_room_there_is(store: Store, sizes: list[int], caps: list[int]) -> None:
    await store.call("FLUSHALL")
    world = World(store)
    await world.tick(0)
    parties = [[f"p{number}-{member}" for member in range(size)] for number, size in enumerate(sizes)]
    for number, users in enumerate(parties):
        await comes(world, f"p{number}", *users)
    cap = max(sizes) - 1
    for more in caps:
        cap += more
        await world.report(cap=cap)
        await world.tick()
        got = [await has_ticket(world, *users) for users in parties]
        assert all(len(set(tickets)) == 1 for tickets in got)
        assert [tickets[0] for tickets in got] == sorted((tickets[0] for tickets in got), reverse=True), (
            "in order"
        )
        await invariants(world)
    assert not isinstance(await world.status(parties[0][0]), Waiting) or cap < sizes[0]


async def test_a_party_larger_than_the_world_blocks_nobody_and_goes_on_alone_in_the_end(world: World) -> None:
    await comes(world, "p", "ann", "bob", "carl")
    await world.waits("dora")
    await world.report(cap=2)
    assert (await world.tick()).issued == 1
    assert await has_ticket(world, "dora", "ann") == [True, False]
    await world.pass_ms(301_000, polling=["ann", "bob", "carl"])
    await world.report(cap=2)
    await world.tick()
    assert (await has_ticket(world, "ann", "bob", "carl")).count(True) == 2


async def old_is_full_and_closed(world: World) -> None:
    """Four people stay on a server that is out of service; the other one takes two."""
    await world.report("old", cap=4, n=4)
    await world.shows("old", state="0")
    await world.report("new", cap=2)


async def test_a_party_larger_than_what_open_servers_can_take_blocks_nobody(world: World) -> None:
    await old_is_full_and_closed(world)
    await comes(world, "p", "ann", "bob", "carl")
    await world.waits("dora")
    assert (await world.tick()).issued == 1
    assert await has_ticket(world, "dora", "ann") == [True, False]
    await world.pass_ms(301_000, polling=["ann", "bob", "carl"], issue=100)
    assert (await has_ticket(world, "ann", "bob", "carl")).count(True) == 2
    await invariants(world)


async def test_a_party_larger_than_the_limit_leaves_open_servers_blocks_nobody(world: World) -> None:
    await old_is_full_and_closed(world)
    await world.report("new", cap=10)
    await world.mode(limit="6")
    await comes(world, "p", "ann", "bob", "carl")
    await world.waits("dora")
    assert (await world.tick()).issued == 1
    assert await has_ticket(world, "dora", "ann") == [True, False]
    await world.mode(limit="7")
    assert (await world.tick()).issued == 0, "now it can, once there is room: nobody overtakes it"
    await world.mode(limit="8")
    assert (await world.tick()).issued == 3


async def test_a_party_may_overdraw_the_rate_and_the_rate_is_kept_in_the_long_run(world: World) -> None:
    await world.mode(rate="2")
    await comes(world, "p", "ann", "bob", "carl")
    await world.report(cap=100)
    assert (await world.tick()).issued == 3
    users = await world.crowd(30)
    issued = sum(ticked.issued for ticked in await world.pass_ms(10_000, polling=users, issue=100))
    assert 18 <= issued + 3 - 2 <= 21


async def test_a_thousand_members_of_incomplete_parties_hide_nobody_for_ever(world: World) -> None:
    for number in range(60):
        await world.waits(f"half{number}", party=f"p{number}", size=2)
    await world.waits("solo")
    await world.report(cap=100)
    ticked = await world.tick(scan_limit=50)
    assert (ticked.issued, ticked.more) == (0, 1), "they fill the scan: the next one goes on behind them"
    ticked = await world.tick(scan_limit=50)
    assert (ticked.issued, ticked.more) == (1, 0), "and there the line ends"
    assert await has_ticket(world, "solo", "half0") == [True, False]
    await world.waits("half0-mate", party="p0", size=2)
    ticks = [await world.tick(scan_limit=50) for _ in range(2)]
    assert [tick.issued for tick in ticks] == [2, 0]


async def test_a_party_at_the_edge_of_a_scan_is_seen_whole(world: World) -> None:
    for number in range(8):
        await world.waits(f"half{number}", party=f"p{number}", size=2)
    await comes(world, "whole", "ann", "bob", "carl")
    await world.report(cap=100)
    issued = [(await world.tick(scan_limit=10)).issued for _ in range(3)]
    assert sum(issued) == 3
    assert await has_ticket(world, "ann", "bob", "carl") == [True, True, True]


async def test_a_party_takes_no_more_than_its_size(world: World) -> None:
    """Somebody signed for a party that is complete gets a place of their own, behind the line."""
    await comes(world, "p", "ann", "bob", size=2)
    await world.waits("dan")
    await world.waits("eve", party="p", size=2)
    assert await world.line_of() == ["ann", "bob", "dan", "eve"]
    await world.report(cap=10)
    assert (await world.tick()).issued == 4, "and waits for nobody"


async def test_a_member_who_left_and_comes_again_gets_no_old_place(world: World) -> None:
    await comes(world, "p", "ann", "bob", size=2)
    await world.waits("dan")
    await world.leave("ann")
    await world.leave("bob")
    await comes(world, "p", "ann", "bob", size=2)
    assert (await world.line_of())[0] == "dan"


async def test_who_comes_again_after_their_party_went_in_is_not_stuck(world: World) -> None:
    await comes(world, "p", "ann", "bob", "carl")
    await world.leave("carl")
    await world.report(cap=10)
    assert (await world.tick()).issued == 2
    await world.waits("carl", party="p", size=3)
    await world.pass_ms(301_000, polling=["carl"], issue=100)
    assert await has_ticket(world, "carl") == [True]


async def test_whom_a_crash_threw_out_comes_back_without_the_party(world: World) -> None:
    await comes(world, "p", "ann", "bob")
    await world.report(cap=2)
    await world.tick()
    await world.goes_in("ann")
    await world.drop()
    await world.report("s2", cap=2)
    await world.mode("queue-all")
    await world.waits("ann", party="p", size=2)
    assert (await world.tick()).issued == 1
    assert await has_ticket(world, "ann") == [True]
