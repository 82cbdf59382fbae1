"""override.lua: an operator's order is kept apart from the instance and outlives its lives."""

from __future__ import annotations

from roost.api.discovery import Override
from roost.discovery.model import encode, instances_of
from roost.discovery.scripts import Drain, Ok, Overridden, Unknown
from tests.store.discovery.fleet import Fleet, invariants

DRAIN = encode(Override(drain=True))


async def orders(fleet: Fleet) -> dict[str, Override | None]:
    return {i.instance_id: i.override for i in instances_of(await fleet.snapshot())}


async def test_an_order_is_kept_under_the_server_id(any_fleet: Fleet) -> None:
    await any_fleet.add("a", server_id="501")
    assert await any_fleet.override("a", DRAIN, "drain") == Overridden("game:501")
    assert await orders(any_fleet) == {"a": Override(drain=True)}
    assert await any_fleet.told() == [("added", "a", "ready"), ("changed", "a", "drain")]
    assert (await any_fleet.feed())[-1].fields["override"] == DRAIN.decode()
    assert await any_fleet.history("a") == [("added", "ready"), ("override", "drain")]
    await invariants(any_fleet.store)


async def test_without_a_server_id_it_is_kept_under_the_id(fleet: Fleet) -> None:
    await fleet.add("a")
    assert await fleet.override("a", DRAIN) == Overridden("a")
    assert await orders(fleet) == {"a": Override(drain=True)}


async def test_it_survives_a_new_registration_under_the_same_server_id(fleet: Fleet) -> None:
    await fleet.add("a", server_id="501")
    await fleet.override("a", DRAIN)
    await fleet.remove("a")
    await fleet.add("b", server_id="501")

    assert await fleet.beat("b") == Drain()
    assert await orders(fleet) == {"b": Override(drain=True)}
    assert (await fleet.feed())[-1].fields["override"] == DRAIN.decode()


async def test_a_drain_that_was_ordered_for_one_life_is_over_with_it(any_fleet: Fleet) -> None:
    life = await any_fleet.add("a", server_id="501")
    ordered = Override(drain=True, weight=5, drain_life=str(life))
    await any_fleet.override("a", encode(ordered))
    assert await any_fleet.beat("a") == Drain()
    assert await orders(any_fleet) == {"a": ordered}

    await any_fleet.remove("a")
    await any_fleet.add("b", server_id="501")
    assert await any_fleet.beat("b") == Ok()
    assert await orders(any_fleet) == {"b": Override(weight=5)}


async def test_a_drain_for_one_life_holds_for_the_next_of_the_same_process(any_fleet: Fleet) -> None:
    """It was frozen for longer than its lease and registers again by itself: it must not take users again."""
    life = await any_fleet.add("a", server_id="501")
    await any_fleet.override("a", encode(Override(drain=True, weight=5, drain_life=str(life))))
    for _ in range(2):
        await any_fleet.die("a", life)
        life = await any_fleet.add("a", server_id="501", former_life=life)

        ordered = Override(drain=True, weight=5, drain_life=str(life))
        assert await any_fleet.beat("a") == Drain()
        assert await orders(any_fleet) == {"a": ordered}
        assert (await any_fleet.feed())[-1].fields["override"] == encode(ordered).decode()
    await invariants(any_fleet.store)


async def test_a_drain_for_another_life_than_the_former_is_left_as_it_is(fleet: Fleet) -> None:
    first = await fleet.add("a", server_id="501")
    await fleet.override("a", encode(Override(drain=True, drain_life=str(first))))
    await fleet.remove("a")
    second = await fleet.add("a", server_id="501")
    await fleet.die("a", second)
    await fleet.add("a", server_id="501", former_life=second)
    assert await fleet.beat("a") == Ok()


async def test_it_survives_death_and_return_of_an_instance_without_a_server_id(fleet: Fleet) -> None:
    life = await fleet.add("a")
    await fleet.override("a", DRAIN)
    await fleet.die("a", life)
    await fleet.add("a", former_life=life)
    assert await fleet.beat("a") == Drain()


async def test_it_does_not_touch_the_same_server_id_of_another_type(fleet: Fleet) -> None:
    await fleet.add("a", server_id="501")
    await fleet.add("b", server_id="501", type="gate")
    await fleet.override("a", DRAIN)
    assert await fleet.beat("b") == Ok()
    assert await orders(fleet) == {"a": Override(drain=True), "b": None}


async def test_an_empty_order_lifts_it(fleet: Fleet) -> None:
    await fleet.add("a")
    await fleet.override("a", DRAIN)
    assert await fleet.override("a", b"", "lifted") == Overridden("a")
    assert await orders(fleet) == {"a": None}
    assert await fleet.beat("a") == Ok()


async def test_a_new_order_takes_the_place_of_the_old(fleet: Fleet) -> None:
    await fleet.add("a")
    await fleet.override("a", DRAIN)
    await fleet.override("a", encode(Override(weight=5)))
    assert await orders(fleet) == {"a": Override(weight=5)}


async def test_nobody_can_order_what_nobody_knows(fleet: Fleet) -> None:
    assert await fleet.override("a", DRAIN) == Unknown()
    await fleet.add("a")
    await fleet.remove("a")
    assert await fleet.override("a", DRAIN) == Unknown()
    assert len(await fleet.feed()) == 2


async def test_an_order_says_nothing_of_life(fleet: Fleet) -> None:
    await fleet.add("a")
    lease = (await invariants(fleet.store)).leases["a"]
    await fleet.pass_time(5)
    await fleet.override("a", DRAIN)
    assert (await invariants(fleet.store)).leases["a"] == lease
