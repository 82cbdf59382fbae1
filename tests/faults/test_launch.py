"""A launch evening while everything dies in turn: gateways, managers, game servers, the store's primary.

All are real processes, with `roost drill launch` as the crowd. The invariants: nobody is lost, nobody is
inside twice, no server and no world holds more than it takes, and in the end the ledger adds up and is empty.

A primary that dies may take acknowledged writes with it. Somebody may then have to enter again; what holds
all the same is that nobody is too many and nobody stands outside for ever.
"""

from __future__ import annotations

import base64
import contextlib
import os
import secrets
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from roost.api.queue import WorldView
from roost.drills.launch import DrillReport
from roost.store import scopes
from roost.store.keys import Keys
from roost.store.keys.waitingroom import world_keys
from roost.store.topology.cluster import slot_of
from roost.testing import (
    START_S,
    RunningServer,
    eventually,
    free_port,
    run_cluster,
    run_sentinel,
    wait_until,
)
from tests.forking import Process, forker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

WORLD = scopes.world("main")
KEYS = Keys()
ROW = ("life", "cap", "n", "k", "c", "number", "doubt", "open", "url")
"""What `row_pack.lua` writes of a server."""
CAPACITY = 20
TTL_S = 6
TICKET_S = 10
GRACE_S = 10
PATIENCE_S = 110
RECOVERY_S = 40.0
"""After any one fault people get in again within this: the lease of a leader or a server, a new primary."""
EMPTY_S = 30.0
"""After the last one left, what tickets and held places keep is free within this."""
PROGRESS = 15
"""So many people must get in after a fault before the next one comes."""


class Town:
    """Every process of an evening by its name; each can be killed, and started again as what it was."""

    def __init__(self, folder: Path, store: str) -> None:
        self._folder = folder
        self._running: dict[str, Process] = {}
        self._token = secrets.token_hex(16)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ROOST_")}
        self._env = kept | {
            "ROOST_PROFILE": "lan",
            "ROOST_STORE": store,
            "ROOST_API_TOKEN": self._token,
            "ROOST_QUEUE_KEYS": _master_key(),
            "ROOST_TICKET_KEYS": _master_key(),
            "ROOST_QUEUE__TICKET_SECONDS": str(TICKET_S),
            "ROOST_QUEUE__GRACE_SECONDS": str(GRACE_S),
        }
        self._gateways = [f"http://127.0.0.1:{free_port()}" for _ in range(2)]
        self._commands: dict[str, tuple[str, ...]] = {}
        for number, url in enumerate(self._gateways, 1):
            self._commands[f"gateway-{number}"] = ("gateway", "--port", url.rpartition(":")[2])
            self._commands[f"manager-{number}"] = ("manager", "--port", str(free_port()))
        # Two by a gateway each, as most would; one straight on the store.
        for number, where in enumerate((*self._gateways, store), 1):
            self._commands[f"game-{number}"] = (
                *("gameserver", "--url", where, "--port", str(_two_free_ports())),
                *("--server-id", f"game-{number}", "--capacity", str(CAPACITY), "--ttl", str(TTL_S)),
            )

    def start(self) -> None:
        for role in ("gateway", "manager", "game"):
            names = [name for name in self._commands if name.startswith(role)]
            for name in names:
                self._start(name)
            for name in names:
                self.wait_for(name)

    def kill(self, name: str) -> None:
        """kill -9, and start it again; a game server then waits until its former life is over."""
        self._running[name].kill()
        self._running[name].wait()
        self._start(name)

    def wait_for(self, name: str) -> None:
        wait_until(lambda: "is up" in self.log(name), name, lambda: self.log(name)[-2000:], START_S)

    def log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text()

    def view(self) -> WorldView:
        """The world, from whichever gateway answers."""
        for url in self._gateways:
            request = urllib.request.Request(f"{url}/queue/v1/worlds/{WORLD}")
            request.add_header("X-API-Token", self._token)
            with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=5) as response:
                return msgspec.json.decode(response.read(), type=WorldView)
        raise ConnectionError("no gateway answers")

    async def progress(self, after: str, people: int = PROGRESS) -> None:
        """Wait until people get in, after whatever happened; the evening must not be over before."""
        assert self.is_evening(), self.log("drill")
        started = time.monotonic()
        goal = await self._people_got_in() + people

        async def is_reached() -> bool:
            return await self._people_got_in() >= goal

        await eventually(is_reached, f"people to get in after {after}", RECOVERY_S)
        print(f"\n{people} people within {time.monotonic() - started:.1f} s after {after}", end="")

    async def _people_got_in(self) -> int:
        """How many so far, as soon as a gateway and the store are there to say it."""
        known: list[int] = []

        def is_known() -> bool:
            with contextlib.suppress(OSError):
                known.append(self.view().counters["consumed"])
            return bool(known)

        await eventually(is_known, "a gateway that knows", RECOVERY_S)
        return known[0]

    def is_evening(self) -> bool:
        return self._running["drill"].poll() is None

    def open_evening(self, users: int) -> None:
        """The drill goes on by itself from here."""
        urls = ("--url", self._gateways[0], "--also", self._gateways[1])
        habits = ("--users", str(users), "--session", "2.5", "--patience", str(PATIENCE_S))
        self._start("drill", ("drill", "launch", "--no-servers", "--json", *urls, *habits))

    async def report(self) -> DrillReport:
        await eventually(lambda: not self.is_evening(), "the end of the evening", PATIENCE_S)
        report = msgspec.json.decode(self.log("drill"), type=DrillReport)
        print(
            f"\n{report.finished} of {report.users} in {report.seconds:g} s, most inside {report.most_inside}"
        )
        print(
            f"entry → ticket p50 {report.entry_to_ticket_p50_s:g} s, p99 {report.entry_to_ticket_p99_s:g} s"
        )
        print(report.counts)
        for one in report.guarantees:
            print(f"{one.guarantee} {'held' if one.held else 'BROKEN'}: {one.said}")
        return report

    def end(self) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()

    def _start(self, name: str, command: tuple[str, ...] = ()) -> None:
        command = command or (*self._commands[name], "--data", str(self._folder / name))
        log = self._folder / f"{name}.log"
        with log.open("wb") as out, log.with_suffix(".errors").open("wb") as apart:
            errors = apart if name == "drill" else out
            self._running[name] = forker().start(command, self._env, self._folder, out, errors)


def _two_free_ports() -> int:
    """Players connect to one port, metrics are on the one 1000 above."""
    while True:
        port = free_port()
        with contextlib.suppress(OSError), socket.socket() as above:
            above.bind(("127.0.0.1", port + 1000))
            return port


def _master_key() -> str:
    return "k:" + base64.b64encode(secrets.token_bytes(32)).decode()


@pytest.fixture
def open_town(tmp_path: Path) -> Iterator[Callable[[str], Town]]:
    towns: list[Town] = []

    def opened(store: str) -> Town:
        towns.append(Town(tmp_path, store))
        towns[-1].start()
        return towns[-1]

    yield opened
    for town in towns:
        town.end()


async def judge(
    town: Town,
    report: DrillReport,
    server: Callable[[], RunningServer],
    promised: tuple[str, ...] = ("G10", "G11", "G12"),
) -> None:
    """What must be true when everybody has gone home; `server` holds the world."""
    assert report.finished == report.users
    assert [one.guarantee for one in report.guarantees if not one.held and one.guarantee in promised] == []
    assert report.overadmit == 0
    await eventually(lambda: is_empty(town.view()), "the world to be empty", EMPTY_S)
    assert town.view().counters["overadmit"] == 0
    ledger = Ledger(server())
    assert ledger.kept == ledger.counted_anew
    assert ledger.people_inside_of_the_dead() == {}


def is_empty(view: WorldView) -> bool:
    return view.inside + view.tickets + view.held == 0


class Ledger:
    """The store's own numbers, read past Roost."""

    def __init__(self, server: RunningServer) -> None:
        self._server = server
        numbers = self._hash(world_keys(KEYS, WORLD)["world"])
        self._rows = {
            server_id: dict(zip(ROW, packed.split("\t"), strict=True))
            for server_id, packed in self._hash(world_keys(KEYS, WORLD)["servers"]).items()
        }
        self.kept = {name: int(numbers.get(name, 0)) for name in ("cap", "inside", "doubt")}

    @property
    def counted_anew(self) -> dict[str, int]:
        rows = [{name: int(row[name]) for name in ROW[:-1]} for row in self._rows.values()]
        inside = [row["n"] + row["c"] - row["k"] for row in rows]
        rooms = [row["open"] * max(0, row["cap"] - n) for row, n in zip(rows, inside, strict=True)]
        return {
            "cap": sum(inside) + sum(rooms),
            "inside": sum(inside),
            "doubt": sum(row["doubt"] * row["open"] for row in rows),
        }

    def people_inside_of_the_dead(self) -> dict[str, tuple[str, str]]:
        """User → server and life, of all who are inside of a life that is over."""
        lives = {(server_id, row["life"]) for server_id, row in self._rows.items()}
        people: dict[str, tuple[str, str]] = {}
        for name in self._server.command_reply("KEYS", world_keys(KEYS, WORLD)["people"] + b"*"):
            person = self._hash(name)
            if person.get("state") == "inside":
                people[name.decode()] = (person["server"], person["life"])
        return {user: where for user, where in people.items() if where not in lives}

    def _hash(self, key: bytes) -> dict[str, str]:
        flat = [part.decode() for part in self._server.command_reply("HGETALL", key)]
        return dict(zip(flat[::2], flat[1::2], strict=True))


async def test_g10_g11_g12_hold_while_every_process_and_the_primary_die(
    open_town: Callable[[str], Town],
) -> None:
    with run_sentinel() as group:
        town = open_town(group.url)
        town.open_evening(users=600)
        await town.progress("the opening")
        for name in ("gateway-1", "game-1", "manager-1", "game-2", "gateway-2", "manager-2", "game-3"):
            town.kill(name)
            town.wait_for(name)
            await town.progress(name)
        primary = group.primary()
        primary.kill()
        group.wait_for_new_primary(primary.port)
        await town.progress("the failover")
        report = await town.report()
        # A primary that is killed may take its last writes along. Then the ledger has said so, and a ticket
        # whose use was forgotten is good once more.
        lost = town.view().counters["lost_writes"]
        await judge(town, report, group.primary, ("G10", "G12") if lost else ("G10", "G11", "G12"))


async def test_g10_and_g12_hold_when_the_primary_takes_its_last_writes_along(
    open_town: Callable[[str], Town],
) -> None:
    with run_sentinel() as group:
        town = open_town(group.url)
        town.open_evening(users=400)
        await town.progress("the opening", people=100)
        primary = group.primary()
        cut_off_replicas(primary)
        await town.progress("the replicas were cut off", people=40)  # and all of it will be forgotten
        primary.kill()
        group.wait_for_new_primary(primary.port)
        await town.progress("the failover")
        # A ticket whose use was forgotten is good once more; forgotten places come back by their receipts.
        await judge(town, await town.report(), group.primary, promised=("G10", "G12"))
        assert town.view().counters["lost_writes"] > 0


def cut_off_replicas(primary: RunningServer) -> None:
    """Whoever is connected stays; the replicas are thrown out and do not know the password to come back."""
    primary.command_reply("CONFIG", "SET", "requirepass", "unknown-to-replicas")
    primary.password = "unknown-to-replicas"
    primary.command_reply("CLIENT", "KILL", "TYPE", "replica")


async def test_g10_g11_g12_hold_on_a_cluster_while_a_game_server_dies(
    open_town: Callable[[str], Town],
) -> None:
    with run_cluster() as cluster:
        town = open_town(cluster.url)
        town.open_evening(users=250)
        await town.progress("the opening")
        town.kill("game-1")
        town.wait_for("game-1")
        await town.progress("game-1")
        await judge(town, await town.report(), lambda: cluster.owner(slot_of(b"{main}")))
