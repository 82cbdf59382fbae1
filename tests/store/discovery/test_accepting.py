"""May this server take a new user? One answer in lists, changes, reads and balancers, also in panic."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from roost.api.discovery import Beat, Change, Instance, Override, RegisterInput
from roost.balancing.balancer import LoadBalancer
from roost.core.events import Mark
from roost.discovery.service import Discovery
from roost.store.store import Store
from roost.testing import eventually
from tests.store.discovery.fleet import Fleet

HANGS = Beat(tick_age_ms=3_600_000)
"""A beat that makes its server suspect at once."""


@pytest.fixture
def discovery(store: Store) -> Discovery:
    return Discovery(store)


class Follower:
    """A reader as anybody may write one: it knows what snapshot and changes say, and computes nothing."""

    def __init__(self, discovery: Discovery, *wanted: Any) -> None:
        self.known: dict[str, Instance] = {}
        self.heard: list[Change] = []
        self._discovery, self._wanted = discovery, wanted
        self._stream = discovery.watch(*wanted)
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async for change in self._stream:
            self.hear(change)

    def hear(self, change: Change) -> None:
        self.heard.append(change)
        if change.event == "snapshot":
            self.known = {instance.instance_id: instance for instance in change.instances or ()}
        elif change.instance is None:
            self.known.pop(change.instance_id, None)
        else:
            self.known[change.instance_id] = change.instance

    async def agrees(self) -> None:
        """It says what a fresh list says."""
        fresh = answers((await self._discovery.discover(*self._wanted)).instances)
        await eventually(
            lambda: bool(self.heard) and answers(self.known.values()) == fresh,
            f"{self._wanted}: fresh {fresh}",
            details=lambda: str(answers(self.known.values())),
        )

    async def go_on(self) -> None:
        """Hang up, and go on from the last change that was heard."""
        await self.stop()
        if self.heard:
            last = self.heard[-1]
            mark = Mark(last.revision, int(last.revision_at))
            self._stream = self._discovery.watch(*self._wanted, after=mark)  # type: ignore[misc]
        else:
            self._stream = self._discovery.watch(*self._wanted)
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._stream.aclose()  # type: ignore[attr-defined]


def answers(instances: Any) -> dict[str, tuple[Any, ...]]:
    """What a reader acts on. Load, last beat, and why it is suspect, are not always told and may lag."""
    return {
        i.instance_id: (i.life, i.status, i.accepting, i.willing, i.weight, i.override) for i in instances
    }


@contextlib.asynccontextmanager
async def following(discovery: Discovery, *wanted: Any) -> AsyncIterator[Follower]:
    follower = Follower(discovery, *wanted)
    try:
        await follower.agrees()
        yield follower
    finally:
        await follower.stop()


async def add(discovery: Discovery, *ids: str, **fields: Any) -> None:
    for id_ in ids:
        given = {"type": "game", "group": "eu", "instance_id": id_, **fields}
        await discovery.register(RegisterInput(**given))


async def hang(discovery: Discovery, *ids: str) -> None:
    for id_ in ids:
        await discovery.heartbeat(id_, HANGS)


async def beat(discovery: Discovery, *ids: str) -> None:
    for id_ in ids:
        await discovery.heartbeat(id_, Beat())


async def accepting(discovery: Discovery) -> list[str]:
    return [i.instance_id for i in (await discovery.discover()).instances if i.accepting]


EIGHT = [f"s{n}" for n in range(8)]


async def test_where_all_are_suspect_lists_changes_reads_and_balancers_say_the_same(
    discovery: Discovery,
) -> None:
    await add(discovery, *EIGHT)
    async with (
        LoadBalancer.following(discovery, "game") as early,
        following(discovery, "game", "eu") as heard,
    ):
        await hang(discovery, *EIGHT)

        assert await accepting(discovery) == EIGHT
        await heard.agrees()
        await eventually(lambda: early.available == EIGHT, "the balancer routes in panic too")
        for id_ in EIGHT:
            one = (await discovery.get(id_)).instance
            assert one is not None
            assert (one.status, one.accepting, one.willing) == ("suspect", True, True)
        async with LoadBalancer.following(discovery, "game") as late:
            assert late.available == EIGHT


async def test_a_balancer_born_in_panic_leaves_the_suspect_out_when_it_is_over(discovery: Discovery) -> None:
    await add(discovery, *EIGHT)
    await hang(discovery, *EIGHT)
    async with LoadBalancer.following(discovery, "game") as balancer:
        assert balancer.available == EIGHT
        await beat(discovery, *EIGHT[1:])
        await eventually(lambda: balancer.available == EIGHT[1:], "only s0 is suspect now")
        assert await accepting(discovery) == EIGHT[1:]


async def test_one_entry_of_the_feed_tells_that_a_panic_begins_and_one_that_it_ends(fleet: Fleet) -> None:
    for id_ in EIGHT:
        await fleet.add(id_)
    for id_ in EIGHT:
        await fleet.beat(id_, tick_age_ms=3_600_000)
    for id_ in EIGHT:
        await fleet.beat(id_)
    flips = [e.fields for e in await fleet.feed() if e.fields["event"] == "panic"]
    assert [(f["service"], f["panic"]) for f in flips] == [("game:eu", "1"), ("game:eu", "0")]


@pytest.mark.parametrize("own_word", ["initializing", "draining"])
async def test_in_panic_the_servers_own_word_still_counts(discovery: Discovery, own_word: Any) -> None:
    await add(discovery, "a", "b", "c")
    await discovery.heartbeat("a", Beat(status=own_word))
    await hang(discovery, "a", "b", "c")
    assert await accepting(discovery) == ["b", "c"]
    async with LoadBalancer.following(discovery, "game") as balancer:
        assert balancer.available == ["b", "c"]


async def test_weight_0_takes_nobody_and_is_not_willing(discovery: Discovery) -> None:
    await add(discovery, "a", weight=0)
    await add(discovery, "b")
    async with following(discovery) as heard:
        assert await accepting(discovery) == ["b"]
        await discovery.override("b", Override(weight=0))
        assert await accepting(discovery) == []
        await heard.agrees()
        assert not any(i.willing for i in heard.known.values())


async def test_an_order_out_of_service_reaches_lists_changes_and_balancers(discovery: Discovery) -> None:
    await add(discovery, "a", "b")
    async with LoadBalancer.following(discovery, "game") as balancer, following(discovery) as heard:
        await discovery.override("a", Override(out_of_service=True))
        assert await accepting(discovery) == ["b"]
        await heard.agrees()
        assert not heard.known["a"].willing
        await eventually(lambda: balancer.available == ["b"], "out of service")


async def test_who_is_full_is_willing_and_does_not_accept(discovery: Discovery) -> None:
    await add(discovery, "a", capacity=1000, load=999)
    async with following(discovery) as heard, LoadBalancer.following(discovery, "game") as balancer:
        await discovery.heartbeat("a", Beat(load=1000))
        await heard.agrees()
        assert (heard.known["a"].accepting, heard.known["a"].willing) == (False, True)
        await eventually(lambda: balancer.available == [], "full")
        await discovery.heartbeat("a", Beat(load=999))
        await heard.agrees()
        assert heard.known["a"].accepting


async def test_a_panic_reaches_those_who_watch_by_labels(discovery: Discovery) -> None:
    await add(discovery, "a", "b", "c", labels={"map": "ice"})
    await add(discovery, "d", labels={"map": "fire"})
    async with following(discovery, "*", "*", ["map=fire"]) as heard:
        await hang(discovery, "d", "a")
        await heard.agrees()
        assert not heard.known["d"].accepting
        await hang(discovery, "b")
        await heard.agrees()
        assert heard.known["d"].accepting, "what happened to others made it take users"
        await discovery.remove("a")
        await discovery.remove("b")
        await heard.agrees()
        assert not heard.known["d"].accepting
        assert set(heard.known) == {"d"}


async def test_who_goes_on_from_the_midst_of_a_panic_misses_nothing(discovery: Discovery) -> None:
    await add(discovery, "a", "b", "c")
    async with following(discovery) as heard:
        await hang(discovery, "a", "b", "c")
        await heard.agrees()
        told = [change for change in heard.heard if change.event == "changed"]
    for last in told:
        async with following(discovery) as late:
            late.heard = [change for change in told if change.revision <= last.revision]
            await late.go_on()
            await beat(discovery, "b", "c")
            await late.agrees()
            await hang(discovery, "b", "c")
            await late.agrees()


async def test_a_new_life_under_the_same_record_is_told_as_added_with_its_life(discovery: Discovery) -> None:
    await add(discovery, "a")
    async with following(discovery) as heard:
        before = heard.known["a"].life
        await add(discovery, "a")
        await heard.agrees()
        last = heard.heard[-1]
        assert (last.event, last.instance_id) == ("added", "a")
        assert last.life == heard.known["a"].life != before


async def test_a_suspect_that_registers_again_is_not_suspect_any_more(discovery: Discovery) -> None:
    await add(discovery, "a", "b", "c")
    await hang(discovery, "a", "b")
    async with following(discovery) as heard:
        assert heard.known["a"].accepting, "panic"
        await add(discovery, "b")
        await heard.agrees()
        assert not heard.known["a"].accepting


async def test_a_panic_of_one_service_is_nothing_to_another(discovery: Discovery) -> None:
    await add(discovery, "a", "b")
    await add(discovery, "c", "d", "e", group="us")
    await hang(discovery, "a", "b", "c")
    assert await accepting(discovery) == ["a", "b", "d", "e"]


async def test_a_suspect_that_moves_to_another_service_is_counted_there_no_more(discovery: Discovery) -> None:
    await add(discovery, "a", "b", "c")
    await hang(discovery, "a", "b")
    await add(discovery, "b", group="us")
    assert await accepting(discovery) == ["b", "c"]


@pytest.mark.parametrize(
    ("suspects", "total", "panic"),
    [(1, 1, False), (1, 2, False), (2, 2, True), (2, 3, True), (5, 10, False), (6, 10, True)],
)
async def test_more_than_half_suspect_is_a_panic(
    discovery: Discovery, suspects: int, total: int, panic: bool
) -> None:
    ids = [f"s{n}" for n in range(total)]
    await add(discovery, *ids)
    await hang(discovery, *ids[:suspects])
    assert (await accepting(discovery) == ids) is panic
