"""Entity servers and what a move left in the map: marks that nobody carries on, parties that are split."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from roost.binding.scripts import Frozen
from roost.core.errors import Unavailable
from roost.sdk.entity import Durability, Now, WriteBack
from roost.store.store import Store
from roost.testing import eventually
from tests.entity.town import TYPE, Counter, Town, open_town


@pytest.fixture
async def town(store: Store, tmp_path: Path) -> AsyncIterator[Town]:
    async with open_town(store, tmp_path) as town:
        yield town


class Member(Counter):
    durability: ClassVar[Durability] = WriteBack(ms=60_000)

    def can_move(self) -> Now:
        return Now(party="red")


async def test_a_user_in_doubt_is_not_released(town: Town) -> None:
    """The store went away with the answer of a freeze: the map has a mark, which only a claim ends."""
    a, b = await town.open("501", idle_seconds=3600.0), await town.open("502")
    await town.bind("ann", a)
    await a.result("ann")
    freeze = town.bindings.freeze

    async def freezes_and_is_away(*args: Any, **more: Any) -> Any:
        await freeze(*args, **more)
        a.link.is_cut = True
        raise Unavailable("the store does not answer")

    a.link.freeze = freezes_and_is_away  # type: ignore[attr-defined]
    assert await a.outcome(b, "ann") == "returned"
    session = a.host.sessions["ann"]
    assert session.in_doubt

    session.used_at -= 2 * 3600
    await a.host.release_idle()
    await eventually(lambda: not session.line.busy, "the release to have had its turn")
    a.link.is_cut = False

    await eventually(lambda: not session.in_doubt, "a claim")
    assert a.users == ["ann"]
    found = await town.bindings.read(TYPE, "ann")
    assert found is not None
    assert (found.owner, found.state) == (a.owner, "A")


async def test_whoever_is_not_in_memory_and_has_a_mark_that_expired_is_released(town: Town) -> None:
    a, b = await town.open("501"), await town.open("502")
    epoch = await town.bind("ann", a)
    frozen = await town.bindings.freeze(TYPE, "ann", a.owner, epoch, "m0", b.owner, ttl_ms=5000)
    assert isinstance(frozen, Frozen)
    assert await a.outcome(b, "ann") == "later", "the target may have committed, and say so again"
    marked = await town.bindings.read(TYPE, "ann")
    assert marked is not None
    assert (marked.epoch, marked.state) == (epoch, "M")
    await town.leases_end(b, beating=[a])

    assert await a.outcome(b, "ann") == "released"

    found = await town.bindings.read(TYPE, "ann")
    assert found is not None
    assert (found.owner, found.state) == (None, "R")
    assert found.epoch > frozen.epoch


async def test_by_force_one_of_a_party_goes_without_the_others(town: Town) -> None:
    """Who empties a server names all of a party that shall stay together: one alone has no room with them."""
    a, b = await town.open("501", Member), await town.open("502", Member)
    for user in ("ann", "bob"):
        await town.bind(user, a)
        await a.result(user)

    assert [report[:2] for report in await a.move(b, "bob", force=True)] == [["bob", "moved"]]

    assert (a.users, b.users) == (["ann"], ["bob"])


async def test_by_force_each_of_a_party_that_is_too_large_goes_alone_though_all_are_asked_for(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roost.servers.entity.moving.MOST_IN_PARTY", 2)
    a, b = await town.open("501", Member), await town.open("502", Member)
    party = ["ann", "bob", "cy"]
    for user in party:
        await town.bind(user, a)
        await a.result(user)

    assert {report[0]: report[1] for report in await a.move(b, *party, force=True)} == dict.fromkeys(
        party, "moved"
    )
