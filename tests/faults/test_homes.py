"""Users keep one home each while homes, gates and the store's primary fail (G7, G9).

Two gates and four entity servers as real processes, and a crowd that has numbers written into its books. In
the end every number is there at most once and in order, and every acknowledged one is there, but for those
that a home had answered within its write-back window before it failed; with the journal all of them, but for
those of a home that failed while the store lost writes.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest

from roost.testing import SentinelGroup, run_sentinel, run_valkey
from roost.testing.databases import missing_database, run_postgresql
from tests.faults.book import WINDOW_MS
from tests.faults.homes import GATES, HOMES, Acknowledged, Crowd, Town
from tests.faults.test_launch import cut_off_replicas

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

USERS = 300
MESSAGES_PER_S = 300.0
LEASE_S = 6.0
CALM_S = 4.0
"""Between two faults: everybody is served again, so that each fault is alone."""
END_S = 40.0
SLACK_S = 1.5
"""A write that is due, or an answer on its way, may take so long on a busy machine."""


FROZEN_S = 12.0
"""Longer than a lease and than a message may take, and shorter than the silence that ends a connection."""
SHORT = {
    "ROOST_BINDING__LEASE_MS": "3000",
    "ROOST_BINDING__BEAT_MS": "1000",
    "ROOST_GATE__TIMEOUT_MS": "9000",
}


class Open(Protocol):
    def __call__(self, store: str, book: str, database: str, **settings: str) -> Town: ...


@pytest.fixture
def open_town(tmp_path: Path) -> Iterator[Open]:
    towns: list[Town] = []

    def opened(store: str, book: str, database: str, **settings: str) -> Town:
        towns.append(Town(tmp_path, store, database, book, settings=settings))
        towns[-1].start()
        return towns[-1]

    yield opened
    for town in towns:
        town.end()


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty one, of the kind that the test is given."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'users.db'}"
        return
    if reason := missing_database(request.param):
        pytest.skip(reason)
    with run_postgresql() as server:
        yield server.url


class Fault(NamedTuple):
    """What happened, from when until everybody was served again."""

    name: str
    began: float
    ended: float


class Failed(NamedTuple):
    """A home was killed or frozen."""

    home: str
    at: float


class Faults:
    """Each in turn; when it happened is remembered."""

    def __init__(self, town: Town, group: SentinelGroup) -> None:
        self._town = town
        self._group = group
        self._homes, self._gates = list(HOMES), list(GATES)
        self.past: list[Fault] = []
        self.failed: list[Failed] = []

    async def home_killed(self) -> None:
        self._fails(self._homes[0])
        self._town.kill(self._homes[0])
        await asyncio.sleep(LEASE_S + CALM_S)

    async def home_frozen(self) -> None:
        self._fails(self._homes[1])
        with self._town.frozen(self._homes[1]):
            await asyncio.sleep(LEASE_S + 3.0)
        await asyncio.sleep(CALM_S)

    async def gate_killed(self) -> None:
        self._town.kill(self._gates[0])
        await asyncio.sleep(CALM_S)

    async def gate_frozen(self) -> None:
        with self._town.frozen(self._gates[1]):
            await asyncio.sleep(3.0)
        await asyncio.sleep(CALM_S)

    async def failover(self) -> None:
        """The primary dies and takes its last second of writes along."""
        primary = self._group.primary()
        cut_off_replicas(primary)
        await asyncio.sleep(1.0)
        primary.kill()
        await asyncio.to_thread(self._group.wait_for_new_primary, primary.port)
        await asyncio.sleep(LEASE_S + CALM_S)

    def _fails(self, home: str) -> None:
        self.failed.append(Failed(home, time.monotonic()))

    async def play(self, *names: str) -> None:
        for name in names:
            began = time.monotonic()
            fault: Callable[[], Awaitable[None]] = getattr(self, name)
            await fault()
            self.past.append(Fault(name, began, time.monotonic()))
            print(f"\n{name}: {time.monotonic() - began:.1f} s", end="")

    async def play_at_random(self, seconds: float) -> None:
        """One after the other begins, whether the one before is over or not; each hits whom it hits."""
        ends, playing = time.monotonic() + seconds, list[asyncio.Task[None]]()
        names = [
            "failover",
            *random.choices(("home_killed", "home_frozen", "gate_killed", "gate_frozen"), k=99),
        ]
        while time.monotonic() < ends and names:
            self._homes, self._gates = random.sample(HOMES, 2), random.sample(GATES, 2)
            playing.append(asyncio.create_task(self.play(names.pop(random.randrange(min(3, len(names)))))))
            await asyncio.sleep(random.uniform(4.0, 12.0))
        await asyncio.gather(*playing)

    def explain(self, lost: Acknowledged) -> bool:
        """Whether its own home failed within the write-back window after it; nothing else is a reason."""
        window_s = WINDOW_MS / 1000 + SLACK_S
        return any(home == lost.home and at - window_s <= lost.at <= at + SLACK_S for home, at in self.failed)

    def explain_together(self, lost: Acknowledged) -> bool:
        """Whether its own home failed after it while a failover lost writes, this one among them, perhaps.

        That is where even a journal loses: who has the tail is gone, and so is the store's copy.
        """
        return any(
            home == lost.home and fault.began - SLACK_S <= lost.at <= at + SLACK_S and at <= fault.ended
            for fault in self.past
            if fault.name == "failover"
            for home, at in self.failed
        )


async def evening(
    town: Town, group: SentinelGroup, *names: str, users: int = USERS, random_s: float = 0.0
) -> tuple[Faults, list[Acknowledged]]:
    """Everybody writes while these faults happen, or random ones for so long; what was lost."""
    crowd, faults = Crowd(town, users, messages_per_s=max(MESSAGES_PER_S, users / 5)), Faults(town, group)
    try:
        await crowd.come()
        await asyncio.sleep(CALM_S)
        await faults.play(*names)
        await faults.play_at_random(random_s)
        before = crowd.acknowledged()
        await asyncio.sleep(CALM_S)
        assert crowd.acknowledged() > before, "nobody is served in the end"
        await crowd.leave(END_S)
    finally:
        crowd.close()
    print(f"\n{crowd.summary()}")
    return faults, crowd.judge()


@pytest.mark.parametrize(
    ("database", "names"),
    [
        ("sqlite", ("home_killed", "home_frozen", "gate_killed", "gate_frozen", "failover")),
        ("postgresql", ("home_killed", "home_frozen", "failover")),
    ],
    indirect=["database"],
    ids=["sqlite", "postgresql"],
)
async def test_g9_with_the_journal_nothing_acknowledged_is_lost(
    open_town: Open, database: str, names: tuple[str, ...]
) -> None:
    with run_sentinel() as group:
        town = open_town(group.url, "book:JournaledBook", database)
        _, lost = await evening(town, group, *names)
        assert lost == []


@pytest.mark.parametrize(
    ("database", "users", "names"),
    [
        ("sqlite", USERS, ("home_killed", "home_frozen", "failover", "gate_killed")),
        ("postgresql", 150, ("home_killed", "home_frozen")),
    ],
    indirect=["database"],
    ids=["sqlite", "postgresql"],
)
async def test_g9_without_it_a_crash_loses_no_more_than_the_window(
    open_town: Open, database: str, users: int, names: tuple[str, ...]
) -> None:
    with run_sentinel() as group:
        town = open_town(group.url, "book:Book", database)
        faults, lost = await evening(town, group, *names, users=users)
        print(f"{len(lost)} acknowledged messages lost with the window of {WINDOW_MS} ms")
        assert [one for one in lost if not faults.explain(one)] == [], faults.failed


async def test_g9_a_home_that_is_frozen_for_longer_than_a_message_may_take_costs_no_outcome(
    open_town: Open, tmp_path: Path
) -> None:
    with run_valkey() as store:
        town = open_town(store.url, "book:JournaledBook", f"sqlite:///{tmp_path / 'users.db'}", **SHORT)
        crowd = Crowd(town, 80, messages_per_s=80.0)
        try:
            await crowd.come()
            with town.frozen(HOMES[1]):
                await asyncio.sleep(FROZEN_S)
            await asyncio.sleep(CALM_S)
            await crowd.leave(END_S)
        finally:
            crowd.close()
        print(f"\n{crowd.summary()}")
        assert crowd.judge() == []
        assert crowd.unknown() == 0


@pytest.mark.parametrize(
    ("database", "users", "seconds"),
    [("sqlite", 2000, 60.0), ("postgresql", 500, 40.0)],
    indirect=["database"],
    ids=["sqlite", "postgresql"],
)
async def test_g7_two_thousand_users_and_a_minute_of_random_faults(
    open_town: Open, database: str, users: int, seconds: float
) -> None:
    """With fewer users for less long on the second database."""
    with run_sentinel() as group:
        town = open_town(group.url, "book:JournaledBook", database)
        faults, lost = await evening(town, group, users=users, random_s=seconds)
        by_one = [one for one in lost if not faults.explain_together(one)]
        print(f"{len(lost) - len(by_one)} acknowledged messages lost by faults that coincided")
        assert by_one == [], (faults.failed, faults.past)
