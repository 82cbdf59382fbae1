"""ListCache: from memory only while the feed proves that nothing changed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from roost.api.discovery import Beat, InstanceList, RegisterInput
from roost.discovery import cache as cache_module
from roost.discovery.cache import ListCache
from roost.discovery.service import Discovery
from roost.store.store import Store
from roost.testing import RunningServer, eventually, open_store
from tests.store.replies import replies


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(cache_module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


@pytest.fixture
async def discovery(store: Store) -> Discovery:
    discovery = Discovery(store)
    await add(discovery, "a")
    return discovery


@pytest.fixture
async def other(server: RunningServer) -> AsyncIterator[Discovery]:
    """Another process, as far as the store can tell."""
    async with open_store(server.url) as store:
        yield Discovery(store)


async def add(discovery: Discovery, id_: str, **labels: str) -> None:
    await discovery.register(RegisterInput("game", "eu", instance_id=id_, labels=labels))


async def ids(cache: ListCache, type_: str = "*", group: str = "*", labels: tuple[str, ...] = ()) -> str:
    listed = msgspec.json.decode(await cache.encoded(type_, group, labels), type=InstanceList)
    return "".join(instance.instance_id for instance in listed.instances)


def reads(store: Store) -> int:
    return replies(store, "SNAPSHOT")


@contextlib.asynccontextmanager
async def followed(discovery: Discovery) -> AsyncIterator[None]:
    """Somebody follows the feed, as in a gateway with a watcher."""

    async def follow() -> None:
        async for _ in discovery.feed.follow(await discovery.feed.head()):
            pass

    task = asyncio.create_task(follow())
    await eventually(lambda: discovery.feed.seen is not None, "the follower")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_while_nobody_follows_every_list_is_read(
    discovery: Discovery, store: Store, clock: Clock
) -> None:
    cache = ListCache(discovery)
    for _ in range(3):
        assert await ids(cache) == "a"
    assert reads(store) == 3


async def test_while_nothing_changes_a_list_is_read_once(
    discovery: Discovery, store: Store, clock: Clock
) -> None:
    cache = ListCache(discovery)
    async with followed(discovery):
        for _ in range(100):
            assert await ids(cache) == "a"
        assert reads(store) == 1
        clock.now += 0.99
        await ids(cache)
        assert reads(store) == 1


async def test_a_list_is_at_most_a_second_old(discovery: Discovery, store: Store, clock: Clock) -> None:
    """Beats are no changes: what a second can hide is the time of the last one."""
    cache = ListCache(discovery)
    async with followed(discovery):
        before = await cache.encoded("*", "*", ())
        await discovery.heartbeat("a", Beat(performance={"fps": 1}))
        assert await cache.encoded("*", "*", ()) == before
        clock.now += 1.0
        assert b'"fps":1' in await cache.encoded("*", "*", ())
        assert reads(store) == 2


async def test_a_change_by_another_process_is_seen_after_its_bell(
    discovery: Discovery, store: Store, other: Discovery, clock: Clock
) -> None:
    cache = ListCache(discovery)
    async with followed(discovery):
        assert await ids(cache) == "a"
        await add(other, "b")
        head = await other.feed.head()
        await eventually(lambda: discovery.feed.seen == head, "the bell")
        assert await ids(cache) == "ab"
        await other.remove("a")
        head = await other.feed.head()
        await eventually(lambda: discovery.feed.seen == head, "the bell")
        assert await ids(cache) == "b"
        assert reads(store) == 3


async def test_a_writer_sees_its_own_write(discovery: Discovery, clock: Clock) -> None:
    cache = ListCache(discovery)
    async with followed(discovery):
        assert await ids(cache) == "a"
        await add(discovery, "b")
        cache.forget()
        assert await ids(cache) == "ab"


async def test_when_the_follower_leaves_lists_are_read_again(discovery: Discovery, clock: Clock) -> None:
    cache = ListCache(discovery)
    async with followed(discovery):
        await ids(cache)
    await eventually(lambda: discovery.feed.seen is None, "the end of the follower")
    await add(discovery, "b")
    assert await ids(cache) == "ab"


async def test_every_question_has_its_own_answer(discovery: Discovery, store: Store, clock: Clock) -> None:
    await add(discovery, "b", map="desert")
    await discovery.register(RegisterInput("gate", "us", instance_id="c"))
    cache = ListCache(discovery)
    async with followed(discovery):
        for _ in range(2):
            assert await ids(cache) == "abc"
            assert await ids(cache, "game", "eu") == "ab"
            assert await ids(cache, "gate") == "c"
            assert await ids(cache, labels=("map=desert",)) == "b"
        assert reads(store) == 4


async def test_what_is_kept_does_not_grow_without_end(
    discovery: Discovery, store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "MAX_LISTS", 4)
    cache = ListCache(discovery)
    async with followed(discovery):
        for n in range(20):
            await ids(cache, f"type{n}")
        before = reads(store)
        for n in reversed(range(20)):
            await ids(cache, f"type{n}")
        assert 16 <= reads(store) - before < 20


async def test_a_list_read_before_a_write_is_not_served_after_it(
    discovery: Discovery, store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The read began before the write and its answer arrives after: it must not be what the writer gets."""
    cache = ListCache(discovery)
    held, read_now = asyncio.Event(), discovery.discover

    async def read_and_linger(*wanted: Any) -> InstanceList:
        found = await read_now(*wanted)
        await held.wait()
        return found

    monkeypatch.setattr(
        discovery, "feed", SimpleNamespace(seen=await discovery.feed.head())
    )  # a follower that lags
    monkeypatch.setattr(discovery, "discover", read_and_linger)
    early = asyncio.create_task(ids(cache))
    await eventually(lambda: reads(store) == 1)
    await add(discovery, "b")
    cache.forget()
    monkeypatch.setattr(discovery, "discover", read_now)
    assert await ids(cache) == "ab"
    held.set()
    assert await early == "a"
    assert await ids(cache) == "ab"


async def test_readers_that_ask_at_once_share_a_read(
    discovery: Discovery, store: Store, clock: Clock
) -> None:
    cache = ListCache(discovery)
    async with followed(discovery):
        before = reads(store)
        assert await asyncio.gather(*(ids(cache) for _ in range(50))) == ["a"] * 50
        assert reads(store) == before + 1
