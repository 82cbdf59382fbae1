"""snapshot.lua: the state of a shard, written by its owner alone and never seen in halves."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping

import pytest

from roost.core.errors import InvalidInput
from roost.lanes.scripts import Fenced, OtherBase, Saved, Saving, Staged, Unstaged
from roost.lanes.snapshots import MAX_CALL_BYTES, Snapshot, Snapshots
from roost.store.store import Store
from roost.testing import RunningServer
from tests.store.examples import SEEDS, for_each
from tests.store.lanes.town import ShardTown


async def call(
    town: ShardTown,
    seq: int,
    parts: Mapping[str, bytes],
    *,
    epoch: int = 5,
    base: str = "",
    before: int = 0,
    commit: bool = True,
) -> Saving:
    flat = [text for part in parts.items() for text in part]
    return await town.scripts.snapshot(
        epoch=str(epoch),
        seq=str(seq),
        base=base,
        digest=f"digest-{seq}".encode(),
        ids=b"ids",
        before=before,
        commit=int(commit),
        parts=flat,
    )


async def kept(town: ShardTown) -> dict[str, bytes] | None:
    found = await Snapshots(town.store, town.number).load()
    return None if found is None else found.parts


async def test_what_was_saved_is_loaded(any_town: ShardTown) -> None:
    await any_town.append(5, 1)
    snapshots = Snapshots(any_town.store, any_town.number)
    assert await snapshots.load() is None
    parts = {"book:A": bytes(range(256)), "book:B": b"b", "accounts": b"x" * 1000}

    assert await snapshots.save(5, 7, parts, base="", digest=b"d", ids=b"i") == Saved()

    assert await snapshots.load() == Snapshot(5, 7, b"d", b"i", parts)


async def test_changed_parts_take_the_place_of_the_old_ones_and_gone_ones_go(any_town: ShardTown) -> None:
    await any_town.append(5, 1)
    assert await call(any_town, 1, {"a": b"1", "b": b"1", "c": b"1"}) == Saved()
    assert await call(any_town, 2, {"b": b"2", "c": b"", "d": b"2"}, base="5-1") == Saved()
    assert await kept(any_town) == {"a": b"1", "b": b"2", "d": b"2"}
    assert await call(any_town, 3, {}, base="5-2") == Saved(), "nothing changed but the number"
    assert await call(any_town, 4, {"e": b"4"}) == Saved()
    assert await kept(any_town) == {"e": b"4"}, "without a base these are all parts"


async def test_a_former_owner_does_not_save(any_town: ShardTown) -> None:
    await any_town.append(5, 1)
    assert await call(any_town, 1, {"a": b"1"}) == Saved()
    await any_town.append(9, 2)
    for commit in (True, False):
        assert await call(any_town, 2, {"a": b"zombie"}, base="5-1", commit=commit) == Fenced(9)
        assert await call(any_town, 2, {"a": b"zombie"}, commit=commit) == Fenced(9)
    assert await kept(any_town) == {"a": b"1"}
    assert await call(any_town, 2, {"a": b"2"}, epoch=9, base="5-1") == Saved()


async def test_a_former_owner_that_had_staged_does_not_commit(town: ShardTown) -> None:
    await town.append(5, 1)
    assert await call(town, 1, {"a": b"1"}, commit=False) == Staged()
    await town.append(9, 2)
    assert await call(town, 1, {"b": b"1"}, before=1) == Fenced(9)
    assert await kept(town) is None


async def test_without_a_log_nobody_saves(any_town: ShardTown) -> None:
    assert await call(any_town, 1, {"a": b"1"}) == Fenced(0)


async def test_staged_parts_are_seen_with_the_last_call_and_not_before(any_town: ShardTown) -> None:
    await any_town.append(5, 1)
    await call(any_town, 1, {"a": b"1", "b": b"1"})
    assert await call(any_town, 2, {"a": b"2"}, base="5-1", commit=False) == Staged()
    assert await call(any_town, 2, {"b": b""}, base="5-1", before=1, commit=False) == Staged()
    assert await kept(any_town) == {"a": b"1", "b": b"1"}
    assert await call(any_town, 2, {"c": b"2"}, base="5-1", before=2) == Saved()
    assert await kept(any_town) == {"a": b"2", "c": b"2"}
    assert await any_town.raw("EXISTS", "staged") == 0


async def test_a_call_that_is_repeated_finds_its_work(town: ShardTown) -> None:
    await town.append(5, 1)
    for _ in range(2):
        assert await call(town, 1, {"a": b"1"}, commit=False) == Staged()
    for _ in range(2):
        assert await call(town, 1, {"b": b"1"}, before=1) == Saved()
    assert await kept(town) == {"a": b"1", "b": b"1"}


async def test_parts_that_the_store_lost_are_missed(town: ShardTown) -> None:
    await town.append(5, 1)
    await call(town, 1, {"a": b"1"}, commit=False)
    await town.raw("DEL", "staged")
    assert await call(town, 1, {"b": b"1"}, before=1) == Unstaged()
    await call(town, 1, {"a": b"1"}, commit=False)
    await town.raw("HDEL", "staged", "a")
    assert await call(town, 1, {"b": b"1"}, before=1) == Unstaged()
    assert await kept(town) is None


async def test_the_rest_of_a_snapshot_that_was_given_up_is_not_mixed_in(town: ShardTown) -> None:
    await town.append(5, 1)
    await call(town, 1, {"a": b"1", "z": b"old"}, commit=False)
    assert await call(town, 2, {"a": b"2"}) == Saved()
    assert await kept(town) == {"a": b"2"}


async def test_what_builds_on_another_snapshot_is_refused(town: ShardTown) -> None:
    """The store lost one, or the call is a late one: half of the parts would be of another state."""
    await town.append(5, 1)
    assert await call(town, 2, {"a": b"2"}, base="5-1") == OtherBase("")
    await call(town, 3, {"a": b"3"})
    assert await call(town, 4, {"a": b"4"}, base="5-2") == OtherBase("5-3")
    assert await call(town, 2, {"a": b"late"}) == OtherBase("5-3")
    assert await kept(town) == {"a": b"3"}


async def test_a_part_may_not_have_the_name_of_a_mark(town: ShardTown) -> None:
    with pytest.raises(InvalidInput):
        await Snapshots(town.store, town.number).save(5, 1, {"@seq": b"1"}, base="", digest=b"")


async def test_a_large_state_is_sent_in_calls_and_seen_whole(any_town: ShardTown) -> None:
    """A reader that looks all the time sees the one before or the one after."""
    await any_town.append(5, 1)
    snapshots = Snapshots(any_town.store, any_town.number)
    sizes = [MAX_CALL_BYTES + 1, 200_000, 400_000, 10, 0, MAX_CALL_BYTES, 1]
    seen: set[int] = set()
    done = asyncio.Event()

    async def read() -> None:
        while not done.is_set():
            found = await snapshots.load()
            if found is not None:
                contents = {bytes(set(content)) for content in found.parts.values()}
                assert contents == {found.digest}, "parts of one state"
                assert len(found.parts) == len(sizes)
                seen.add(found.seq)

    reader = asyncio.create_task(read())
    base = ""
    for seq in range(1, 5):
        state = bytes([64 + seq])
        parts = {f"part-{n}": state * (size + 1) for n, size in enumerate(sizes)}
        assert await snapshots.save(5, seq, parts, base=base, digest=state) == Saved()
        base = f"5-{seq}"
    done.set()
    await reader
    assert seen


async def check_walk(store: Store, rng: random.Random) -> None:
    """Two owners, one of them a former one; calls lost before or after they arrive; the model is a dict."""
    town = ShardTown(store)
    model: dict[str, bytes] = {}
    at, epoch, seq, saves = "", 1, 0, 0
    await town.append(epoch, seq)
    for _ in range(60):
        seq += 1
        roll = rng.random()
        if roll < 0.1:
            epoch += 1
            await town.append(epoch, seq)
        parts = {name: rng.choice([b"", b"x%d" % seq]) for name in rng.sample("abcdefgh", rng.randint(0, 5))}
        is_former = rng.random() < 0.2 and epoch > 1
        whole = rng.random() < 0.2 or not at
        cut = rng.randint(0, len(parts))
        first, last = dict(list(parts.items())[:cut]), dict(list(parts.items())[cut:])
        base = "" if whole else at
        mine = epoch - 1 if is_former else epoch
        if cut:
            staged = await call(town, seq, first, epoch=mine, base=base, commit=False)
            assert staged == (Fenced(epoch) if is_former else Staged())
        if rng.random() < 0.3:
            continue  # it died here
        answer = await call(town, seq, last, epoch=mine, base=base, before=cut)
        assert answer == (Fenced(epoch) if is_former else Saved())
        if not is_former:
            model = {name: part for name, part in ((({} if whole else model) | parts).items()) if part}
            at, saves = f"{epoch}-{seq}", saves + 1
        found = await Snapshots(store, town.number).load()
        assert (found.parts, found.at) == (model, at) if found is not None else not at
    assert saves > 10


def test_a_snapshot_is_the_last_that_an_owner_committed(server: RunningServer) -> None:
    for_each(server, SEEDS, check_walk, examples=30)
