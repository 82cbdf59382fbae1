"""The bindings as their users call them, over one partition and over several on a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from roost.api.discovery import Change
from roost.binding.model import BindingChange
from roost.binding.partition import JournalAnswer, JournalEntry, Kept, Lost
from roost.binding.scripts import (
    Beaten,
    Bound,
    Committed,
    Frozen,
    NoServer,
    NotOwner,
    Placed,
    Released,
    Renewed,
    Repaired,
)
from roost.binding.service import Bindings
from roost.binding.settings import BindingSettings
from roost.core.errors import InvalidId, InvalidInput, StoreRefused, Unavailable
from roost.core.events import Gap
from roost.core.owner import Owner
from roost.store.keys.binding import partition_keys
from roost.store.store import Store
from tests.store.binding.town import Town

S1, S2 = Owner("s1", "7"), Owner("s2", "7")


class Nobody:
    async def watch(self, type: str, group: str, /) -> AsyncIterator[Change]:  # noqa: A002
        return
        yield


class Always:
    """A strategy that has made up its mind."""

    def __init__(self, *owners: Owner | None) -> None:
        self.owners = list(owners)
        self.asked: list[tuple[str, str]] = []

    async def choose(self, type: str, user: str, /) -> Owner | None:  # noqa: A002
        self.asked.append((type, user))
        return self.owners.pop(0)


async def bindings_of(store: Store, *owners: Owner, partitions: int = 1, capacity: int = 0) -> Bindings:
    """Bindings with these servers open in every partition."""
    bindings = Bindings(store, BindingSettings(partitions=partitions), Nobody())
    for owner in owners:
        await opens(store, bindings, owner, capacity=capacity)
    return bindings


async def opens(
    store: Store, bindings: Bindings, owner: Owner, *, capacity: int = 0, version: str = ""
) -> None:
    for partition in bindings.partitions:
        town = Town(store, partition.number)
        await town.lead()
        key = town.key("partition")
        now = await store.call("TIME", key=key)
        town.now = int(now[0]) * 1_000_000 + int(now[1])
        await town.sync((owner.server_id, int(owner.life), "1"))
        answer = await bindings.beat(
            "entity", owner, capacity=capacity, version=version, partition=partition.number
        )
        assert answer == Beaten(6000)


async def test_a_user_has_a_home_from_the_first_request_to_the_release(any_store: Store) -> None:
    bindings = await bindings_of(any_store, S1)

    assert await bindings.read("entity", "ann") is None
    placed = await bindings.resolve("entity", "ann")
    assert isinstance(placed, Placed)
    assert await bindings.resolve("entity", "ann") == Bound("s1", "7", placed.epoch, 0)
    record = await bindings.read("entity", "ann")
    assert record is not None
    assert (record.owner, record.epoch, record.state, record.why) == (S1, placed.epoch, "A", "new")

    renewed = await bindings.renew("entity", "ann", S1, above=placed.epoch)
    assert isinstance(renewed, Renewed)
    assert isinstance(await bindings.release("entity", "ann", S1, placed.epoch), NotOwner)
    assert await bindings.release("entity", "ann", S1, renewed.epoch) == Released()


async def test_what_a_wiped_store_forgot_is_restored_by_the_owner(store: Store) -> None:
    bindings = await bindings_of(store, S1, S2)
    placed = await bindings.bind("entity", "ann", S1)
    assert isinstance(placed, Placed)
    for key in await Town(store).copy():
        await store.call("DEL", key, key=key)
    await opens(store, bindings, S1)
    await opens(store, bindings, S2)
    other = await bindings.bind("entity", "bob", S2)
    assert isinstance(other, Placed)

    answers = await bindings.reassert("entity", S1, [("ann", placed.epoch), ("bob", other.epoch - 1)])

    assert answers[0] == Kept("ann", placed.epoch)
    assert isinstance(answers[1], Lost)
    assert answers[1].record is not None
    assert answers[1].record.owner == S2
    repaired = await bindings.repair("entity", "bob", S2, other.epoch, S1, above=other.epoch)
    assert isinstance(repaired, Repaired)


async def test_an_operator_takes_a_user_away(store: Store) -> None:
    bindings = await bindings_of(store, S1)
    await bindings.resolve("entity", "ann")

    taken = await bindings.unbind("entity", "ann")

    assert taken is not None
    assert taken.owner == S1
    left = await bindings.read("entity", "ann")
    assert left is not None
    assert (left.owner, left.why) == (None, "unbound")
    assert await bindings.unbind("entity", "ann") is None
    assert await bindings.unbind("entity", "nobody") is None


async def test_whoever_is_on_the_move_is_taken_away_when_the_mark_is_over(store: Store) -> None:
    bindings = await bindings_of(store, S1, S2)
    was = await bindings.resolve("entity", "ann")
    assert isinstance(was, Placed)
    to = S2 if was.owner == S1 else S1
    await bindings.freeze("entity", "ann", was.owner, was.epoch, "m1", to, ttl_ms=5000)

    with pytest.raises(Unavailable, match="on the move"):
        await bindings.unbind("entity", "ann")

    [partition] = bindings.partitions
    key = partition_keys(store.keys, partition.scope)["partition"]
    await store.call("HINCRBY", key, "clock_ms", 5001, key=key)
    taken = await bindings.unbind("entity", "ann")
    assert taken is not None
    assert (taken.owner, taken.state) == (was.owner, "A")
    left = await bindings.read("entity", "ann")
    assert left is not None
    assert (left.owner, left.why) == (None, "unbound")


async def test_whoever_was_on_the_move_from_a_dead_server_is_taken_away_though_nobody_takes_users(
    store: Store,
) -> None:
    bindings = await bindings_of(store, S1, S2)
    was = await bindings.resolve("entity", "ann")
    assert isinstance(was, Placed)
    to = S2 if was.owner == S1 else S1
    frozen = await bindings.freeze("entity", "ann", was.owner, was.epoch, "m1", to, ttl_ms=60_000)
    assert isinstance(frozen, Frozen)
    for server in (S1, S2):
        await bindings.bury("entity", server)

    with pytest.raises(Unavailable, match="on the move"):
        await bindings.unbind("entity", "ann")

    [partition] = bindings.partitions
    key = partition_keys(store.keys, partition.scope)["partition"]
    await store.call("HINCRBY", key, "clock_ms", 60_001, key=key)
    taken = await bindings.unbind("entity", "ann")
    assert taken is not None
    assert (taken.owner, taken.state) == (was.owner, "M")
    left = await bindings.read("entity", "ann")
    assert left is not None
    assert (left.owner, left.state, left.why) == (None, "R", "unbound")
    late = await bindings.commit("entity", "ann", "m1", to, frozen.epoch)
    assert not isinstance(late, Committed)


async def test_whoever_changes_hands_all_the_time_is_taken_from_nobody(store: Store) -> None:
    bindings = await bindings_of(store, S1)
    await bindings.resolve("entity", "ann")
    [partition] = bindings.partitions
    release = partition.release

    async def is_late(type_: str, user: str, owner: Owner, epoch: int, **more: Any) -> Released | NotOwner:
        return await release(type_, user, owner, epoch - 1, **more)

    partition.release = is_late  # type: ignore[method-assign]
    with pytest.raises(Unavailable):
        await bindings.unbind("entity", "ann")


async def test_a_strategy_chooses_and_the_store_steps_in_where_it_fails(store: Store) -> None:
    always = Always(S2, Owner("s9", "1"), None)
    await bindings_of(store, S1, S2)
    bindings = Bindings(store, BindingSettings(strategy="consistent_hash"), Nobody(), chooser=always)

    first = await bindings.resolve("entity", "ann")
    assert isinstance(first, Placed)
    assert first.owner == S2
    assert isinstance(await bindings.resolve("entity", "ann"), Bound)
    assert isinstance(await bindings.resolve("entity", "bob"), Placed), "the chosen one is not there"
    assert isinstance(await bindings.resolve("entity", "cy"), Placed), "nobody was chosen"
    assert always.asked == [("entity", "ann"), ("entity", "bob"), ("entity", "cy")]


async def test_whoever_has_no_home_is_placed_on_the_version_of_the_settings(store: Store) -> None:
    before = await bindings_of(store, S1)
    was = await before.resolve("entity", "ann")
    assert isinstance(was, Placed)
    settings, always = BindingSettings(versions="entity=2.0", strategy="consistent_hash"), Always(S1, S1)
    chosen = Bindings(store, settings, Nobody(), chooser=always)

    assert await chosen.resolve("entity", "ann") == Bound(*S1, was.epoch, 0), "who has a home keeps it"
    assert await chosen.resolve("entity", "bob") == NoServer("version")
    await opens(store, before, S2, version="2.0")
    placed = await chosen.resolve("entity", "bob")
    assert isinstance(placed, Placed)
    assert placed.owner == S2, "the strategy's choice has another version"


async def test_users_spread_over_partitions_and_each_server_is_counted_once(any_store: Store) -> None:
    bindings = await bindings_of(any_store, S1, S2, partitions=4, capacity=100)
    users = [f"u{number}" for number in range(60)]

    answers = await asyncio.gather(*(bindings.resolve("entity", user) for user in users))

    assert all(isinstance(answer, Placed) for answer in answers)
    assert {bindings.partition_of("entity", user) for user in users} == {0, 1, 2, 3}
    rows = await bindings.servers("entity")
    assert [(row.server_id, row.capacity, row.accepting) for row in rows] == [
        ("s1", 100, True),
        ("s2", 100, True),
    ]
    assert sum(row.users for row in rows) == 60
    found = [
        user
        for owner in (S1, S2)
        for partition in range(4)
        for user in await bindings.binders("entity", owner, count=100, partition=partition)
    ]
    assert sorted(found) == sorted(users)


async def test_pages_of_a_servers_users_follow_each_other(store: Store) -> None:
    bindings = await bindings_of(store, S1)
    users = [f"u{number:02}" for number in range(25)]
    await asyncio.gather(*(bindings.resolve("entity", user) for user in users))

    first = await bindings.binders("entity", S1, count=10)
    second = await bindings.binders("entity", S1, first[-1], count=10)
    third = await bindings.binders("entity", S1, second[-1], count=10)

    assert [*first, *second, *third] == users


async def test_whoever_follows_hears_a_gap_first_and_then_every_change(any_store: Store) -> None:
    bindings = await bindings_of(any_store, S1, partitions=2)
    await bindings.resolve("entity", "before")
    user = next(u for u in map(str, range(99)) if bindings.partition_of("entity", u) == 1)

    async with asyncio.timeout(10), aclosing(bindings.follow(1)) as changes:  # type: ignore[type-var]
        assert isinstance(await anext(changes), Gap)
        placed = await bindings.resolve("entity", user)
        assert isinstance(placed, Placed)
        change = await anext(changes)
        await bindings.release("entity", user, S1, placed.epoch)
        released = await anext(changes)

    assert isinstance(change, BindingChange)
    assert change[:6] == ("entity", user, S1, placed.epoch, "new", None)
    assert isinstance(released, BindingChange)
    assert released[:6] == ("entity", user, None, placed.epoch, "released", S1)


async def test_a_journal_is_read_from_where_the_database_ends(store: Store) -> None:
    bindings = await bindings_of(store, S1)
    placed = await bindings.resolve("entity", "ann")
    assert isinstance(placed, Placed)
    epoch = placed.epoch

    answers = await bindings.append(
        "entity", 0, [("ann", epoch, n, f"m{n}".encode()) for n in range(1, 5)] + [("ann", 1, 5, b"")]
    )

    assert answers == [JournalAnswer.OK] * 4 + [JournalAnswer.FENCED]
    assert [bool(answer) for answer in answers] == [True] * 4 + [False]
    assert await bindings.read_journal("entity", "ann", 2) == [
        JournalEntry("ann", epoch, 3, b"m3"),
        JournalEntry("ann", epoch, 4, b"m4"),
    ]
    assert await bindings.trim("entity", "ann", 4) == 3
    assert await bindings.read_journal("entity", "ann", 4) == []


async def test_a_long_journal_is_read_in_pages(store: Store) -> None:
    bindings = await bindings_of(store, S1)
    placed = await bindings.resolve("entity", "ann")
    assert isinstance(placed, Placed)
    for first in range(1, 1201, 400):
        batch = [("ann", placed.epoch, n, b"x") for n in range(first, first + 400)]
        assert all(await bindings.append("entity", 0, batch))
    assert [entry.sequence for entry in await bindings.read_journal("entity", "ann", 0)] == list(
        range(1, 1201)
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda b: b.read("entity", "a{b}"),
        lambda b: b.read("en:tity", "ann"),
        lambda b: b.resolve("entity", ""),
        lambda b: b.resolve("entity", "x" * 129),
        lambda b: b.resolve("entity", "ann", seen=-1),
        lambda b: b.resolve("entity", "ann", seen=2**60),
        lambda b: b.bind("entity", "ann", Owner("s:1", "7")),
        lambda b: b.bind("entity", "ann", Owner("s1", "x")),
        lambda b: b.renew("entity", "ann", S1, above=2**53),
        lambda b: b.reassert("entity", S1, [("ann", 1)] * 501),
        lambda b: b.beat("entity", S1, capacity=-1),
        lambda b: b.beat("entity", S1, capacity=1, partition=1),
        lambda b: b.append("entity", 0, [("ann", 1, 0, b"")]),
        lambda b: b.append("entity", 0, [("ann", 1, 1, b"")] * 501),
        lambda b: b.trim("entity", "ann", -1),
    ],
)
async def test_bad_input_is_refused_before_it_reaches_the_store(store: Store, call: object) -> None:
    bindings = await bindings_of(store)
    with pytest.raises((InvalidInput, InvalidId)):
        await call(bindings)  # type: ignore[operator]
    assert await Town(store).copy() == {}


async def test_nobody_takes_them_on_an_empty_store(store: Store) -> None:
    assert await (await bindings_of(store)).resolve("entity", "ann") == NoServer("none registered")


async def test_moves_of_one_turn_are_one_call_and_a_bad_record_fails_nobody_else(town: Town) -> None:
    store = town.store
    bindings = await bindings_of(store, S1, S2)
    placed = [await bindings.bind("entity", user, S1) for user in ("ann", "bob", "cat")]
    epochs = [answer.epoch for answer in placed if isinstance(answer, Placed)]
    words = store.library.scripts["binding", "freeze"].stats.words
    before = words["FREEZES"]

    asked = [
        bindings.freeze("entity", user, S1, epoch, f"m-{user}", S2, ttl_ms=3000)
        for user, epoch in zip(("ann", "bob", "cat"), epochs, strict=True)
    ]
    frozen = [answer.epoch for answer in await asyncio.gather(*asked) if isinstance(answer, Frozen)]
    assert len(frozen) == 3
    assert words["FREEZES"] == before + 1

    await store.call("DEL", town.user_key("bob"))
    await store.call("SET", town.user_key("bob"), "no record")
    moved = await asyncio.gather(
        *(
            bindings.commit("entity", user, f"m-{user}", S2, epoch)
            for user, epoch in zip(("ann", "bob", "cat"), frozen, strict=True)
        ),
        return_exceptions=True,
    )
    assert isinstance(moved[1], StoreRefused)
    assert (moved[0], moved[2]) == (Committed(), Committed())
