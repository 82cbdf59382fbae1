"""get.lua: one instance, living or gone."""

from __future__ import annotations

import msgspec
import pytest

from roost.discovery.model import instance_of
from roost.discovery.scripts import Found, Gone, Unknown
from tests.store.discovery.fleet import T0, Fleet


async def test_a_living_instance_is_found_with_its_order_and_history(any_fleet: Fleet) -> None:
    life = await any_fleet.add("a", server_id="501", load=3)
    await any_fleet.override("a", b'{"drain":true}', "drain")

    found = await any_fleet.scripts.get(id="a")

    assert isinstance(found, Found)
    assert msgspec.json.decode(found.record)["serverId"] == "501"
    assert found.history == [f"{T0}\tadded\t{life}\tready", f"{T0}\toverride\t{life}\tdrain"]
    instance = instance_of("a", found)
    assert (instance.load, instance.life, instance.accepting) == (3, str(life), False)


@pytest.mark.parametrize("cause", ["terminated", "removed"])
async def test_a_removed_instance_is_gone_with_its_cause(any_fleet: Fleet, cause: str) -> None:
    life = await any_fleet.add("a")
    await any_fleet.remove("a", cause=cause)
    assert await any_fleet.scripts.get(id="a") == Gone(
        cause,
        life,
        T0 // 1000,
        "game:eu",
        [f"{T0}\tadded\t{life}\tready", f"{T0}\tremoved\t{life}\t{cause}"],
    )


async def test_a_dead_instance_is_gone_without_a_response(fleet: Fleet) -> None:
    await fleet.add("a")
    await fleet.pass_time(30)
    found = await fleet.scripts.get(id="a")
    assert isinstance(found, Gone)
    assert (found.cause, found.at_ms) == ("no-response", T0 // 1000 + 30_000)


async def test_nobody_knows_who_was_never_there(fleet: Fleet) -> None:
    assert await fleet.scripts.get(id="a") == Unknown()


async def test_an_instance_whose_record_is_lost_is_unknown(fleet: Fleet) -> None:
    """Damage by hand, until the repair ends it."""
    await fleet.add("a")
    await fleet.damage("HDEL", "records", "a", service="game:eu")
    assert await fleet.scripts.get(id="a") == Unknown()
