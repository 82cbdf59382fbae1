"""A shard's log: each entry names what it follows, the newest stays, and a takeover fences."""

from __future__ import annotations

import asyncio

import pytest

from roost.core.errors import StoreError
from roost.lanes import log as log_module
from roost.lanes.appending import APPENDED, Appended, Behind
from roost.lanes.commands import Batch, Method, encode
from roost.lanes.log import Log, NotLeading, Taken
from tests.store.lanes.hall import Hall
from tests.store.lanes.town import ShardTown

NUMBER = 3
HALT = (int(Method.HALT), 0, 0, b"x")


def batch(*commands: tuple[int, int, int, bytes]) -> bytes:
    return encode(Batch(1, 0, list(commands)))


async def appended(
    entries: Log, epoch: int, seq: int, *commands: tuple[int, int, int, bytes]
) -> Appended | Behind | StoreError:
    told: asyncio.Future[Appended | Behind | StoreError] = asyncio.get_running_loop().create_future()
    entries.append(epoch, seq, len(commands), batch(*commands), told.set_result)
    return await told


async def taken(town: ShardTown, entries: Log, holder: str, floor: int = 0) -> tuple[int, Taken]:
    leading = await town.lead(holder)
    found = await entries.take_over(holder, leading.epoch, floor, batch(HALT))
    assert isinstance(found, Taken)
    return leading.epoch, found


async def test_entries_follow_each_other_and_are_read_in_order(any_town: ShardTown) -> None:
    entries = Hall(any_town.store).log(NUMBER)
    epoch, first = await taken(any_town, entries, "a")

    assert await appended(entries, epoch, 2, HALT, HALT) is APPENDED
    assert await appended(entries, epoch, 4, HALT) is APPENDED

    read = [entry async for entry in entries.read()]
    assert first.seq == 1
    assert [(entry.epoch, entry.seq, entry.last_seq) for entry in read] == [
        (epoch, 1, 1),
        (epoch, 2, 3),
        (epoch, 4, 4),
    ]
    assert [entry.seq async for entry in entries.read(after_seq=2)] == [2, 4]


async def test_an_entry_of_one_command_is_not_taken_for_the_first_of_its_epoch(town: ShardTown) -> None:
    entries = Hall(town.store).log(NUMBER)
    epoch, _ = await taken(town, entries, "a")
    await appended(entries, epoch, 2, HALT)

    again = await Hall(town.store).log(NUMBER).take_over("a", epoch, 0, batch(HALT))

    assert again == Taken(3, 2, f"{epoch}-2:2")


async def test_an_append_after_a_hole_is_told_where_the_log_ends(town: ShardTown) -> None:
    entries = Hall(town.store).log(NUMBER)
    epoch, _ = await taken(town, entries, "a")
    await appended(entries, epoch, 2, HALT)
    kept = await town.raw("GET", "tail")
    await appended(entries, epoch, 3, HALT)
    await town.raw("SET", "tail", kept)  # as a replica that never heard of the last entry
    await town.raw("XDEL", "log", f"{epoch}-3")

    assert await appended(entries, epoch, 4, HALT) == Behind(kept.decode())
    assert [entry.seq async for entry in entries.read()] == [1, 2]


async def test_a_repeated_append_is_there_once(town: ShardTown) -> None:
    entries = Hall(town.store).log(NUMBER)
    epoch, _ = await taken(town, entries, "a")
    await appended(entries, epoch, 2, HALT)

    assert await entries.heal(None) == Appended()
    assert [entry.seq async for entry in entries.read()] == [1, 2]


async def test_an_entry_larger_than_the_memory_of_a_log_can_be_sent_again(
    town: ShardTown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "REMEMBERED_BYTES", 1)
    entries = Hall(town.store).log(NUMBER)
    epoch, _ = await taken(town, entries, "a")
    await appended(entries, epoch, 2, HALT)

    assert await entries.heal(None) == Appended()


async def test_nothing_is_appended_under_an_earlier_epoch(any_town: ShardTown) -> None:
    hall = Hall(any_town.store)
    old, new = hall.log(NUMBER), hall.log(NUMBER)
    epoch, _ = await taken(any_town, old, "a")
    await any_town.resign("a", epoch)
    later, marker = await taken(any_town, new, "b")

    assert isinstance(await appended(old, epoch, 2, HALT), Behind)
    assert isinstance(await old.take_over("a", epoch, 0, batch(HALT)), NotLeading)
    assert later > epoch
    assert [entry.epoch async for entry in new.read()] == [epoch, later]
    assert marker.seq == 2


async def test_the_stream_itself_refuses_an_earlier_epoch(town: ShardTown) -> None:
    """Also where the mark of the tail was lost."""
    hall = Hall(town.store)
    old, new = hall.log(NUMBER), hall.log(NUMBER)
    epoch, _ = await taken(town, old, "a")
    mark = await town.raw("GET", "tail")
    await town.resign("a", epoch)
    later, _ = await taken(town, new, "b")
    await town.raw("SET", "tail", mark)
    await town.raw("XTRIM", "log", "MAXLEN", 0)

    assert isinstance(await appended(old, epoch, 2, HALT), StoreError)
    assert later > epoch


async def test_a_repeated_takeover_says_the_same(town: ShardTown) -> None:
    hall = Hall(town.store)
    first, second = hall.log(NUMBER), hall.log(NUMBER)
    epoch, _ = await taken(town, first, "a")
    await appended(first, epoch, 2, HALT, HALT)
    await town.resign("a", epoch)
    later, found = await taken(town, second, "b", floor=9)

    again = await second.take_over("b", later, 9, batch(HALT))

    assert again == found == Taken(seq=10, last=3, previous=f"{epoch}-2:3")


async def test_trimming_keeps_the_newest_entry_and_what_is_above(town: ShardTown) -> None:
    entries = Hall(town.store).log(NUMBER)
    epoch, _ = await taken(town, entries, "a")
    for seq in (2, 4, 6):
        await appended(entries, epoch, seq, HALT, HALT)
    read = [entry.seq async for entry in entries.read()]

    await entries.trim(4)
    assert read == [1, 2, 4, 6]
    assert [entry.seq async for entry in entries.read()] == [4, 6]  # 5 is in it

    await entries.trim(100)
    assert [entry.seq async for entry in entries.read()] == [6]
    assert entries.first_seq == 6
