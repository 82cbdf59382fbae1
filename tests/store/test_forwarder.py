"""Forwarding on a real store: in order, at least once, by one of them, and no gap in silence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from roost.app import Platform
from roost.core.errors import Unavailable
from roost.core.events import Mark
from roost.core.lease import Tenure
from roost.forward.event import ForwardedEvent
from roost.forward.forwarder import Forwarder
from roost.forward.marks import Marks
from roost.forward.sources import wanted_sources
from roost.sdk.client import Client
from roost.sdk.connect import connect
from roost.settings import Settings
from roost.store import scopes
from roost.store.store import Store
from roost.testing import eventually


class Receiver:
    """Takes what it is sent, unless it is told not to."""

    def __init__(self) -> None:
        self.got: list[ForwardedEvent] = []
        self.refuses = False
        self.refused = 0

    async def send(self, events: Sequence[ForwardedEvent]) -> None:
        if self.refuses:
            self.refused += 1
            raise Unavailable("the receiver is away")
        self.got += events

    @property
    def words(self) -> list[str]:
        return [event.event for event in self.got]


@asynccontextmanager
async def forwarding(platform: Platform, receiver: Receiver, name: str = "main") -> AsyncIterator[Forwarder]:
    store = platform.store
    forwarder = Forwarder(
        wanted_sources(platform, {"discovery"}),
        receiver,
        Marks(store, name),
        store.leader(scopes.forward(name), "test"),
        100,
        store.loops,
    )
    task = asyncio.create_task(forwarder.run())
    try:
        yield forwarder
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def platform(store: Store) -> Platform:
    return Platform(Settings(), store)


@pytest.fixture
async def client(platform: Platform) -> AsyncIterator[Client]:
    async with connect(platform) as client:
        yield client


async def register(client: Client, *names: str) -> None:
    for name in names:
        await client.register(type="game", group="kr-1", server_id=name, ports={"ws": 1})


async def test_every_event_is_told_once_and_in_order_from_the_first_start_on(
    platform: Platform, client: Client
) -> None:
    receiver = Receiver()
    await register(client, "before")
    async with forwarding(platform, receiver):
        await eventually(lambda: receiver.words == ["begin"], "the beginning")
        await register(client, *map(str, range(20)))
        await eventually(lambda: len(receiver.got) == 21, "all of them", details=lambda: str(receiver.words))

    assert [event.subject for event in receiver.got[1:]] == [f"game/{n}" for n in range(20)]
    assert len({event.id for event in receiver.got}) == 21


async def test_the_next_forwarder_goes_on_where_the_last_one_was(platform: Platform, client: Client) -> None:
    first, second = Receiver(), Receiver()
    async with forwarding(platform, first):
        await eventually(lambda: first.words == ["begin"], "the beginning")
        await register(client, "501")
        await eventually(lambda: len(first.got) == 2, "the first")
    await register(client, "502", "503")

    async with forwarding(platform, second):
        await eventually(lambda: len(second.got) == 2, "what happened meanwhile")

    assert [event.subject for event in second.got] == ["game/502", "game/503"]


async def test_a_receiver_that_is_away_gets_everything_later_and_nothing_is_marked_before(
    platform: Platform, client: Client
) -> None:
    receiver = Receiver()
    async with forwarding(platform, receiver):
        await eventually(lambda: receiver.words == ["begin"], "the beginning")
        receiver.refuses = True
        await register(client, "501", "502")
        await eventually(lambda: receiver.refused >= 2, "attempts")
        assert len(receiver.got) == 1
        receiver.refuses = False
        await eventually(lambda: len(receiver.got) == 3, "what was held up")

    assert [event.subject for event in receiver.got[1:]] == ["game/501", "game/502"]


async def test_two_of_one_name_do_not_both_forward(platform: Platform, client: Client) -> None:
    one, other = Receiver(), Receiver()
    async with forwarding(platform, one) as first:
        await eventually(lambda: one.words == ["begin"], "the beginning")
        async with forwarding(platform, other) as second:
            await register(client, *map(str, range(10)))
            await eventually(lambda: len(one.got) == 11, "all of them")
            assert (first.leads, second.leads) == (True, False)
            assert not other.got


async def test_one_of_another_name_forwards_for_itself(platform: Platform, client: Client) -> None:
    one, other = Receiver(), Receiver()
    async with forwarding(platform, one), forwarding(platform, other, "audit-log"):
        await eventually(lambda: one.words == other.words == ["begin"], "both to begin")
        await register(client, "501")
        await eventually(lambda: len(one.got) == len(other.got) == 2, "both to be told")


async def test_a_feed_that_does_not_reach_back_is_told_as_a_gap_and_never_in_silence(
    platform: Platform, client: Client
) -> None:
    receiver, store = Receiver(), platform.store
    async with forwarding(platform, receiver):
        await eventually(lambda: receiver.words == ["begin"], "the beginning")
        await register(client, "501")
        await eventually(lambda: len(receiver.got) == 2, "the first")
    await register(client, "502", "503", "504")
    feed = store.keys.feed(scopes.discovery())
    await store.call("XTRIM", feed, "MAXLEN", 1, key=feed)

    async with forwarding(platform, receiver) as forwarder:
        await eventually(
            lambda: receiver.words[2:] == ["gap"], "the gap", details=lambda: str(receiver.words)
        )
        await register(client, "505")
        await eventually(lambda: len(receiver.got) == 4, "what comes after it")
        assert forwarder.gaps == 1

    told = receiver.got[2]
    assert told.level == "warning"
    assert told.details["after"] == receiver.got[1].id.rpartition("/")[2]
    assert receiver.got[3].subject == "game/505"


async def test_a_store_that_was_wiped_is_a_gap_too(platform: Platform, client: Client) -> None:
    receiver, store = Receiver(), platform.store
    async with forwarding(platform, receiver):
        await eventually(lambda: receiver.words == ["begin"], "the beginning")
        await register(client, "501")
        await eventually(lambda: len(receiver.got) == 2, "the first")
        feed = store.keys.feed(scopes.discovery())
        await store.call("DEL", feed, key=feed)
        await register(client, "502")
        await eventually(lambda: "gap" in receiver.words, "the gap")


async def test_one_that_does_not_lead_any_more_marks_nothing(store: Store) -> None:
    marks, lease = Marks(store, "main"), store.leader(scopes.forward("main"), "test")
    tenure = await lease.campaign()
    assert isinstance(tenure, Tenure)
    await marks.keep(tenure, "discovery", Mark(7, 70))
    await lease.resign()

    with pytest.raises(Unavailable, match="another forwarder leads"):
        await marks.keep(tenure, "discovery", Mark(8, 80))

    assert await marks.of("discovery") == Mark(7, 70)
    assert await marks.of("audit") is None
