"""Entity servers as real processes: what a crash, a long pause and a clean stop leave of what was said."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec
import pytest

from roost.binding.scripts import Bound, Placed
from roost.binding.service import Bindings
from roost.binding.settings import BindingSettings
from roost.core.errors import InvalidInput, NotSent, OutcomeUnknown, RoostError
from roost.discovery.service import Discovery
from roost.servers.entity.serving import load_class
from roost.testing import RunningServer, eventually, free_port, open_store, run_valkey, wait_until
from roost.wire.client import Peer
from roost.wire.codes import Code
from roost.wire.limits import Limits
from roost.wire.server import Answer
from tests.acceptance.conftest import Home, Started, http, open_home

TYPE = "entity"
SECRET = "a-secret-for-these-tests"
LEASE = {"ROOST_BINDING__LEASE_MS": "3000", "ROOST_BINDING__BEAT_MS": "500"}
JOURNAL = "roost.servers.entity.reference:JournalReference"
PATIENT = Limits(silence_s=60.0)
"""On a busy machine a server that a test has stopped is silent for longer than 20 s."""
AGAIN = (Code.MOVED, Code.MIGRATING, Code.OUT_OF_ORDER)


@dataclass
class Servers:
    """A store with its manager, and entity servers on it; each test has users of its own."""

    home: Home
    store: str
    ports: dict[str, int] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    """What else is in the environment of those that are started."""
    entities: list[Started] = field(default_factory=list)

    def environment(self) -> dict[str, str]:
        return {"ROOST_STORE": self.store, "ROOST_WIRE_SECRET": SECRET} | LEASE | self.settings

    def up(self) -> Started:
        return self.home.up(**self.environment())

    def entity(self, server_id: str, *args: str) -> Started:
        port = self.ports[server_id] = free_port()
        flags = ("--id", server_id, "--port", str(port), *args)
        self.entities.append(self.home.start("entity", *flags, **self.environment()))
        return self.entities[-1]

    def leave(self) -> None:
        """Those that run stop, so that nobody of the next test is placed on them."""
        running = [one.process for one in self.entities if one.process.poll() is None]
        for process in running:
            process.terminate()
        for process in running:
            process.wait(timeout=15)
        self.entities.clear()
        self.ports.clear()
        self.settings.clear()


class Gate:
    """What a gate does, and no more: looks up, sends, and sends again what was not executed."""

    def __init__(self, bindings: Bindings, ports: dict[str, int]) -> None:
        self.bindings = bindings
        self.ports = ports
        self.peers: dict[str, Peer] = {}
        self.seen: dict[str, int] = {}

    async def home_of(self, user: str) -> tuple[str, int] | None:
        found = await self.bindings.resolve(TYPE, user, seen=self.seen.get(user, 0))
        if not isinstance(found, Bound | Placed):
            return None
        self.seen[user] = found.epoch
        return found.server_id, found.epoch

    def peer(self, server_id: str) -> Peer:
        if server_id not in self.peers:
            self.peers[server_id] = Peer(
                "127.0.0.1", self.ports[server_id], secret=SECRET.encode(), role="gate", limits=PATIENT
            )
        return self.peers[server_id]

    async def send(self, server_id: str, user: str, sequence: int, epoch: int, body: object) -> Answer:
        payload = msgspec.msgpack.encode((TYPE, user, "s", body))
        return await self.peer(server_id).call(
            1, 1, payload, epoch=epoch, sequence=sequence, oldest=sequence, budget_ms=2000
        )

    async def ask(self, user: str, sequence: int, body: object = "count") -> object:
        """The result, however often it must be sent."""
        async with asyncio.timeout(60):
            while True:
                answer = await self._try(user, sequence, body)
                if answer is not None:
                    assert answer.code is Code.OK, (answer.code, answer.message)
                    return msgspec.msgpack.decode(answer.payload)[0]
                await asyncio.sleep(0.05)

    async def _try(self, user: str, sequence: int, body: object) -> Answer | None:
        try:
            home = await self.home_of(user)
            if home is None:
                return None
            answer = await self.send(home[0], user, sequence, home[1], body)
        except (NotSent, OutcomeUnknown, RoostError):
            return None
        if answer.code in AGAIN or answer.epoch < self.seen[user]:
            return None
        self.seen[user] = max(self.seen[user], answer.epoch)
        return answer

    async def close(self) -> None:
        for peer in self.peers.values():
            await peer.close()


@asynccontextmanager
async def open_gate(servers: Servers) -> AsyncIterator[Gate]:
    async with open_store(servers.store) as store:
        settings = BindingSettings(lease_ms=3000, beat_ms=500, slow_start_seconds=0)
        gate = Gate(Bindings(store, settings, Discovery(store, 30.0)), servers.ports)
        try:
            yield gate
        finally:
            await gate.close()


@pytest.fixture(scope="module")
def module_store() -> Iterator[RunningServer]:
    with run_valkey() as server:
        yield server


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, module_store: RunningServer) -> Iterator[Servers]:
    with open_home(tmp_path_factory.mktemp("entities")) as home:
        servers = Servers(home, module_store.url)
        servers.up()
        yield servers


@pytest.fixture
def servers(shared: Servers) -> Iterator[Servers]:
    yield shared
    shared.leave()


async def homes_of(gate: Gate, users: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}

    async def all_placed() -> bool:
        for user in users:
            if user not in found and (home := await gate.home_of(user)) is not None:
                found[user] = home[0]
        return len(found) == len(users)

    await eventually(all_placed, "everybody has a home")
    return found


async def test_g9_nothing_that_the_journal_acknowledged_is_lost_by_kill_9(servers: Servers) -> None:
    processes = {name: servers.entity(name, "--class", JOURNAL) for name in ("501", "502")}
    users = [f"u{n}" for n in range(20)]
    async with open_gate(servers) as gate:
        homes = await homes_of(gate, users)
        assert set(homes.values()) == {"501", "502"}
        results: dict[str, list[object]] = {user: [] for user in users}

        async def play(user: str) -> None:
            for sequence in range(1, 101):
                results[user].append(await gate.ask(user, sequence))

        playing = [asyncio.create_task(play(user)) for user in users]
        await eventually(lambda: min(map(len, results.values())) >= 20, "everybody plays")
        processes["501"].process.kill()
        await asyncio.gather(*playing)

        # each message raises the count by one: one that was lost, or executed twice, shows in all later ones
        assert all(results[user] == list(range(1, 101)) for user in users)
        assert set((await homes_of(gate, users)).values()) == {"502"}


async def test_g7_a_server_that_wakes_after_its_lease_serves_nothing_stale(servers: Servers) -> None:
    first = servers.entity("501")
    users = [f"paused{n}" for n in range(10)]
    async with open_gate(servers) as gate:
        await homes_of(gate, users)
        stale = {user: gate.seen[user] for user in users}
        for user in users:
            assert await gate.ask(user, 1) == 1
            assert await gate.ask(user, 2) == 2
        await eventually(lambda: saved(first) >= len(users), "everybody is written")
        servers.entity("502")

        first.process.send_signal(signal.SIGSTOP)
        late = [asyncio.create_task(stale_message(gate, user, stale[user])) for user in users]
        assert [await gate.ask(user, 3) for user in users] == [3] * len(users)
        assert set((await homes_of(gate, users)).values()) == {"502"}
        assert not any(task.done() for task in late)
        first.process.send_signal(signal.SIGCONT)
        answers = await asyncio.gather(*late)

        assert {answer.code for answer in answers} == {Code.MOVED}
        assert [await gate.ask(user, 4) for user in users] == [4] * len(users)


async def stale_message(gate: Gate, user: str, epoch: int) -> Answer:
    """Sent by a gate that has not heard of the new home; it is the next one of the user."""
    payload = msgspec.msgpack.encode((TYPE, user, "s", "count"))
    return await gate.peer("501").call(1, 1, payload, epoch=epoch, sequence=3, budget_ms=60_000)


def saved(server: Started) -> int:
    return metric(server, 'roost_entity_writes_total{what="saved"}')


def metric(server: Started, name: str) -> int:
    for line in http(f"{ops_of(server)}/metrics").body.decode().splitlines():
        if line.startswith(name):
            return int(float(line.split()[-1]))
    return 0


async def test_a_clean_stop_releases_everybody_and_the_next_server_goes_on(servers: Servers) -> None:
    first = servers.entity("501")
    async with open_gate(servers) as gate:
        for user in ("ann", "bob"):
            assert await gate.ask(user, 1, {"op": "give", "item": "sword", "n": 3}) == 3
        servers.entity("502", "--version", "2.0")

        assert first.interrupt() == 0

        assert await gate.ask("ann", 2, {"op": "take", "item": "sword"}) == 2
        assert await gate.ask("bob", 2, "version") == {"version": "2.0", "serverId": "502"}


async def test_the_ops_pages_say_that_it_is_ready(servers: Servers) -> None:
    server = servers.entity("501")
    ops = ops_of(server)

    assert http(f"{ops}/healthz").status == 200
    assert http(f"{ops}/readyz").status == 200
    assert "roost_entity_leases_held 1.0" in http(f"{ops}/metrics").body.decode()


def test_a_class_that_is_none_is_refused_with_what_to_do(home: Home) -> None:
    for name, said in (
        ("nowhere", "module:Class"),
        ("nowhere:Player", "no module nowhere"),
        ("json:Player", "module json has no Player"),
        ("json:JSONDecoder", "no subclass of roost.Entity"),
    ):
        with pytest.raises(InvalidInput, match=said):
            load_class(name)
    done = home.run("entity", "--id", "501", "--class", "nowhere:Player")
    assert done.returncode != 0
    assert "no module nowhere" in done.stderr, done.stderr


async def test_a_store_that_is_away_for_longer_than_the_lease_costs_nobody_anything(
    servers: Servers, module_store: RunningServer
) -> None:
    """Also without a lease in the database; with one see `tests/faults/test_store_away.py`."""
    servers.settings["ROOST_ENTITY__DATABASE_LEASE_SECONDS"] = "0"
    server = servers.entity("501", "--class", JOURNAL)
    users = [f"away{n}" for n in range(5)]
    async with open_gate(servers) as gate:
        assert [await gate.ask(user, 1) for user in users] == [1] * 5
        module_store.pause()
        wait_until(
            lambda: http(f"{ops_of(server)}/readyz").status == 503, "its lease is over by its own clock"
        )
        module_store.resume()

        assert [await gate.ask(user, 2) for user in users] == [2] * 5
        assert metric(server, 'roost_entity_users_turned_total{what="lost"}') == 0


def ops_of(server: Started) -> str:
    return server.url.removesuffix("/metrics")
