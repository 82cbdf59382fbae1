"""A server's end: its users are placed on their next request, and eagerly by the leader."""

from __future__ import annotations

from roost.binding.scripts import Buried, Deposed, Placed, Replaced
from roost.core.owner import Owner
from tests.store.binding.town import Town, invariants


async def town_of_ten(town: Town) -> Owner:
    owner = await town.opens("s1")
    for number in range(10):
        await town.bind(f"u{number}", owner)
    return owner


async def test_a_buried_life_holds_nobody_any_more(any_town: Town) -> None:
    await town_of_ten(any_town)
    await any_town.opens("s2")

    assert await any_town.bury("s1") == Buried(10)

    placed = await any_town.placed("u3")
    assert (placed.server_id, placed.why) == ("s2", "failover")
    await invariants(any_town)


async def test_the_leader_places_the_others_a_few_at_a_time(town: Town) -> None:
    owner = await town_of_ten(town)
    await town.opens("s2")
    await town.opens("s3")
    await town.bury("s1")
    ticked = await town.tick()
    assert ticked.orphans == ["entity:s1:7"]  # type: ignore[union-attr]

    assert await town.replace(count=4) == Replaced(4, 6)
    assert await town.replace(count=4) == Replaced(4, 2)
    assert await town.replace(count=4) == Replaced(2, 0)

    state = await invariants(town)
    assert sorted(len(users) for users in state.binders.values()) == [5, 5]
    assert await town.binders(owner) == []
    ticked = await town.tick()
    assert ticked.orphans == []  # type: ignore[union-attr]


async def test_whom_nobody_takes_stays_and_is_placed_on_the_next_request(town: Town) -> None:
    await town_of_ten(town)
    await town.opens("s2", cap=3)
    await town.bury("s1")

    assert await town.replace() == Replaced(3, 7)
    assert await town.replace() == Replaced(0, 7)

    await town.beat("s2", cap=20)
    assert isinstance(await town.resolve("u9"), Placed)
    assert await town.replace() == Replaced(6, 0)
    await invariants(town)


async def test_a_seat_that_a_move_had_taken_on_the_ended_server_goes_with_the_move(town: Town) -> None:
    target = await town.opens("s1")
    owner = await town.opens("s2")
    was = await town.bind("ann", owner)
    await town.marks("ann", target, left_ms=800, next_epoch=was.epoch + 1)  # type: ignore[union-attr]
    await town.bury("s1")

    assert await town.replace() == Replaced(0, 1)
    await town.pass_ms(1000, beating=[("s2", 7)])
    await town.placed("ann")
    assert await town.replace() == Replaced(0, 0)
    await invariants(town)


async def test_they_are_placed_on_servers_of_the_right_version_alone(town: Town) -> None:
    await town_of_ten(town)
    await town.opens("s2", version="1")
    right = await town.opens("s3", version="2")
    await town.bury("s1")

    assert await town.replace(version="3") == Replaced(0, 10)
    assert await town.replace(version="2") == Replaced(10, 0)
    assert len(await town.binders(right)) == 10


async def test_only_the_leader_places(town: Town) -> None:
    await town_of_ten(town)
    await town.opens("s2")
    await town.bury("s1")

    assert await town.replace(holder="other") == Deposed()
    assert await town.replace(count=100) == Replaced(10, 0)


async def test_a_restarted_server_serves_again_and_its_old_life_does_not(town: Town) -> None:
    old = await town.opens("s1", 7)
    was = await town.bind("ann", old)
    new = await town.opens("s1", 8)

    placed = await town.placed("ann")

    assert (placed.owner, placed.why) == (new, "failover")
    assert placed.epoch > was.epoch  # type: ignore[union-attr]
    assert await town.binders(old) == []
    state = await invariants(town)
    assert state.servers["entity:s1"][0] == "8"
