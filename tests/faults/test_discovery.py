"""Discovery while things die. Real instances, real gateways, every shape of store.

Invariants: nobody who is alive is evicted; who is dead is suspect within 20 s and out when its lease ends;
each death is told exactly once; a watcher misses nothing, or is told to take a new snapshot.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from roost.api.discovery import Beat, Change, RegisterInput
from roost.core.errors import OutcomeUnknown, RemovedInstance, StoreError, StoreUnavailable
from roost.discovery.service import Discovery
from roost.store.link import LinkOptions
from roost.store.topology.cluster import slot_of
from roost.testing import (
    START_S,
    Fault,
    Fleet,
    RunningCluster,
    RunningServer,
    SentinelGroup,
    eventually,
    free_port,
    open_store,
    run_cluster,
    run_fleet,
    run_sentinel,
    run_valkey,
    wait_until,
)

ROOT = Path(__file__).resolve().parents[2]
TTL_S = 6.0
SUSPECT_WITHIN_S = 20.0
"""The bound of G2."""
OPTIONS = LinkOptions(command_timeout_s=2.0, connect_timeout_s=2.0)


@dataclass
class Shape:
    """A store of some shape, and how to take its primary of discovery away."""

    url: str
    running: RunningServer | SentinelGroup | RunningCluster

    def fail_over(self) -> None:
        """kill -9 of the server that holds discovery; returns when another has taken over."""
        if isinstance(self.running, SentinelGroup):
            primary = self.running.primary()
            primary.kill()
            self.running.wait_for_new_primary(primary.port)
        elif isinstance(self.running, RunningCluster):
            self.running.owner(slot_of(b"{sd}")).kill()
        else:
            self.running.kill()
            self.running.start()


@pytest.fixture(params=["standalone", "sentinel", "cluster"])
def shape(request: pytest.FixtureRequest) -> Iterator[Shape]:
    runners: dict[str, Any] = {
        "standalone": lambda: run_valkey(persistent=True, options=("--appendfsync", "always")),
        "sentinel": run_sentinel,
        "cluster": run_cluster,
    }
    with runners[request.param]() as running:
        yield Shape(running.url, running)


@pytest.fixture
def server() -> Iterator[RunningServer]:
    with run_valkey(persistent=True) as server:
        yield server


class Processes:
    """Fleets and gateways as processes of their own; all are gone at the end."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._gateways = 0

    def fleet(self, url: str, count: int, ttl_s: float = TTL_S, fault: Fault = "") -> Fleet:
        return self._stack.enter_context(run_fleet(url, count, ttl_seconds=ttl_s, fault=fault))

    def gateway(self, url: str) -> subprocess.Popen[bytes]:
        self._gateways += 1
        out = self._folder / f"gateway-{self._gateways}"
        data = self._folder / f"data-{self._gateways}"
        command = [
            sys.executable,
            "-m",
            "roost",
            "gateway",
            "--store",
            url,
            "--port",
            str(free_port()),
            "--data",
            str(data),
        ]
        with out.open("wb") as stream:
            process = subprocess.Popen(command, stdout=stream, stderr=stream, cwd=ROOT)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        wait_until(lambda: "is up" in out.read_text(), "the gateway", out.read_text, START_S)
        return process


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    with contextlib.ExitStack() as stack:
        yield Processes(tmp_path, stack)


@contextlib.asynccontextmanager
async def discovery_on(url: str) -> AsyncIterator[Discovery]:
    async with open_store(url, options=OPTIONS, wait_s=20) as store:
        yield Discovery(store)


@contextlib.asynccontextmanager
async def watching(discovery: Discovery) -> AsyncIterator[list[Change]]:
    """Everything that a watcher saw so far. It retries as the SDK's does."""
    seen: list[Change] = []

    async def watch() -> None:
        while True:
            with contextlib.suppress(StoreError):
                async for change in discovery.watch():
                    seen.append(change)
            await asyncio.sleep(0.05)

    task = asyncio.create_task(watch())
    try:
        await eventually(lambda: bool(seen), "the first snapshot")
        yield seen
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def status_of(discovery: Discovery, instance_id: str) -> str:
    try:
        return (await discovery.get(instance_id)).status
    except StoreUnavailable:
        return "store away"


def ends_of(seen: list[Change]) -> Counter[tuple[str, str]]:
    return Counter((change.instance_id, change.status) for change in seen if change.event == "removed")


@pytest.mark.parametrize("fault", ["kill", "stop", "hang"])
async def test_g2_the_silent_and_the_hung_are_suspect_in_time_and_dead_once(
    server: RunningServer, processes: Processes, fault: str
) -> None:
    processes.gateway(server.url)
    async with discovery_on(server.url) as discovery, watching(discovery) as seen:
        fleet = processes.fleet(server.url, 1, fault="hang" if fault == "hang" else "")
        (instance_id,) = fleet.ids
        struck_at = time.monotonic()
        if fault != "hang":
            (fleet.kill if fault == "kill" else fleet.pause)()

        async def is_suspect() -> bool:
            return await status_of(discovery, instance_id) in ("suspect", "no-response")

        await eventually(is_suspect, "suspicion", SUSPECT_WITHIN_S)
        print(f"{fault}: suspect after {time.monotonic() - struck_at:.1f} s")
        assert all(not i.accepting for i in (await discovery.discover()).instances)
        await eventually(lambda: bool(ends_of(seen)), "the death", 3 * TTL_S)
        assert ends_of(seen) == {(instance_id, "no-response"): 1}


@pytest.mark.parametrize("backends", [2, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.slow
async def test_g2_with_many_sweepers_each_death_is_told_once(
    server: RunningServer, processes: Processes, backends: int
) -> None:
    for _ in range(backends):
        processes.gateway(server.url)
    async with discovery_on(server.url) as discovery, watching(discovery) as seen:
        alive = processes.fleet(server.url, 30, ttl_s=9.0).ids
        doomed = [await discovery.register(RegisterInput("chat", "kr-1", ttl_seconds=3.0)) for _ in range(3)]
        dead = [one.instance_id for one in doomed]
        await eventually(lambda: len(ends_of(seen)) == 3, "the deaths", 40)
        assert ends_of(seen) == {(instance_id, "no-response"): 1 for instance_id in dead}
        assert {i.instance_id for i in (await discovery.discover("game")).instances} == set(alive)


@pytest.mark.slow
async def test_a_gateway_that_is_killed_costs_nobody_anything(
    server: RunningServer, processes: Processes
) -> None:
    first, _ = processes.gateway(server.url), processes.gateway(server.url)
    async with discovery_on(server.url) as discovery, watching(discovery) as seen:
        ids = processes.fleet(server.url, 20).ids
        lost = await _register_mute(discovery)
        first.kill()
        await eventually(
            lambda: ends_of(seen) == {(lost, "no-response"): 1}, "the other gateway's sweep", 3 * TTL_S
        )
        assert {i.instance_id for i in (await discovery.discover("game")).instances} == set(ids)


async def _register_mute(discovery: Discovery) -> str:
    """An instance that will never beat."""
    return (await discovery.register(RegisterInput("chat", "kr-1", ttl_seconds=TTL_S))).instance_id


async def _outage(server: RunningServer, processes: Processes, count: int, outage_s: float) -> None:
    processes.gateway(server.url)
    async with discovery_on(server.url) as discovery, watching(discovery) as seen:
        ids = processes.fleet(server.url, count).ids
        server.kill()
        await asyncio.sleep(outage_s)  # the outage itself, longer than every lease
        server.start()

        async def all_beat_again() -> bool:
            with contextlib.suppress(StoreError):
                listed = (await discovery.discover()).instances
                return len(listed) == count and all(i.status == "ready" for i in listed)
            return False

        await eventually(all_beat_again, "everybody to beat again", 60)
        await asyncio.sleep(TTL_S * 1.5)  # time in which a false eviction would show
        assert {i.instance_id for i in (await discovery.discover()).instances} == set(ids)
        assert ends_of(seen) == {}


@pytest.mark.slow
async def test_g3_an_outage_longer_than_every_lease_evicts_nobody(
    server: RunningServer, processes: Processes
) -> None:
    await _outage(server, processes, 50, 2 * TTL_S)


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_g3_an_outage_of_a_minute_evicts_none_of_a_thousand(
    server: RunningServer, processes: Processes
) -> None:
    await _outage(server, processes, 1000, 60.0)


async def test_g3_without_any_backend_nobody_expires(server: RunningServer, processes: Processes) -> None:
    async with discovery_on(server.url) as discovery:
        mute = await _register_mute(discovery)
        await asyncio.sleep(1.5 * TTL_S)  # nobody looks, so no time passes
        assert await status_of(discovery, mute) == "ready"


async def test_g2_where_no_gateway_runs_one_of_the_clients_makes_time_pass(
    server: RunningServer, processes: Processes
) -> None:
    async with discovery_on(server.url) as discovery, watching(discovery) as seen:
        first, second = (
            processes.fleet(server.url, 3, fault="sweep"),
            processes.fleet(server.url, 0, fault="sweep"),
        )
        mute = await _register_mute(discovery)
        await eventually(lambda: bool(ends_of(seen)), "the death", 60)
        assert ends_of(seen) == {(mute, "no-response"): 1}
        assert {i.instance_id for i in (await discovery.discover("game")).instances} == set(first.ids)
        assert second.ids == []


async def test_g1_g4_a_failover_among_registrations_and_watches_leaves_no_silent_gap(
    shape: Shape,
) -> None:
    async with (
        discovery_on(shape.url) as discovery,
        discovery_on(shape.url) as other,
        watching(other) as seen,
    ):
        acknowledged: set[str] = set()

        async def register(n: int) -> None:
            """As a server would: again and again until it is acknowledged."""
            given = RegisterInput("game", "kr-1", instance_id=f"i{n:04}", server_id=f"s{n}", ttl_seconds=600)
            while given.instance_id not in acknowledged:
                with contextlib.suppress(StoreUnavailable, OutcomeUnknown):
                    await discovery.register(given)
                    acknowledged.add(given.instance_id)

        failing: asyncio.Task[None] | None = None
        for start in range(0, 1000, 20):
            await asyncio.gather(*(register(n) for n in range(start, start + 20)))
            if start == 300:
                failing = asyncio.create_task(asyncio.to_thread(shape.fail_over))
            await asyncio.sleep(0.005)
        assert failing is not None
        await failing
        assert len(acknowledged) == 1000
        listed = {i.instance_id for i in (await discovery.discover()).instances}
        assert listed <= acknowledged
        if isinstance(shape.running, RunningServer):
            assert listed == acknowledged  # nothing was lost where every write is on disk

        async def agrees() -> bool:
            return _replayed(seen) == {i.instance_id for i in (await discovery.discover()).instances}

        await eventually(agrees, "the watcher to agree with the store", 30)
        _assert_no_silent_gap(seen)


def _replayed(seen: list[Change]) -> set[str]:
    """The list as a watcher has it who believed every change."""
    known: set[str] = set()
    for change in seen:
        if change.event == "snapshot":
            known = {i.instance_id for i in change.instances or ()}
        elif change.event == "removed":
            known.discard(change.instance_id)
        else:
            known.add(change.instance_id)
    return known


def _assert_no_silent_gap(seen: list[Change]) -> None:
    last = -1
    for change in seen:
        if change.event != "snapshot":
            assert change.revision == last + 1
        last = change.revision


async def test_g4_a_late_beat_after_remove_never_revives_on_any_store(shape: Shape) -> None:
    async with discovery_on(shape.url) as discovery:
        registered = await discovery.register(RegisterInput("game", "kr-1"))
        await discovery.remove(registered.instance_id)
        for life in (registered.life, ""):
            with pytest.raises(RemovedInstance):
                await discovery.heartbeat(registered.instance_id, Beat(life=life))
        assert (await discovery.discover()).instances == []


@pytest.mark.slow
async def test_a_client_whose_clock_is_an_hour_off_is_like_any_other(
    server: RunningServer, processes: Processes
) -> None:
    processes.gateway(server.url)
    async with discovery_on(server.url) as discovery, watching(discovery) as seen:
        fleet = processes.fleet(server.url, 5, ttl_s=3.0, fault="skew")
        await asyncio.sleep(6.0)  # two leases: it would be out by now if its clock mattered
        listed = (await discovery.discover()).instances
        assert {i.instance_id for i in listed if i.status == "ready"} == set(fleet.ids)
        assert all(abs(_age_s(i.last_heartbeat)) < 30 for i in listed)
        fleet.kill()
        await eventually(lambda: bool(ends_of(seen)), "the first death", 40)
        assert all(i.status == "suspect" for i in (await discovery.discover()).instances)


def _age_s(iso: str) -> float:
    return (datetime.now(UTC) - datetime.fromisoformat(iso)).total_seconds()
