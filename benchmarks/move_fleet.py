"""What bench_move.py moves users between: `roost up`, two entity servers, each a process, and their users."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from roost.app import Platform, open_platform
from roost.binding.drain.movers import Moved
from roost.binding.scripts import Bound, Placed
from roost.core.owner import Owner
from roost.settings import Loaded
from roost.testing import eventually, free_port
from roost.web.ops import OPS_PORT_ABOVE
from roost.wire.client import Peer
from roost.wire.codes import Code
from roost.wire.trust import wire_secret

HERE = Path(__file__).resolve().parent
TYPE = "entity"
ENTITY, MESSAGE, LOGIN, MOVE = 1, 1, 2, 4
BUDGET_MS = 10_000
TERMS = {"maxBlockMs": 2000, "quiesceMs": 2000, "markMs": 4000}
"""Longer than a drain's: a slow moment of the machine shall show as a pause, not as a user who went back."""
SERVERS = ("501", "502")

pack, unpack = msgspec.msgpack.encode, msgspec.msgpack.decode
_reports = msgspec.msgpack.Decoder(list[Moved]).decode


class Slowed:
    """A proxy before a database, whose delay is set from here."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self._process = process
        self.port = port

    def delay(self, ms: float) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{ms}\n")
        self._process.stdin.flush()
        self._process.stdout.readline()


@contextmanager
def slowed(port: int) -> Iterator[Slowed]:
    with ExitStack() as stack:
        process, line = _started(
            stack, [sys.executable, str(HERE / "slow_proxy.py"), str(port)], "ready", None
        )
        yield Slowed(process, int(line.split()[1]))


def _started(
    stack: ExitStack, command: list[str], until: str, environment: dict[str, str] | None
) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=HERE
    )
    stack.callback(_end, process)
    assert process.stdout is not None
    while until not in (line := process.stdout.readline()):
        if not line:
            sys.exit(f"{' '.join(command[2:])} ended")
    return process, line


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.communicate()


class Fleet:
    """Two servers that hold users, as gates and managers see them."""

    def __init__(self, platform: Platform, secret: bytes, ports: dict[str, int]) -> None:
        self.platform = platform
        self.lives: dict[str, Owner] = {}
        self._ports = ports
        self._gate = {name: self._peer(name, secret, "gate") for name in SERVERS}
        self._manager = {name: self._peer(name, secret, "manager") for name in SERVERS}
        self._moves = itertools.count(1)

    def _peer(self, name: str, secret: bytes, role: str) -> Peer:
        return Peer("127.0.0.1", self._ports[name], secret=secret, role=role, expects=frozenset({"entity"}))

    async def meet(self) -> None:
        """Until the map places users on both."""

        async def both_take_users() -> bool:
            rows = await self.platform.bindings.servers(TYPE)
            self.lives = {row.server_id: Owner(row.server_id, row.life) for row in rows if row.accepting}
            return len(self.lives) == len(SERVERS)

        await eventually(both_take_users, "both servers take users", timeout_s=30)

    async def close(self) -> None:
        for peer in (*self._gate.values(), *self._manager.values()):
            await peer.close()

    async def enter(self, user: str, at: str) -> None:
        answer = await self.platform.bindings.bind(TYPE, user, self.lives[at])
        assert isinstance(answer, Bound | Placed), answer
        payload = pack((TYPE, user, f"s-{user}", {}))
        logged_in = await self._gate[at].call(ENTITY, LOGIN, payload, epoch=answer.epoch, budget_ms=BUDGET_MS)
        assert logged_in.code is Code.OK, logged_in.message

    async def ask(self, user: str, at: str, body: str, sequence: int) -> tuple[list[Any] | None, str]:
        """What the user's object answers; or None, and where the user is now."""
        payload = pack((TYPE, user, f"s-{user}", body))
        answer = await self._gate[at].call(
            ENTITY, MESSAGE, payload, sequence=sequence, oldest=sequence, budget_ms=BUDGET_MS
        )
        if answer.code is Code.OK:
            return unpack(answer.payload)[0], at
        if answer.code is not Code.MOVED:
            raise RuntimeError(f"{user}: {answer.code.name}: {answer.message}")
        return None, unpack(answer.payload).get("serverId") or at

    async def move(self, user: str, source: str, target: str) -> Moved:
        """As the controller of a drain does it: one user, one call."""
        to = (*self.lives[target], "127.0.0.1", self._ports[target])
        payload = pack((TYPE, f"m{next(self._moves)}", [user], to, TERMS))
        answer = await self._manager[source].call(ENTITY, MOVE, payload, budget_ms=BUDGET_MS)
        assert answer.code is Code.OK, answer.message
        [report] = _reports(answer.payload)
        return report


class Client:
    """Somebody who plays on: the next request some time after the last one was answered."""

    def __init__(self, fleet: Fleet, user: str, at: str) -> None:
        self._fleet = fleet
        self.user = user
        self.at = at
        self.sent = 0
        self.acknowledged = 0
        self.longest_ms = 0.0
        self.faults: Counter[str] = Counter()
        self.is_over = False

    async def play(self, pause_s: float) -> None:
        while not self.is_over:
            await self.request()
            await asyncio.sleep(pause_s)

    async def request(self) -> None:
        """Sent on with the same number where the server says that the user was moved, as a gate does."""
        self.sent += 1
        started, found = time.perf_counter(), None
        while found is None:
            found, self.at = await self._fleet.ask(self.user, self.at, "count", self.sent)
        self.longest_ms = max(self.longest_ms, (time.perf_counter() - started) * 1000)
        self.acknowledged += 1
        if found[0] != self.acknowledged:
            self.faults["lost" if found[0] < self.acknowledged else "doubled"] += 1
            self.acknowledged = found[0]

    async def check(self, at: str) -> None:
        """The object, the map and the row all say that the user is there, and how far it counted."""
        found, _ = await self._fleet.ask(self.user, at, "look", self.sent + 1)
        self.sent += 1
        assert found == [self.acknowledged, at], (self.user, found, self.acknowledged, at)
        record = await self._fleet.platform.bindings.read(TYPE, self.user)
        assert record is not None
        assert (record.state, record.owner) == ("A", self._fleet.lives[at]), record


def _ports(count: int) -> list[int]:
    """Free ones; what listens on one also takes the port `OPS_PORT_ABOVE` it."""
    found: list[int] = []
    while len(found) < count:
        port = free_port()
        if not {port, port - OPS_PORT_ABOVE, port + OPS_PORT_ABOVE} & set(found):
            found.append(port)
    return found


@asynccontextmanager
async def fleet_on(database: str, folder: Path) -> AsyncIterator[Fleet]:
    """`database` empty: SQLite in the data folder, as it is without a word about it."""
    async with AsyncExitStack() as stack:
        processes = stack.enter_context(ExitStack())
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ROOST_")}
        own = {"ROOST_DATA": str(folder), "ROOST_LOG_LEVEL": "warning"}
        if database:
            own["ROOST_DATABASE"] = database
        gateway, *others = _ports(1 + len(SERVERS))
        ports = dict(zip(SERVERS, others, strict=True))
        roost = [sys.executable, "-m", "roost"]
        _started(processes, [*roost, "up", "--no-demo", "--port", str(gateway)], "is up", kept | own)
        for name in SERVERS:
            command = ["entity", "--id", name, "--port", str(ports[name]), "--class", "move_player:Player"]
            _started(processes, [*roost, *command], "is up", kept | own)
        settings = Loaded.load(environ=kept | own).settings
        platform = await stack.enter_async_context(open_platform(settings, attach=True, wait_s=10))
        fleet = Fleet(platform, wire_secret("", folder), ports)
        stack.push_async_callback(fleet.close)
        await fleet.meet()
        yield fleet
