"""Gates, entity servers and players as real processes and connections, and what must hold in the end."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import random
import secrets
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import roost
from roost.core.errors import OutcomeUnknown, RoostError
from roost.core.passes import sign_login
from roost.core.signing import parse_keys
from roost.sdk.play import GateRefused, Player, Reply
from roost.testing import START_S, free_port, wait_until
from tests.forking import Process, forker

GATES = ("gate-1", "gate-2")
HOMES = ("501", "502", "503", "504")
HOMES_V1 = dict.fromkeys(HOMES, "1.0")
ROOT = Path(__file__).parents[2]


class Town:
    """Every process by its name; each can be killed, frozen, and started again as what it was."""

    def __init__(
        self,
        folder: Path,
        store: str,
        database: str,
        book: str,
        *,
        homes: Mapping[str, str] = HOMES_V1,
        managers: int = 1,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """`book`: module:Class of the users. `homes`: server ids with their versions."""
        self._folder = folder
        self._running: dict[str, Process] = {}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ROOST_")}
        self.keys = "k:" + base64.b64encode(secrets.token_bytes(32)).decode()
        self._env = kept | {
            "PYTHONPATH": str(ROOT),
            "ROOST_PROFILE": "lan",
            "ROOST_STORE": store,
            "ROOST_DATABASE": database,
            "ROOST_API_TOKEN": secrets.token_hex(16),
            "ROOST_WIRE_SECRET": secrets.token_hex(16),
            "ROOST_QUEUE_KEYS": self.keys,
            "ROOST_TICKET_KEYS": self.keys,
            "ROOST_GATE__CONNECTIONS_PER_ADDRESS": "5000",
        }
        self._env |= settings or {}
        self.token_of_operator = self._env["ROOST_API_TOKEN"]
        self._ports: set[int] = set()
        self._commands: dict[str, tuple[str, ...]] = {
            f"manager-{n}": ("manager", "--port", str(self._port())) for n in range(1, managers + 1)
        }
        port = self._port()
        self.gateway = f"http://127.0.0.1:{port}"
        self._commands["gateway"] = ("gateway", "--port", str(port))
        self.gates: dict[str, str] = {}
        for name in GATES:
            port = self._port()
            self.gates[name] = f"ws://127.0.0.1:{port}"
            self._commands[name] = ("gate", "--port", str(port), "--tcp-port", str(self._port()))
        for name, version in homes.items():
            self._commands[name] = (
                *("entity", "--id", name, "--version", version, "--port", str(self._port())),
                *("--class", f"tests.faults.{book}", "--capacity", "5000"),
            )

    def _port(self) -> int:
        """One that none of the others will have, nor the one 1000 above, where it shows its metrics."""
        while not self._ports.isdisjoint(two := (port := two_free_ports(), port + 1000)):
            pass
        self._ports.update(two)
        return port

    def start(self, *names: str) -> None:
        """These, or all."""
        for name in names or self._commands:
            self._start(name)
        for name in names or self._commands:
            self.wait_for(name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._commands)

    def exit_code(self, name: str) -> int | None:
        """None while it runs."""
        return self._running[name].poll()

    def end_one(self, name: str) -> None:
        """kill -9, for good."""
        self._running[name].kill()
        self._running[name].wait()

    def kill(self, name: str) -> None:
        """kill -9, and start it again."""
        self._running[name].kill()
        self._running[name].wait()
        self._start(name)

    @contextlib.contextmanager
    def frozen(self, name: str) -> Iterator[None]:
        process = self._running[name]
        process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)

    def wait_for(self, name: str) -> None:
        wait_until(lambda: "is up" in self.log(name), name, lambda: self.log(name)[-2000:], START_S)

    def log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text()

    def end(self) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()

    def token(self, user: str) -> str:
        return sign_login(parse_keys(self.keys), user=user, ttl_s=3600)

    def _start(self, name: str) -> None:
        command = (*self._commands[name], "--data", str(self._folder / name))
        with (self._folder / f"{name}.log").open("ab") as out:
            self._running[name] = forker().start(command, self._env, self._folder, out, out)


def two_free_ports() -> int:
    """A role listens on one port, and on the one 1000 above for its health and metrics."""
    while True:
        port = free_port()
        with contextlib.suppress(OSError), socket.socket() as above:
            above.bind(("127.0.0.1", port + 1000))
            return port


class Acknowledged(NamedTuple):
    """The answer to a number: when it came, and the server id of the home that wrote it."""

    at: float
    home: str


@dataclass
class Writer:
    """One user who has numbers written into their book, two under way at a time."""

    user: str
    acknowledged: dict[int, Acknowledged] = field(default_factory=dict)
    """By number."""
    refused: set[int] = field(default_factory=set)
    unknown: set[int] = field(default_factory=set)
    reasons: list[str] = field(default_factory=list)
    book: list[int] | None = None
    longest_wait_s: float = 0.0
    _next: int = 1

    async def write(self, player: Player, pause_s: Callable[[], float], stop: asyncio.Event) -> None:
        while not stop.is_set():
            numbers = (self._next, self._next + 1)
            self._next += 2
            began = time.monotonic()
            answers = [await player.send({"n": number}) for number in numbers]
            for number, answer in zip(numbers, answers, strict=True):
                await self._settle(number, answer)
            self.longest_wait_s = max(self.longest_wait_s, time.monotonic() - began)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), pause_s())

    async def _settle(self, number: int, answer: Awaitable[Reply]) -> None:
        try:
            reply = await answer
        except OutcomeUnknown:
            self.unknown.add(number)
        except GateRefused as error:
            self.refused.add(number)
            self.reasons.append(error.reason)
        else:
            self.acknowledged[number] = Acknowledged(time.monotonic(), reply.result)

    async def read(self, player: Player, within_s: float) -> None:
        """What the book holds in the end, from whichever home has it by then."""
        deadline = time.monotonic() + within_s
        while self.book is None:
            try:
                self.book = await player.request({})
            except RoostError as error:
                if time.monotonic() > deadline:
                    raise AssertionError(f"{self.user} reads nothing: {error.message}") from error
                await asyncio.sleep(0.5)

    def lost(self) -> list[Acknowledged]:
        """Acknowledged, and not in the book."""
        assert self.book is not None
        kept = set(self.book)
        return [answer for number, answer in self.acknowledged.items() if number not in kept]


class Crowd:
    """Many writers, each on a connection of their own."""

    def __init__(self, town: Town, users: int, messages_per_s: float) -> None:
        self._town = town
        self._writers = [Writer(f"u{number:05d}") for number in range(users)]
        self._pause_s = 2 * users / messages_per_s
        self._stop = asyncio.Event()
        self._players: list[Player] = []
        self._writing: list[asyncio.Task[None]] = []

    async def come(self) -> None:
        urls = list(self._town.gates.values())
        for start in range(0, len(self._writers), 50):
            group = self._writers[start : start + 50]
            await asyncio.gather(*(self._log_in(writer, urls) for writer in group))

    async def _log_in(self, writer: Writer, urls: list[str]) -> None:
        mine = random.sample(urls, len(urls))
        player = roost.play(",".join(mine), self._town.token(writer.user))
        await player.__aenter__()
        self._players.append(player)
        self._writing.append(
            asyncio.create_task(
                writer.write(player, lambda: random.uniform(0, 2 * self._pause_s), self._stop)
            )
        )

    def acknowledged(self) -> int:
        return sum(len(writer.acknowledged) for writer in self._writers)

    def unknown(self) -> int:
        return sum(len(writer.unknown) for writer in self._writers)

    async def leave(self, within_s: float) -> None:
        """Write no more, and read every book."""
        self._stop.set()
        _, writing = await asyncio.wait(self._writing, timeout=within_s)
        stuck = {task.get_name() for task in writing}
        assert not stuck, f"{len(stuck)} wait for an answer for ever: {sorted(stuck)[:5]}"
        players = {player.user: player for player in self._players}
        await asyncio.gather(*(writer.read(players[writer.user], within_s) for writer in self._writers))
        await asyncio.gather(*(player.close() for player in self._players))

    def close(self) -> None:
        for task in self._writing:
            task.cancel()

    def judge(self) -> list[Acknowledged]:
        """Order and exactly-once hold for everybody. Returns what was acknowledged and is lost."""
        lost: list[Acknowledged] = []
        for writer in self._writers:
            book = writer.book
            assert book is not None
            assert book == sorted(set(book)), f"{writer.user}: doubled or out of order: {book}"
            executed = set(book)
            assert not writer.refused & executed, f"{writer.user}: refused and executed all the same"
            assert executed <= writer.acknowledged.keys() | writer.unknown, f"{writer.user}: never sent"
            lost += writer.lost()
        return lost

    def summary(self) -> str:
        waits = sorted(writer.longest_wait_s for writer in self._writers)
        reasons = {reason for writer in self._writers for reason in writer.reasons}
        return (
            f"{len(self._writers)} users, {self.acknowledged()} acknowledged, "
            f"{sum(len(w.unknown) for w in self._writers)} unknown, "
            f"{sum(len(w.refused) for w in self._writers)} refused {sorted(reasons)}; "
            f"longest wait p50 {waits[len(waits) // 2]:.1f} s, max {waits[-1]:.1f} s"
        )
