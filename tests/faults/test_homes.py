"""Users keep one home each while homes, gates and the store's primary fail (G7, G9).

Two gates and four entity servers as real processes, and a crowd that has numbers written into its books. In
the end every number is there at most once and in order, and every acknowledged one is there, but for the
write-back window of a home that failed; with the journal all of them.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from roost.testing import SentinelGroup, run_sentinel
from roost.testing.databases import PostgresqlServer, missing_database, run_postgresql
from tests.faults.book import WINDOW_MS
from tests.faults.homes import GATES, HOMES, Crowd, Town
from tests.faults.test_launch import cut_off_replicas

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

USERS = 300
MESSAGES_PER_S = 300.0
LEASE_S = 6.0
CALM_S = 4.0
"""Between two faults: everybody is served again, so that each fault is alone."""
END_S = 40.0
SLACK_S = 1.5
"""A write that is due may take so long on a busy machine."""


Open = Callable[..., Town]


@pytest.fixture
def open_town(tmp_path: Path) -> Iterator[Open]:
    towns: list[Town] = []

    def opened(store: str, book: str, database: str = "") -> Town:
        towns.append(Town(tmp_path, store, database or f"sqlite:///{tmp_path / 'users.db'}", book))
        towns[-1].start()
        return towns[-1]

    yield opened
    for town in towns:
        town.end()


@pytest.fixture
def postgresql() -> Iterator[PostgresqlServer]:
    if reason := missing_database("postgresql"):
        pytest.skip(reason)
    with run_postgresql() as server:
        yield server


class Faults:
    """Each in turn; when it happened is remembered."""

    def __init__(self, town: Town, group: SentinelGroup) -> None:
        self._town = town
        self._group = group
        self._homes, self._gates = list(HOMES), list(GATES)
        self.at: list[tuple[str, float, float]] = []
        """What happened, from when to when."""

    async def home_killed(self) -> None:
        self._town.kill(self._homes[0])
        await asyncio.sleep(LEASE_S + CALM_S)

    async def home_frozen(self) -> None:
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

    async def play(self, *names: str) -> None:
        for name in names:
            began = time.monotonic()
            fault: Callable[[], Awaitable[None]] = getattr(self, name)
            await fault()
            self.at.append((name, began, time.monotonic()))
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

    def coincided(self) -> bool:
        """Whether the store lost writes while a home was down: then even a journal loses some."""
        failovers = [(began, ended) for name, began, ended in self.at if name == "failover"]
        homes = [(began, ended) for name, began, ended in self.at if name.startswith("home")]
        return any(a < d and c < b for a, b in failovers for c, d in homes)

    def explains(self, at: float) -> bool:
        """Whether an answer of that moment lay in the window of a fault."""
        window = WINDOW_MS / 1000 + SLACK_S
        return any(began - window <= at <= ended for _, began, ended in self.at)


async def evening(
    town: Town, group: SentinelGroup, *names: str, users: int = USERS, random_s: float = 0.0
) -> tuple[Faults, dict[int, float]]:
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


async def test_g9_with_the_journal_nothing_acknowledged_is_lost(open_town: Open) -> None:
    with run_sentinel() as group:
        town = open_town(group.url, "book:JournaledBook")
        faults = ("home_killed", "home_frozen", "gate_killed", "gate_frozen", "failover")
        _, lost = await evening(town, group, *faults)
        assert lost == {}


async def test_g9_nothing_acknowledged_is_lost_on_postgresql(
    open_town: Open, postgresql: PostgresqlServer
) -> None:
    with run_sentinel() as group:
        town = open_town(group.url, "book:JournaledBook", postgresql.url)
        _, lost = await evening(town, group, "home_killed", "home_frozen", "failover")
        assert lost == {}


async def test_g9_without_it_a_crash_loses_no_more_than_the_window(open_town: Open) -> None:
    with run_sentinel() as group:
        town = open_town(group.url, "book:Book")
        faults, lost = await evening(town, group, "home_killed", "home_frozen", "failover")
        print(f"{len(lost)} acknowledged messages lost with the window of {WINDOW_MS} ms")
        assert all(faults.explains(at) for at in lost.values())


async def test_g7_two_thousand_users_and_a_minute_of_random_faults(open_town: Open) -> None:
    with run_sentinel() as group:
        town = open_town(group.url, "book:JournaledBook")
        faults, lost = await evening(town, group, users=2000, random_s=60.0)
        print(f"{len(lost)} acknowledged messages lost, faults coincided: {faults.coincided()}")
        assert lost == {} or faults.coincided()
