"""feed_append.lua and the follower: every change, in order, or a Gap (G1)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from roost.core.events import START, Entry, Gap, Mark
from roost.store import feed as feed_module
from roost.store import scopes
from roost.store.feed import Feed, parse_entry
from roost.store.scripts import Script
from roost.store.store import Store
from roost.testing import RunningServer, eventually, open_store, run_valkey
from tests.store.reading import whole_feed

LUA = Path(__file__).parent / "lua"
SCOPE = scopes.world("main")


@dataclass(frozen=True, slots=True)
class Written:
    rev: int
    at: int


class Writer:
    """Appends to the feed of one scope."""

    def __init__(self, store: Store, scope: scopes.Scope = SCOPE) -> None:
        self._script: Script[Written] = store.library.script("tests", "feed_write", Written, folder=LUA)
        self.feed, self.bell = store.keys.feed(scope), store.keys.bell(scope)
        self._store = store

    async def __call__(self, what: str = "x", *, keep: int = 10_000, now: int | str = "") -> Mark:
        written = await self._script(feed=self.feed, bell=self.bell, what=what, keep=keep, now=now)
        return Mark(written.rev, written.at)

    async def many(self, count: int, *, now: int | str = "") -> list[Mark]:
        return [await self(f"change {n}", now=now) for n in range(count)]

    async def entries(self) -> list[Entry]:
        reply = await self._store.call("XRANGE", self.feed, "-", "+", key=self.feed)
        return [parse_entry(raw) for raw in reply]

    async def forget(self) -> None:
        await self._store.call("DEL", self.feed, key=self.feed)

    async def ring(self) -> None:
        await self._store.call("SPUBLISH", self.bell, "", key=self.bell)


class Follower:
    """Reads a feed in a task of its own, and keeps what it got."""

    def __init__(self, feed: Feed, after: Mark = START) -> None:
        self.got: list[Entry | Gap] = []
        self._stream = feed.follow(after)
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async for item in self._stream:
            self.got.append(item)

    @property
    def revs(self) -> list[int]:
        return [item.rev if isinstance(item, Entry) else -1 for item in self.got]

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self._stream.aclose()


@contextlib.asynccontextmanager
async def following(feed: Feed, after: Mark = START) -> AsyncIterator[Follower]:
    follower = Follower(feed, after)
    try:
        yield follower
    finally:
        await follower.stop()


@pytest.fixture
def write(any_store: Store) -> Writer:
    return Writer(any_store)


@pytest.fixture
def feed(any_store: Store) -> Feed:
    return any_store.feed(SCOPE)


# -- the script


async def test_revisions_are_dense_and_each_entry_names_the_time_of_the_one_before(write: Writer) -> None:
    marks = await asyncio.gather(*(write(f"{n}") for n in range(200)))
    entries = await write.entries()

    assert sorted(mark.rev for mark in marks) == list(range(1, 201))
    assert [entry.rev for entry in entries] == list(range(1, 201))
    assert [entry.prev_at for entry in entries] == [0, *(entry.at for entry in entries[:-1])]


@pytest.mark.parametrize("times", [[1000] * 5, [5000, 4000, 3000, 9000, 10]])
async def test_times_grow_strictly_also_when_the_clock_does_not(write: Writer, times: list[int]) -> None:
    for now in times:
        await write(now=now)
    ats = [entry.at for entry in await write.entries()]
    assert ats == sorted(set(ats))
    assert len(ats) == len(times)


async def test_an_entry_carries_what_its_script_wrote(write: Writer) -> None:
    mark = await write("größer", now=1_700_000_000_123_456)

    assert await write.entries() == [Entry(1, 1_700_000_000_123_456, 0, {"what": "größer"})]
    assert mark == Mark(1, 1_700_000_000_123_456)


async def test_a_feed_stays_bounded(write: Writer) -> None:
    for _ in range(500):
        await write(keep=50)
    entries = await write.entries()
    assert 50 <= len(entries) <= 200
    assert entries[-1].rev == 500


async def test_each_change_rings_the_bell_with_its_message(any_store: Store, write: Writer) -> None:
    rings: list[bytes] = []
    stop = any_store.listen(write.bell, rings.append)
    await eventually(lambda: rings == [b""], "the subscription")

    await write("one")
    await write("two")

    await eventually(lambda: rings == [b"", b"one", b"two"], "two rings")
    stop()


# -- following


async def test_g1_a_follower_sees_every_change_in_order_from_any_mark(write: Writer, feed: Feed) -> None:
    marks = [START, *await write.many(20)]
    for mark in marks:
        async with following(feed, mark) as follower:
            await everybody_has([follower], 20 - mark.rev)
            assert follower.revs == list(range(mark.rev + 1, 21))


async def test_a_follower_sees_changes_as_they_come(write: Writer, feed: Feed) -> None:
    async with following(feed) as follower:
        for n in range(1, 31):
            await write(f"{n}")
            if n % 10 == 0:
                await everybody_has([follower], n)
        assert follower.revs == list(range(1, 31))
        assert [e.fields["what"] for e in follower.got if isinstance(e, Entry)] == [
            str(n) for n in range(1, 31)
        ]


async def test_a_bell_is_enough_and_nobody_waits_for_the_next_look(
    write: Writer, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "LOOK_INTERVAL_S", 3600.0)
    async with following(feed) as follower:
        for n in range(1, 6):
            await write()
            await everybody_has([follower], n)


async def test_a_missed_bell_is_made_good_by_the_next_look(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "LOOK_INTERVAL_S", 0.05)
    write, feed = Writer(store), store.feed(SCOPE)
    async with following(feed) as follower:
        await write()
        await eventually(lambda: len(follower.got) == 1, "the first change")
        # an entry without a ring, written as the script would
        last = (await write.entries())[-1]
        await store.call("XADD", write.feed, "2-0", "at", last.at + 5, "prevAt", last.at, "what", "quiet")
        await eventually(lambda: follower.revs == [1, 2], "the change without a bell")


async def test_a_reader_that_left_goes_on_from_its_mark(write: Writer, feed: Feed) -> None:
    async with following(feed) as follower:
        await write.many(5)
        await eventually(lambda: len(follower.got) == 5, "five changes")
        last = follower.got[-1]
    assert isinstance(last, Entry)
    await write.many(5)

    async with following(feed, last.mark) as again:
        await eventually(lambda: len(again.got) == 5, "five more")
        assert again.revs == [6, 7, 8, 9, 10]


async def test_the_head_is_the_newest_mark(write: Writer, feed: Feed) -> None:
    assert await feed.head() == START
    marks = await write.many(3)
    assert await feed.head() == marks[-1]


async def test_a_large_backlog_is_read_in_parts(
    write: Writer, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "READ_COUNT", 7)
    await write.many(100)
    async with following(feed) as follower:
        await eventually(lambda: len(follower.got) == 100, "the backlog")
        await asyncio.gather(*(write() for _ in range(100)))
        await eventually(lambda: len(follower.got) == 200, "the burst")
        assert follower.revs == list(range(1, 201))


# -- gaps


async def test_g1_a_reader_whose_news_were_trimmed_is_told_so(
    any_store: Store, write: Writer, feed: Feed
) -> None:
    marks = await write.many(10)
    await any_store.call("XTRIM", write.feed, "MAXLEN", 3, key=write.feed)

    async with following(feed, marks[4]) as late, following(feed) as new, following(feed, marks[6]) as fits:
        await eventually(lambda: late.task.done() and new.task.done(), "gaps")
        await eventually(lambda: len(fits.got) == 3, "news of the reader that is just in time")
    assert late.got == [Gap(marks[4])]
    assert new.got == [Gap(START)]
    assert fits.revs == [8, 9, 10]


async def test_g1_a_reader_of_a_deleted_feed_is_told_so(write: Writer, feed: Feed) -> None:
    async with following(feed) as follower:
        marks = await write.many(3)
        await eventually(lambda: len(follower.got) == 3, "three changes")

        await write.forget()
        await write.ring()

        await eventually(follower.task.done, "the gap")
        assert follower.got[-1] == Gap(marks[-1])


@pytest.mark.parametrize("length", [1, 2, 3, 4, 10])
async def test_g1_a_reader_of_a_forked_history_is_told_so(write: Writer, feed: Feed, length: int) -> None:
    """A failover lost the last writes: the new primary has the same revisions with other times."""
    first = await write("shared", now=1000)
    seen = [await write("lost", now=2000), await write("lost", now=3000)]
    async with following(feed, first) as follower:
        await eventually(lambda: len(follower.got) == 2, "the changes that will be lost")

        await write.forget()
        assert await write("shared", now=1000) == first
        for n in range(length - 1):
            await write("other", now=2001 + n)
        await write.ring()

        await eventually(follower.task.done, "the gap")
        assert follower.got[-1] == Gap(seen[-1])
        assert "other" not in [e.fields["what"] for e in follower.got if isinstance(e, Entry)]


async def test_g1_a_fork_whose_beginning_was_trimmed_is_a_gap(
    any_store: Store, write: Writer, feed: Feed
) -> None:
    """Only the chain of times tells: the next revision is there and belongs to another history."""
    await write("shared", now=1000)
    seen = await write("lost", now=2000)
    await write.forget()
    await write("shared", now=1000)
    await write("other", now=2001)
    await write("other", now=2002)
    await any_store.call("XTRIM", write.feed, "MAXLEN", 1, key=write.feed)

    async with following(feed, seen) as follower:
        await eventually(follower.task.done, "the gap")
        assert follower.got == [Gap(seen)]


async def test_after_a_gap_a_new_snapshot_goes_on(write: Writer, feed: Feed) -> None:
    async with following(feed) as follower:
        await write.many(3)
        await eventually(lambda: len(follower.got) == 3, "three changes")
        await write.forget()
        await write.many(2)
        await eventually(follower.task.done, "the gap")

    async with following(feed, await feed.head()) as again:
        await write.many(2)
        await eventually(lambda: len(again.got) == 2, "news of the new history")
        assert again.revs == [3, 4]


async def test_readers_that_agree_with_the_new_history_are_not_disturbed_by_anothers_gap(
    write: Writer, feed: Feed
) -> None:
    old = Mark(3, 30)
    marks = await write.many(5, now=1000)
    async with following(feed, marks[4]) as good, following(feed, old) as bad:
        await eventually(bad.task.done, "the gap")
        await write()
        await eventually(lambda: good.revs == [6], "news")


# -- trouble


async def test_a_restart_of_the_store_under_a_follower_loses_nothing() -> None:
    with run_valkey(persistent=True, options=("--appendfsync", "always")) as server:
        async with open_store(server.url) as store:
            write = Writer(store)
            async with following(store.feed(SCOPE)) as follower:
                await write.many(3)
                await eventually(lambda: len(follower.got) == 3, "three changes")

                server.kill()
                server.start()
                await eventually(lambda: store.links()[0].stats.connects == 2, "the new connection")
                await write.many(3)

                await eventually(lambda: len(follower.got) >= 6, "what was written after the restart")
                assert follower.revs == [1, 2, 3, 4, 5, 6]


async def test_a_reader_that_begins_while_the_store_is_away_gets_everything_when_it_is_back() -> None:
    with run_valkey(persistent=True, options=("--appendfsync", "always")) as server:
        async with open_store(server.url) as store:
            await Writer(store).many(3)
            server.kill()
            async with following(store.feed(SCOPE)) as follower:
                await eventually(lambda: not store.links()[0].connected, "the loss of the store")
                server.start()
                await eventually(lambda: follower.revs == [1, 2, 3], "all changes")


def xrange_calls(server: RunningServer) -> int:
    lines = server.command_reply("INFO", "commandstats").decode().splitlines()
    found = [line for line in lines if line.startswith("cmdstat_xrange:")]
    return int(found[0].partition("calls=")[2].partition(",")[0]) if found else 0


async def everybody_has(followers: list[Follower], count: int) -> None:
    await eventually(lambda: all(len(f.got) == count for f in followers), f"{count} changes everywhere")


async def test_a_thousand_local_readers_cost_one_read_per_ring(store: Store, server: RunningServer) -> None:
    write, feed = Writer(store), store.feed(SCOPE)
    followers = [Follower(feed) for _ in range(1000)]
    for n in (1, 2, 3):  # newcomers may read the store by themselves until they have caught up
        await write()
        await everybody_has(followers, n)
    server.command_reply("CONFIG", "RESETSTAT")

    for n in range(4, 24):
        await write()
        await everybody_has(followers, n)

    assert 20 <= xrange_calls(server) <= 22  # one per ring, and perhaps the look of every five seconds
    for follower in followers:
        follower.task.cancel()
    await asyncio.gather(*(follower.stop() for follower in followers))


@pytest.fixture
async def slow(store: Store, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AsyncIterator[Entry | Gap]]:
    """A reader that has read the first of a hundred changes while another has read all; ten are kept."""
    monkeypatch.setattr(feed_module, "KEPT_ENTRIES", 10)
    write, feed = Writer(store), store.feed(SCOPE)
    stream = feed.follow(START)
    await write()
    first = await anext(stream)
    assert isinstance(first, Entry)
    assert first.rev == 1
    async with following(feed) as quick:
        await write.many(99)
        await eventually(lambda: len(quick.got) == 100, "the quick reader")
        yield stream
    await stream.aclose()


async def test_a_slow_reader_does_not_hurt_the_others_and_loses_nothing(
    slow: AsyncIterator[Entry | Gap],
) -> None:
    rest = [await anext(slow) for _ in range(99)]
    assert [item.rev for item in rest if isinstance(item, Entry)] == list(range(2, 101))


async def test_a_slow_reader_that_the_store_has_overtaken_gets_a_gap(
    store: Store, slow: AsyncIterator[Entry | Gap]
) -> None:
    (first, *_) = await whole_feed(store, SCOPE)
    await store.call("XTRIM", store.keys.feed(SCOPE), "MAXLEN", 5)
    assert await anext(slow) == Gap(first.mark)


async def test_when_the_last_reader_leaves_nobody_reads_any_more(store: Store, server: RunningServer) -> None:
    write, feed = Writer(store), store.feed(SCOPE)
    async with following(feed) as follower:
        await write()
        await eventually(lambda: len(follower.got) == 1, "the change")
    await eventually(lambda: _listeners(server, write.bell) == 0, "the end of the subscription")
    server.command_reply("CONFIG", "RESETSTAT")

    await write.many(3)

    assert xrange_calls(server) == 0


async def test_a_reader_that_comes_right_after_the_last_one_left_is_served(store: Store) -> None:
    write, feed = Writer(store), store.feed(SCOPE)
    for _ in range(20):
        async with following(feed, await feed.head()) as follower:
            await write()
            await everybody_has([follower], 1)


async def test_feeds_of_several_scopes_do_not_mix(any_store: Store) -> None:
    worlds = [scopes.world(name) for name in ("one", "two", "three", "four")]
    followers = [Follower(any_store.feed(scope)) for scope in worlds]
    for scope in worlds:
        await Writer(any_store, scope)(scope.tag)
    await eventually(lambda: all(len(f.got) == 1 for f in followers), "one change each")
    for scope, follower in zip(worlds, followers, strict=True):
        assert [e.fields["what"] for e in follower.got if isinstance(e, Entry)] == [scope.tag]
        await follower.stop()


def _listeners(server: RunningServer, channel: bytes) -> int:
    return int(server.command_reply("PUBSUB", "SHARDNUMSUB", channel)[1])


# -- nothing freezes


async def test_a_follower_that_ends_under_its_readers_is_replaced(store: Store) -> None:
    write, feed = Writer(store), store.feed(SCOPE)
    async with following(feed) as follower:
        await write()
        await everybody_has([follower], 1)
        (task,) = [t for t in asyncio.all_tasks() if "_follow_store" in repr(t)]
        task.cancel()
        await eventually(task.done, "its end")
        await write()
        await everybody_has([follower], 2)


async def test_an_entry_that_nobody_can_read_is_a_gap_and_not_the_end(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "LOOK_INTERVAL_S", 0.05)
    write, feed = Writer(store), store.feed(SCOPE)
    first = await write()
    await store.call("XADD", write.feed, "2-0", "foreign", "entry")
    async with following(feed, first) as follower:
        await eventually(follower.task.done, "the gap")
    assert follower.got == [Gap(first)]


async def test_a_loop_that_follows_knows_when_it_was_last_up_to_date(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "LOOK_INTERVAL_S", 0.05)
    write, feed, loop = Writer(store), store.feed(SCOPE), store.loops.loop("reader")
    got: list[Entry | Gap] = []
    may_read = asyncio.Event()

    async def follow() -> None:
        async for item in feed.follow(START):
            got.append(item)
            await may_read.wait()  # one that is stuck with its first entry

    task = asyncio.create_task(loop.keep_running(follow))
    await eventually(lambda: loop.up_to_date_at is not None, "it is up to date with nothing")
    await write()
    await eventually(lambda: len(got) == 1, "the entry")
    stuck_at = loop.up_to_date_at
    await write.many(3)
    (feed_loop,) = [one for one in store.loops.all() if one.name.startswith("feed ")]
    at = feed_loop.up_to_date_at or 0.0
    await eventually(lambda: (feed_loop.up_to_date_at or 0.0) > at, "the feed itself goes on")
    assert loop.up_to_date_at == stuck_at
    may_read.set()
    await eventually(lambda: (loop.up_to_date_at or 0.0) > (stuck_at or 0.0), "it has caught up")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
