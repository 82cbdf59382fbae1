"""The verbs of discovery, and the watch: a snapshot, then every change in order (G1)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from roost.api.discovery import Beat, BeatReply, Change, Override, Registered, RegisterInput
from roost.core.errors import (
    FencedInstance,
    InvalidId,
    InvalidInput,
    Mistake,
    RemovedInstance,
    ServerIdTaken,
    UnknownInstance,
)
from roost.core.events import Mark
from roost.discovery.service import Discovery
from roost.store import scopes
from roost.store.store import Store
from roost.testing import RunningServer, eventually
from tests.store.discovery.fleet import invariants
from tests.store.test_feed import xrange_calls


@pytest.fixture
def discovery(store: Store) -> Discovery:
    return Discovery(store)


def given(instance_id: str = "a", **fields: Any) -> RegisterInput:
    return RegisterInput(**{"type": "game", "group": "eu", "instance_id": instance_id, **fields})


class Watcher:
    """Watches in a task of its own, and keeps what it saw."""

    def __init__(
        self,
        discovery: Discovery,
        type_: str = "*",
        group: str = "*",
        labels: Sequence[str] = (),
        after: Mark | None = None,
    ) -> None:
        self.seen: list[Change] = []
        self._stream = discovery.watch(type_, group, labels, after)
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async for change in self._stream:
            self.seen.append(change)

    @property
    def words(self) -> list[str]:
        return [f"{c.event} {c.instance_id}".strip() for c in self.seen]

    @property
    def mark(self) -> Mark:
        return Mark(self.seen[-1].revision, int(self.seen[-1].revision_at))

    async def has(self, *words: str) -> None:
        await eventually(lambda: len(self.words) >= len(words), f"{words}, have {self.words}")
        assert self.words == list(words)

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._stream.aclose()  # type: ignore[attr-defined]


@contextlib.asynccontextmanager
async def watching(discovery: Discovery, *args: Any, **more: Any) -> AsyncIterator[Watcher]:
    watcher = Watcher(discovery, *args, **more)
    try:
        yield watcher
    finally:
        await watcher.stop()


# -- verbs


async def test_a_registration_without_an_id_is_given_one_and_told_how_to_beat(discovery: Discovery) -> None:
    registered = await discovery.register(given("", ttl_seconds=30.0))
    assert len(registered.instance_id) == 26
    assert registered == Registered(registered.instance_id, registered.life, 30.0, 10_000)


async def test_who_names_no_lease_gets_that_of_the_profile(store: Store) -> None:
    registered = await Discovery(store, default_ttl_s=15.0).register(given(ttl_seconds=0.0))
    assert (registered.ttl_seconds, registered.heartbeat_interval_ms) == (15.0, 5000)


async def test_what_was_registered_is_discovered(discovery: Discovery) -> None:
    await discovery.register(given("a", labels={"map": "desert"}, load=4, performance={"fps": 60}))
    await discovery.register(given("b", group="us"))

    listed = await discovery.discover("game", "eu")

    (instance,) = listed.instances
    assert (instance.instance_id, instance.load, instance.performance) == ("a", 4, {"fps": 60})
    assert Mark(listed.revision, int(listed.revision_at)) == await discovery.feed.head()
    assert [i.instance_id for i in (await discovery.discover(labels=["map=desert"])).instances] == ["a"]
    assert await discovery.services() == ["game:eu", "game:us"]


async def test_a_registration_that_does_not_fit_reaches_no_store(discovery: Discovery, store: Store) -> None:
    with pytest.raises(InvalidInput):
        await discovery.register(given(capacity=-1))
    assert (await invariants(store)).index == {}


async def test_refusals_are_errors_that_say_why(discovery: Discovery) -> None:
    first = await discovery.register(given("a", server_id="501"))
    with pytest.raises(ServerIdTaken, match="serverId 501 is held by a, for 30000 ms more"):
        await discovery.register(given("b", server_id="501"))
    second = await discovery.register(given("a", server_id="501"))
    with pytest.raises(FencedInstance, match=f"lives as life {second.life}"):
        await discovery.register(given("a", former_life=first.life))
    with pytest.raises(FencedInstance):
        await discovery.heartbeat("a", Beat(life=first.life))
    with pytest.raises(FencedInstance):
        await discovery.remove("a", life=first.life)
    await discovery.remove("a", cause="removed")
    with pytest.raises(RemovedInstance, match="a was removed"):
        await discovery.register(given("a", former_life=second.life))
    with pytest.raises(RemovedInstance):
        await discovery.heartbeat("a", Beat(life=second.life))


async def test_nobody_is_unknown_to_every_verb(discovery: Discovery) -> None:
    with pytest.raises(UnknownInstance):
        await discovery.heartbeat("a", Beat())
    with pytest.raises(UnknownInstance):
        await discovery.get("a")
    with pytest.raises(UnknownInstance):
        await discovery.override("a", Override(drain=True))
    with pytest.raises(UnknownInstance, match="in game:us"):
        await discovery.remove("a", "game", "us")


@pytest.mark.parametrize("life", ["x", "-1", "1.5", "1e9", "９", "1" * 17, " "])
async def test_a_life_that_register_never_returned_is_unknown(discovery: Discovery, life: str) -> None:
    await discovery.register(given())
    with pytest.raises(UnknownInstance, match="must be the number that register returned"):
        await discovery.heartbeat("a", Beat(life=life))


@pytest.mark.parametrize("life", ["x", "-1", "1.5", "1e9", "１２", "1" * 17])
async def test_a_former_life_that_was_never_given_out_is_refused(discovery: Discovery, life: str) -> None:
    await discovery.register(given())
    with pytest.raises(Mistake):
        await discovery.register(given(former_life=life))


@pytest.mark.parametrize("bad", ["", "a b", "a{b"])
async def test_an_id_that_is_none_is_refused_by_every_verb(discovery: Discovery, bad: str) -> None:
    for call in (
        discovery.heartbeat(bad, Beat()),
        discovery.get(bad),
        discovery.remove(bad),
        discovery.override(bad, None),
    ):
        with pytest.raises(InvalidId):
            await call
    if bad:
        with pytest.raises(InvalidId):
            await discovery.discover(bad)


async def test_a_beat_is_answered_and_kept_within_bounds(discovery: Discovery) -> None:
    await discovery.register(given(load=5))
    assert await discovery.heartbeat("a", Beat(load=-3)) == BeatReply("OK")
    assert (await discovery.discover()).instances[0].load == 0
    await discovery.heartbeat("a", Beat(load=2**40, performance={"fps": 1}))
    instance = (await discovery.discover()).instances[0]
    assert (instance.load, instance.performance) == (2**31, {"fps": 1})
    with pytest.raises(InvalidInput, match="performance has"):
        await discovery.heartbeat("a", Beat(performance={"x": "y" * 9000}))


async def test_an_instance_is_told_living_and_gone(discovery: Discovery) -> None:
    await discovery.register(given())
    await discovery.override("a", Override(drain=True))
    detail = await discovery.get("a")
    assert detail.instance is not None
    assert (detail.status, detail.instance.override) == ("ready", Override(drain=True))
    await discovery.remove("a", cause="removed")
    detail = await discovery.get("a")
    assert (detail.instance, detail.status) == (None, "terminated")
    assert [(e.event, e.status) for e in detail.history] == [
        ("added", "ready"),
        ("override", "drain"),
        ("removed", "removed"),
    ]


@pytest.mark.parametrize(
    ("override", "word"),
    [
        (Override(drain=True), "drain"),
        (Override(out_of_service=True), "out-of-service"),
        (Override(weight=7), "weight 7"),
        (Override(weight=0), "weight 0"),
        (Override(), "lifted"),
        (None, "lifted"),
    ],
)
async def test_an_order_is_told_in_a_word(discovery: Discovery, override: Override | None, word: str) -> None:
    await discovery.register(given())
    await discovery.override("a", Override(drain=True))
    await discovery.override("a", override)
    detail = await discovery.get("a")
    assert detail.history[-1].status == word
    assert detail.instance is not None
    assert detail.instance.override == (override if word != "lifted" else None)


async def test_an_ordered_drain_is_answered_to_the_beat(discovery: Discovery) -> None:
    await discovery.register(given())
    await discovery.override("a", Override(drain=True))
    assert await discovery.heartbeat("a", Beat()) == BeatReply("DRAIN")


# -- watching


async def test_g1_a_watcher_gets_a_snapshot_and_then_every_change_in_order(discovery: Discovery) -> None:
    await discovery.register(given("a"))
    async with watching(discovery) as watcher:
        await watcher.has("snapshot")
        first = watcher.seen[0]
        assert first.instances is not None
        assert [i.instance_id for i in first.instances] == ["a"]

        life = (await discovery.register(given("b", status="initializing"))).life
        await discovery.heartbeat("b", Beat(status="ready"))
        await discovery.heartbeat("b", Beat(status="ready"))
        await discovery.override("a", Override(drain=True))
        await discovery.remove("b")

        await watcher.has("snapshot", "added b", "changed b", "changed a", "removed b")
        assert [change.revision for change in watcher.seen] == [1, 2, 3, 4, 5]
        added, changed, ordered, removed = watcher.seen[1:]
        assert (added.life, added.status, changed.status) == (life, "initializing", "ready")
        assert ordered.instance is not None
        assert (ordered.instance.accepting, ordered.instance.override) == (False, Override(drain=True))
        assert (removed.instance, removed.status) == (None, "terminated")


async def test_g1_a_watcher_of_a_busy_fleet_misses_nothing(discovery: Discovery) -> None:
    async with watching(discovery) as watcher:
        await watcher.has("snapshot")

        async def live(n: int) -> None:
            await discovery.register(given(f"i{n}"))
            await discovery.remove(f"i{n}")

        await asyncio.gather(*(live(n) for n in range(200)))
        await eventually(lambda: len(watcher.seen) == 401, "all changes")
        assert [change.revision for change in watcher.seen] == list(range(401))


async def test_a_watch_goes_on_after_a_mark_without_a_snapshot(discovery: Discovery) -> None:
    async with watching(discovery) as watcher:
        await discovery.register(given("a"))
        await eventually(lambda: bool(watcher.seen) and watcher.seen[-1].revision == 1, "the first change")
        mark = watcher.mark
    await discovery.register(given("b"))
    await discovery.remove("a")

    async with watching(discovery, after=mark) as again:
        await again.has("added b", "removed a")
        await discovery.remove("b")
        await again.has("added b", "removed a", "removed b")


async def test_a_mark_of_the_present_waits_for_the_future(discovery: Discovery) -> None:
    await discovery.register(given("a"))
    async with watching(discovery, after=await discovery.feed.head()) as watcher:
        await discovery.register(given("b"))
        await watcher.has("added b")


@pytest.mark.parametrize("mark", [Mark(1, 5), Mark(7, 7), Mark(10**9, 1)])
async def test_g1_a_mark_of_another_history_gives_a_snapshot(discovery: Discovery, mark: Mark) -> None:
    await discovery.register(given("a"))
    await discovery.register(given("b"))
    async with watching(discovery, after=mark) as watcher:
        await watcher.has("snapshot")
        assert watcher.mark == await discovery.feed.head()


async def test_g1_a_mark_whose_news_were_trimmed_gives_a_snapshot(discovery: Discovery, store: Store) -> None:
    await discovery.register(given("a"))
    mark = await discovery.feed.head()
    for id_ in "bcde":
        await discovery.register(given(id_))
    feed = store.keys.feed(scopes.discovery())
    await store.call("XTRIM", feed, "MAXLEN", 2, key=feed)

    async with watching(discovery, after=mark) as watcher:
        await watcher.has("snapshot")
        assert [i.instance_id for i in watcher.seen[0].instances or ()] == list("abcde")


async def test_g1_a_watcher_of_a_deleted_feed_gets_a_new_snapshot_and_goes_on(
    discovery: Discovery, store: Store
) -> None:
    await discovery.register(given("a"))
    async with watching(discovery) as watcher:
        await watcher.has("snapshot")
        await discovery.register(given("b"))
        await watcher.has("snapshot", "added b")

        await store.call("DEL", store.keys.feed(scopes.discovery()))
        await discovery.register(given("c"))

        await eventually(lambda: watcher.words.count("snapshot") == 2, "the second snapshot")
        await discovery.register(given("d"))
        await eventually(lambda: "added d" in watcher.words, "news after the gap")
        known = {i.instance_id for i in watcher.seen[2].instances or ()}
        known |= {change.instance_id for change in watcher.seen[3:]}
        assert known == set("abcd")


async def test_g1_a_wiped_store_gives_an_empty_snapshot(discovery: Discovery, store: Store) -> None:
    await discovery.register(given("a"))
    async with watching(discovery) as watcher:
        await watcher.has("snapshot")
        await discovery.register(given("b"))
        await watcher.has("snapshot", "added b")
        await store.call("FLUSHALL")
        bell = store.keys.bell(scopes.discovery())
        await store.call("SPUBLISH", bell, "", key=bell)
        await watcher.has("snapshot", "added b", "snapshot")
        assert watcher.seen[2].instances == []


@pytest.mark.parametrize(
    ("type_", "group", "expected"),
    [
        ("game", "eu", ["added a"]),
        ("game", "*", ["added a", "added b"]),
        ("*", "eu", ["added a", "added c"]),
        ("*", "*", ["added a", "added b", "added c"]),
    ],
)
async def test_a_watcher_sees_the_places_that_it_asked_for(
    discovery: Discovery, type_: str, group: str, expected: list[str]
) -> None:
    async with watching(discovery, type_, group) as watcher, watching(discovery) as everything:
        await watcher.has("snapshot")
        await everything.has("snapshot")
        await discovery.register(given("a", type="game", group="eu"))
        await discovery.register(given("b", type="game", group="us"))
        await discovery.register(given("c", type="gate", group="eu"))
        await everything.has("snapshot", "added a", "added b", "added c")
        await watcher.has("snapshot", *expected)


async def test_a_watcher_sees_the_labels_that_it_asked_for(discovery: Discovery) -> None:
    await discovery.register(given("a", labels={"map": "desert"}))
    await discovery.register(given("b", labels={"map": "ice"}))
    async with watching(discovery, labels=["map=desert"]) as watcher:
        await watcher.has("snapshot")
        assert [i.instance_id for i in watcher.seen[0].instances or ()] == ["a"]
        await discovery.register(given("c", labels={"map": "ice"}))
        await discovery.register(given("d", labels={"map": "desert"}))
        await watcher.has("snapshot", "added d")


async def test_g1_who_no_longer_fits_is_told_as_removed(discovery: Discovery) -> None:
    """It registers again with another label, or in another group."""
    await discovery.register(given("a", labels={"map": "desert"}))
    async with (
        watching(discovery, labels=["map=desert"]) as by_label,
        watching(discovery, "game", "eu") as by_place,
    ):
        await by_label.has("snapshot")
        await by_place.has("snapshot")
        await discovery.register(given("a", labels={"map": "ice"}))
        await by_label.has("snapshot", "removed a")
        await by_place.has("snapshot", "removed a", "added a")
        await discovery.register(given("a", group="us", labels={"map": "ice"}))
        await by_place.has("snapshot", "removed a", "added a", "removed a")


async def test_a_thousand_watchers_cost_one_follower(
    discovery: Discovery, store: Store, server: RunningServer
) -> None:
    watchers = [Watcher(discovery) for _ in range(1000)]

    async def everybody_has(count: int) -> None:
        await eventually(lambda: all(len(w.seen) == count for w in watchers), f"{count} everywhere")

    await everybody_has(1)
    for n in range(3):  # newcomers may read the store by themselves until they have caught up
        await discovery.register(given(f"new{n}"))
        await everybody_has(2 + n)
    server.command_reply("CONFIG", "RESETSTAT")

    for n in range(10):
        await discovery.register(given(f"i{n}"))
        await everybody_has(5 + n)

    assert 10 <= xrange_calls(server) <= 12  # one per ring, and perhaps the look of every five seconds
    await asyncio.gather(*(watcher.stop() for watcher in watchers))


async def test_when_the_last_watcher_leaves_nobody_follows(discovery: Discovery) -> None:
    async with watching(discovery) as watcher:
        await discovery.register(given())
        await eventually(lambda: discovery.feed.seen is not None, "the follower")
        await eventually(lambda: len(watcher.seen) >= 1, "the snapshot")
    await eventually(lambda: discovery.feed.seen is None, "the end of the follower")


async def test_a_watch_of_a_place_that_cannot_be_is_refused(discovery: Discovery) -> None:
    with pytest.raises(InvalidId):
        await anext(discovery.watch("a:b"))
