"""Acknowledged messages survive their server: appended under the epoch of the binding, or not at all."""

from __future__ import annotations

from roost.core.owner import Owner
from roost.store.store import Store
from tests.store.binding.town import TYPE, Town


async def entries(town: Town, user: str = "ann") -> list[tuple[str, bytes]]:
    key = town.key("journal") + f"{TYPE}:{user}".encode()
    found = await town.store.call("XRANGE", key, "-", "+", key=key)
    return [(entry.decode(), fields[3]) for entry, fields in found]


async def ttl(store: Store, town: Town) -> int:
    key = town.key("journal") + f"{TYPE}:ann".encode()
    return int(await store.call("TTL", key, key=key))


async def test_messages_of_many_users_are_appended_in_one_call(any_town: Town) -> None:
    await any_town.opens("s1")
    ann, bob = await any_town.placed("ann"), await any_town.placed("bob")

    answers = await any_town.append(
        ("ann", ann.epoch, 1, b"a1"), ("bob", bob.epoch, 1, b"b1"), ("ann", ann.epoch, 2, b"\x00\xff")
    )

    assert answers == ["ok", "ok", "ok"]
    assert await entries(any_town) == [("1-0", b"a1"), ("2-0", b"\x00\xff")]
    assert await entries(any_town, "bob") == [("1-0", b"b1")]


async def test_an_owner_of_an_older_epoch_is_fenced(town: Town) -> None:
    """A message that was paused in mid-handler must not slip in behind the new owner's replay."""
    await town.opens("s1")
    was = await town.placed("ann")
    await town.append(("ann", was.epoch, 1, b"1"))
    await town.opens("s2")
    await town.bury("s1")
    now = await town.placed("ann")

    assert await town.append(("ann", was.epoch, 2, b"late")) == ["fenced"]
    assert await town.append(("ann", now.epoch, 2, b"2"), ("nobody", 1, 1, b"")) == ["ok", "fenced"]
    assert await entries(town) == [("1-0", b"1"), ("2-0", b"2")]


async def test_a_released_user_has_no_owner_to_append(town: Town) -> None:
    owner = await town.opens("s1")
    was = await town.placed("ann")
    await town.release("ann", owner, was.epoch)
    assert await town.append(("ann", was.epoch, 1, b"1")) == ["fenced"]


async def test_what_is_there_is_not_written_twice(town: Town) -> None:
    await town.opens("s1")
    was = await town.placed("ann")
    for _ in range(2):
        assert await town.append(("ann", was.epoch, 1, b"1"), ("ann", was.epoch, 2, b"2")) == ["ok", "ok"]
    assert len(await entries(town)) == 2


async def test_a_journal_that_lost_its_tail_is_told_from_one_that_has_it(town: Town) -> None:
    await town.opens("s1")
    was = await town.placed("ann")
    await town.append(("ann", was.epoch, 1, b"1"))
    replica = await town.copy()
    assert await town.append(("ann", was.epoch, 2, b"2", 1)) == ["ok"]
    await town.fails_over_to(replica)

    assert await town.append(("ann", was.epoch, 3, b"3", 2)) == ["behind"]
    assert await town.append(("ann", was.epoch, 2, b"2", 1), ("ann", was.epoch, 3, b"3", 2)) == ["ok", "ok"]
    assert [id_ for id_, _ in await entries(town)] == ["1-0", "2-0", "3-0"]


async def test_what_the_database_has_is_trimmed_and_the_end_stays(town: Town) -> None:
    await town.opens("s1")
    was = await town.placed("ann")
    await town.append(*(("ann", was.epoch, n, b"") for n in range(1, 6)))

    assert (await town.scripts.trim(type=TYPE, user="ann", up_to=3)).count == 3
    assert [id_ for id_, _ in await entries(town)] == ["4-0", "5-0"]
    assert await ttl(town.store, town) == -1

    assert (await town.scripts.trim(type=TYPE, user="ann", up_to=9)).count == 1
    assert [id_ for id_, _ in await entries(town)] == ["5-0"]
    assert await ttl(town.store, town) == 86_400

    assert await town.append(("ann", was.epoch, 6, b"", 5)) == ["ok"]
    assert await ttl(town.store, town) == -1, "a journal that the database lacks never expires"
    assert (await town.scripts.trim(type=TYPE, user="nobody", up_to=3)).count == 0


async def test_a_user_on_the_move_is_still_appended_for(town: Town) -> None:
    owner, target = await town.opens("s1"), await town.opens("s2")
    was = await town.bind("ann", owner)
    epoch = was.epoch  # type: ignore[union-attr]
    await town.marks("ann", Owner(*target), left_ms=900, next_epoch=epoch + 1)
    assert await town.append(("ann", epoch, 1, b"1")) == ["ok"]
