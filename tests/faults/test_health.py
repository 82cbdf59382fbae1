"""The health of real servers while they die, hang and close their ports, as one checker or several see it.

Invariants: who is dead, stopped or does not answer is suspect within 20 s, and gets no new user from then on;
each turn is told once, by every checker and in the feed; who beats is not counted dead; who recovers is back.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from roost.api.discovery import Change
from roost.balancing import LoadBalancer
from roost.discovery.service import Discovery
from roost.store.keys.discovery import discovery_keys
from roost.store.store import Store
from roost.testing import RunningServer, eventually, open_store

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SERVERS = ("s1", "s2", "s3", "s4", "s5")
KILLED, STOPPED, BLOCKED = "s1", "s2", "s3"
SUSPECT_WITHIN_S = 20.0
"""The bound of G2."""
KEYS = tuple(f"user-{n}" for n in range(1000))
HEARD_WITHIN_S = 0.5
"""From the store's decision until a balancer in another process has heard of it, on a busy machine."""


class Process:
    """One process, and the lines of JSON that it printed."""

    def __init__(self, out: Path, module: str, *args: str) -> None:
        self._out = out
        with out.open("wb") as stream:
            command = [sys.executable, "-m", f"tests.faults.{module}", *args]
            self._process = subprocess.Popen(command, stdout=stream, stderr=stream, cwd=ROOT)

    def lines(self) -> list[dict[str, Any]]:
        whole = self._out.read_text().rpartition("\n")[0].splitlines()
        return [json.loads(line) for line in whole if line.startswith("{")]

    def is_ready(self) -> bool:
        assert self._process.poll() is None, self._out.read_text()
        return bool(self.lines())

    def told(self) -> Counter[tuple[str, str]]:
        """(callback, server id) → how often."""
        return Counter(
            (line["event"], line["serverId"])
            for line in self.lines()
            if line["event"] in ("unhealthy", "recovered")
        )

    def latest_call(self, event: str) -> dict[str, float]:
        """Server id → when this callback came, as time of day."""
        return {line["serverId"]: line["at"] for line in self.lines() if line["event"] == event}

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
        self._process.wait()


class Town:
    """Five servers and their checkers, what discovery said of them, and whom a balancer chose meanwhile."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder, self._url = folder, url
        self.servers: dict[str, Process] = {}
        self.checkers: list[Process] = []
        self.seen: list[Change] = []
        self.chosen: list[tuple[float, frozenset[str]]] = []
        """(time, everybody who was given one of a thousand users then)."""
        self.struck_at: dict[str, float] = {}

    async def start(self, store: Store, checkers: int) -> None:
        for server_id in SERVERS:
            self.servers[server_id] = Process(
                self._folder / server_id, "checked_server", self._url, server_id
            )
        await eventually(lambda: all(s.is_ready() for s in self.servers.values()), "the servers")
        self.checkers = [
            Process(self._folder / f"checker-{n}", "checker", self._url) for n in range(checkers)
        ]
        key = discovery_keys(store.keys)["checkers"]

        async def all_vote() -> bool:
            return all(c.is_ready() for c in self.checkers) and (
                await store.call("ZCARD", key, key=key) == checkers
            )

        await eventually(all_vote, "the checkers' first votes")

    def end(self) -> None:
        for process in (*self.servers.values(), *self.checkers):
            process.end()

    def strike(self, server_id: str, number: signal.Signals) -> None:
        self.struck_at[server_id] = time.time()
        self.servers[server_id].send(number)

    def suspected_at(self, server_id: str) -> list[float]:
        """When the store decided it, for every entry of the feed that says so."""
        return [_at(change) for change in self.seen_of(server_id) if change.status == "suspect"]

    def seen_of(self, server_id: str) -> list[Change]:
        return [change for change in self.seen if change.server_id == server_id]

    async def suspected(self, *server_ids: str) -> None:
        """Wait for the suspicion of all of them, and hold it against the bound."""
        await eventually(
            lambda: all(self.suspected_at(server_id) for server_id in server_ids),
            f"suspicion of {', '.join(server_ids)}",
            SUSPECT_WITHIN_S + 5,
        )
        for server_id in server_ids:
            took_s = self.suspected_at(server_id)[0] - self.struck_at[server_id]
            print(f"{server_id}: suspect after {took_s:.1f} s")
            assert took_s <= SUSPECT_WITHIN_S

    def gave_users_to(self, server_id: str, since: float, until: float = float("inf")) -> list[float]:
        """When it was given users, in seconds after `since`."""
        return [
            round(at - since, 3)
            for at, servers in self.chosen
            if since <= at < until and server_id in servers
        ]


def _at(change: Change) -> float:
    return int(change.revision_at) / 1e6


@contextlib.asynccontextmanager
async def observed(town: Town, discovery: Discovery) -> AsyncIterator[LoadBalancer]:
    """Watch discovery, and let a balancer that follows it choose again and again."""

    async def watch() -> None:
        async for change in discovery.watch("game"):
            if change.event != "snapshot":
                town.seen.append(change)

    async def choose(balancer: LoadBalancer) -> None:
        while True:
            at = time.time()
            town.chosen.append((at, frozenset(balancer.get_server_id(key) or "" for key in KEYS)))
            await asyncio.sleep(0.05)

    async with LoadBalancer.following(discovery, "game") as balancer:
        tasks = [asyncio.create_task(watch()), asyncio.create_task(choose(balancer))]
        try:
            yield balancer
            assert not any(task.done() for task in tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
def town(tmp_path: Path, valkey: RunningServer) -> Iterator[Town]:
    town = Town(tmp_path, valkey.url)
    yield town
    town.end()


@pytest.fixture
async def store(valkey: RunningServer) -> AsyncIterator[Store]:
    async with open_store(valkey.url) as store:
        yield store


@pytest.mark.parametrize(("checkers", "lost"), [(1, 0), (3, 1)], ids=["one checker", "two of three"])
async def test_g2_the_killed_the_stopped_and_the_blocked_are_suspect_in_time_and_told_once(
    town: Town, store: Store, checkers: int, lost: int
) -> None:
    discovery = Discovery(store)
    await town.start(store, checkers)
    async with observed(town, discovery) as balancer:
        await eventually(lambda: sorted(balancer.available) == list(SERVERS), "everybody to take users")
        ids = {i.server_id: i.instance_id for i in (await discovery.discover("game")).instances}
        for checker in town.checkers[:lost]:
            checker.send(signal.SIGKILL)
        survivors = town.checkers[lost:]

        # One first, and the others when it is gone: three of five would look like a fault of the checkers.
        town.strike(KILLED, signal.SIGKILL)
        await town.suspected(KILLED)
        await eventually(lambda: town.seen_of(KILLED)[-1].event == "removed", "the end of the killed", 40)
        print(f"{KILLED}: ended after {_at(town.seen_of(KILLED)[-1]) - town.struck_at[KILLED]:.1f} s")
        town.strike(STOPPED, signal.SIGSTOP)
        town.strike(BLOCKED, signal.SIGUSR1)
        await town.suspected(STOPPED, BLOCKED)

        async def are_found_ill() -> bool:
            """By the checkers too: silence alone ends with the first beat, and they would suspect it anew."""
            details = [await discovery.get(ids[server_id]) for server_id in (STOPPED, BLOCKED)]
            return all(d.instance is not None and d.instance.unhealthy for d in details)

        await eventually(are_found_ill, "the votes")
        mended_at = time.time()
        town.servers[STOPPED].send(signal.SIGCONT)
        town.servers[BLOCKED].send(signal.SIGUSR2)
        await eventually(
            lambda: sorted(balancer.available) == [s for s in SERVERS if s != KILLED], "the recoveries", 30
        )

        def all_told() -> bool:
            return all(len(checker.told()) == 5 for checker in survivors)

        await eventually(all_told, "the callbacks")
        chosen_by_now = len(town.chosen)
        await eventually(lambda: len(town.chosen) > chosen_by_now + 1, "another thousand users")

    for server_id in (STOPPED, BLOCKED):
        recovered_at = _at(town.seen_of(server_id)[-1])
        print(f"{server_id}: recovered after {recovered_at - mended_at:.1f} s")
    for server_id, turns in (
        (KILLED, [("changed", "suspect"), ("removed", "no-response")]),
        (STOPPED, [("changed", "suspect"), ("changed", "ready")]),
        (BLOCKED, [("changed", "suspect"), ("changed", "ready")]),
    ):
        assert [(change.event, change.status) for change in town.seen_of(server_id)] == turns
        decided_at, turned_at = map(_at, town.seen_of(server_id))
        until = float("inf") if server_id == KILLED else turned_at
        late = town.gave_users_to(server_id, decided_at, until)
        print(f"{server_id}: given users until {max(late, default=0.0):.3f} s after the decision")
        assert max(late, default=0.0) < HEARD_WITHIN_S
    assert {change.server_id for change in town.seen} == {KILLED, STOPPED, BLOCKED}
    assert town.chosen[-1][1] == set(SERVERS) - {KILLED}
    assert (await discovery.get(ids[KILLED])).status == "no-response"
    for checker in survivors:
        assert checker.told() == {
            ("unhealthy", KILLED): 1,
            ("unhealthy", STOPPED): 1,
            ("unhealthy", BLOCKED): 1,
            ("recovered", STOPPED): 1,
            ("recovered", BLOCKED): 1,
        }
        for server_id, called_at in checker.latest_call("unhealthy").items():
            assert called_at - town.struck_at[server_id] <= SUSPECT_WITHIN_S
            assert called_at - town.suspected_at(server_id)[0] < HEARD_WITHIN_S
