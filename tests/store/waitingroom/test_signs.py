"""The world's clock runs only while gateways sign, and tickets are issued only while somebody leads."""

from __future__ import annotations

from roost.core.lease import MAX_STEP_MS
from roost.waitingroom.scripts import Closed, Held, Offered, Waiting
from tests.store.waitingroom.world import GONE_MS, LATE_MS, SECOND, TICKET_MS, World, invariants


async def ticks_alone(world: World, seconds: int) -> None:
    """Managers tick, no gateway can be reached."""
    world.now += 2 * SECOND
    for _ in range(seconds):
        world.now += SECOND
        assert (await world.tick(is_heard=False)).issued == 0


async def test_while_no_gateway_signs_time_stands_and_nobody_loses_anything(any_world: World) -> None:
    world = any_world
    await world.report(cap=1)
    await world.gets_ticket("ann")
    await world.waits("bob")
    before = await world.number("clock_ms")

    await ticks_alone(world, (TICKET_MS + GONE_MS + LATE_MS) // 1000)

    assert await world.number("clock_ms") == before
    assert isinstance(await world.status("ann"), Offered)
    assert isinstance(await world.status("bob"), Waiting)
    await invariants(world)


async def test_nothing_is_issued_while_no_gateway_signs(world: World) -> None:
    await world.waits("ann")
    await world.report(cap=5)
    world.now += 3 * SECOND
    assert (await world.tick(is_heard=False)).issued == 0
    assert (await world.tick()).issued == 1


async def test_a_tick_between_two_signs_goes_on_issuing_and_loses_no_time(world: World) -> None:
    """Ticks may be more frequent than signs."""
    await world.crowd(3)
    await world.report(cap=5)
    await world.tick(0)
    before = await world.number("clock_ms")
    for _ in range(3):
        world.now += SECOND // 4
        assert (await world.tick(1, is_heard=False)).issued == 1
    world.now += SECOND // 4
    await world.tick(0)
    assert await world.number("clock_ms") == before + 1000


async def test_rate_and_party_waits_stand_with_the_clock(world: World) -> None:
    await world.waits("ann", party="p", size=2)
    await world.report(cap=5)
    await world.mode(rate="1")
    await ticks_alone(world, 400)
    assert (await world.tick(5)).issued == 0, "the party has not waited for five minutes"


async def test_after_a_silence_nobody_is_admitted_until_people_could_be_heard_again(world: World) -> None:
    """Else tickets would go to people who left while nobody could hear them."""
    await world.waits("gone")
    await world.waits("here")
    await world.report(cap=1)
    await ticks_alone(world, 60)

    ticked = await world.pass_ms(LATE_MS + 4000, issue=1, polling=["here"])

    assert [tick.issued for tick in ticked][:8] == [0] * 8
    assert await world.promoted() == ["here"]


async def test_a_leader_that_was_away_is_no_silence(world: World) -> None:
    await world.waits("ann")
    await world.report(cap=1)
    for _ in range(60):
        world.now += SECOND
        await world.touch()
    assert (await world.tick()).issued == 1


async def test_a_clock_that_goes_back_is_no_sign(world: World) -> None:
    await world.waits("ann")
    await world.report(cap=1)
    await world.tick(0)
    world.now -= 3600 * SECOND
    assert (await world.tick(is_heard=False)).issued == 0
    assert (await world.tick()).issued == 1


async def test_a_ticket_that_ends_after_a_standstill_is_no_no_show(world: World) -> None:
    await world.report(cap=5)
    await world.gets_ticket("ann")
    await ticks_alone(world, 5)
    await world.pass_ms(TICKET_MS + MAX_STEP_MS)
    assert (await world.number("expired"), await world.number("no_shows")) == (1, 0)


async def test_a_ticket_that_ends_while_no_open_server_had_room_is_no_no_show(world: World) -> None:
    """Closed for a moment and open again at its end: they may have been refused meanwhile."""
    await world.report(cap=5)
    await world.gets_ticket("ann")
    await world.shows(state="0")
    await world.pass_ms(2000)
    await world.shows(state="1")
    await world.pass_ms(TICKET_MS)
    assert (await world.number("expired"), await world.number("no_shows")) == (1, 0)


async def test_a_ticket_that_ends_while_there_was_room_is_a_no_show(world: World) -> None:
    await world.report(cap=5)
    await world.gets_ticket("ann")
    await world.pass_ms(TICKET_MS + 1000)
    assert (await world.number("expired"), await world.number("no_shows")) == (1, 1)


async def test_without_a_sign_of_a_leader_people_get_places_and_no_tickets(any_world: World) -> None:
    world = any_world
    await world.report(cap=5)
    await world.gets_ticket("ann")
    world.now += 11 * SECOND
    await world.waits("bob")
    await world.mode("off")
    assert await world.enter("cid") == Closed("off")


async def test_a_sign_of_a_leader_from_the_future_is_none(world: World) -> None:
    await world.report(cap=5)
    world.now -= 60 * SECOND
    await world.waits("ann")


async def test_a_held_place_stays_held_while_nobody_leads(world: World) -> None:
    await world.report(cap=5)
    await world.gets_ticket("ann")
    await world.goes_in("ann")
    await world.release("ann", "dropped")
    world.now += 11 * SECOND
    assert isinstance(await world.enter("ann"), Held)
    await invariants(world)
    await world.tick(0)
    await world.gets_ticket("ann")
