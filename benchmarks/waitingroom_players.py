"""Two thousand players on one game server: how fast does a word reach all of them?"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import cast

from http_load import cpu_seconds
from report import Case, Figure
from roost.app import Platform, open_platform
from roost.core.passes import BASE, Passes, Ticket
from roost.core.signing import parse_keys
from roost.settings import Settings
from roost.testing import RunningServer, free_port, run_valkey, wait_until
from roost.waitingroom.scripts import Offered
from roost.web.connections import raise_file_limit
from waitingroom_store import percentile, user_of

PLAYERS = 2000
BATCH_LIMIT = 100
WARM_UP = 10
PACED = 100
PAUSE_S = 0.15
ROUNDS = 5
ROUND_S = 2.0
SPEAKERS = 200
"""So many take turns that nobody comes near the room's limit of words in a second."""

METHOD = (
    f"Players: `roost gameserver` straight on the store, in a process of its own; {PLAYERS:,} WebSocket "
    f"clients, each let in with a ticket of its own, in the generator. Delivery: {PACED} words, "
    f"each {PAUSE_S * 1000:g} ms after all have the last one; a wait is from just before the speaker "
    f"writes until a client has the frame, its reading for all {PLAYERS:,} included; `last` is the "
    f"slowest client of a word. Rate: the next word follows when everybody has the last one; {ROUNDS} rounds "
    f"of {ROUND_S:g} s. cut: players who lost their connection meanwhile."
)


class Audience:
    """All players, and how many have heard the word that was said last."""

    def __init__(self) -> None:
        self.lost = 0
        self.said_ns = 0
        self.waits_ns: list[int] = []
        self._left = 0
        self._all_heard = asyncio.Event()

    async def say(self, speaker: Player) -> list[int]:
        """Have somebody say a word; how long each took to hear it, in the order of hearing."""
        self.waits_ns, self._left = [], PLAYERS
        self._all_heard.clear()
        self.said_ns = time.monotonic_ns()
        speaker.say(b"hello everybody, who comes along to the harbour?")
        async with asyncio.timeout(10):
            await self._all_heard.wait()
        return self.waits_ns

    def heard(self) -> None:
        self.waits_ns.append(time.monotonic_ns() - self.said_ns)
        self._left -= 1
        if not self._left:
            self._all_heard.set()


class Player(asyncio.Protocol):
    """The least that a WebSocket client can be: it asks to upgrade, counts texts and answers pings."""

    def __init__(self, audience: Audience, ticket: str) -> None:
        self._audience = audience
        self._ticket = ticket
        self._received = b""
        self._upgraded = False
        self.inside: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        key = b64encode(os.urandom(16)).decode()
        self.transport.write(
            f"GET /gameserver?ticketId={self._ticket} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
        )

    def say(self, text: bytes) -> None:
        self._write(0x81, text)

    def _write(self, kind: int, payload: bytes) -> None:
        """One masked frame under the mask of zeros, which the standard allows."""
        assert len(payload) < 126
        self.transport.write(bytes((kind, 0x80 | len(payload))) + bytes(4) + payload)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._upgraded:
            head, end, rest = self._received.partition(b"\r\n\r\n")
            if not end:
                return
            if not head.startswith(b"HTTP/1.1 101"):
                self.inside.set_exception(RuntimeError(f"not let in: {self._received[:500]!r}"))
                return
            self._upgraded, self._received = True, rest
            self.inside.set_result(None)
        while (length := frame_length(self._received)) and len(self._received) >= length:
            kind = self._received[0] & 0x0F
            self._received = self._received[length:]
            if kind == 1:
                self._audience.heard()
            elif kind == 9:
                self._write(0x8A, b"")

    def connection_lost(self, error: Exception | None) -> None:
        self._audience.lost += 1
        if not self.inside.done():
            self.inside.set_exception(error or ConnectionError("closed"))


def frame_length(received: bytes) -> int:
    """Of the first frame, head included; 0 where even that cannot be told yet. Servers do not mask."""
    if len(received) < 4:
        return 2 if len(received) >= 2 and received[1] == 0 else 0
    return 4 + int.from_bytes(received[2:4], "big") if received[1] == 126 else 2 + received[1]


@contextlib.contextmanager
def run_game_server(server: RunningServer, keys: str) -> Iterator[tuple[int, int]]:
    """Its port and its process id."""
    with tempfile.TemporaryDirectory(prefix="roost-bench-") as folder:
        port = free_port()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ROOST_")}
        environment |= {"ROOST_QUEUE_KEYS": keys, "ROOST_TICKET_KEYS": keys, "ROOST_LOG_LEVEL": "warning"}
        environment["ROOST_GAMESERVER__IDLE_SECONDS"] = "3600"
        command = [
            *(sys.executable, "-m", "roost", "gameserver", "--url", server.url, "--port", str(port)),
            *("--capacity", str(PLAYERS), "--server-id", "stage", "--data", str(Path(folder) / "data")),
        ]
        out = Path(folder) / "log"
        with open(out, "wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            wait_until(lambda: "is up" in out.read_text(), "roost gameserver", out.read_text)
            yield port, process.pid
        finally:
            process.kill()
            process.wait()


async def until_open(platform: Platform) -> None:
    """A leader has shown the server to the world, and ticks: then a ticket comes with the entry."""
    led = False
    while not led or (await platform.worlds.view("main")).free < PLAYERS:
        await asyncio.sleep(0.1)
        led = "led_at" in (await platform.worlds.of("main").room.read_board()).numbers


async def enter_all(server: RunningServer, port: int, keys: str) -> tuple[Audience, list[Player]]:
    """While they enter, a gateway and a manager run in this process; nobody has to wait."""
    passes = Passes(parse_keys(keys), parse_keys(keys))
    audience, players = Audience(), list[Player]()
    loop = asyncio.get_running_loop()
    settings = Settings(store=server.url, queue_keys=keys, ticket_keys=keys)
    async with open_platform(settings, roles=("gateway", "manager"), attach=True) as platform:
        room = platform.worlds.of("main").room
        await until_open(platform)
        for start in range(0, PLAYERS, BATCH_LIMIT):
            users = [user_of(number) for number in range(start, start + BATCH_LIMIT)]
            places = await asyncio.gather(*(room.enter(user, "", "", BASE) for user in users))
            for user, place in zip(users, places, strict=True):
                assert isinstance(place, Offered), place
                ticket = passes.sign_ticket(Ticket(room.world, user, place.tid, place.seq))
                connecting = loop.create_connection(partial(Player, audience, ticket), "127.0.0.1", port)
                _, player = await connecting
                players.append(player)
            await asyncio.gather(*(player.inside for player in players[start:]))
    return audience, players


async def main() -> list[Case | Figure]:
    raise_file_limit()
    keys = "bench:" + b64encode(os.urandom(32)).decode()
    with run_valkey(persistent=True) as server, run_game_server(server, keys) as (port, pid):
        print(f"players: {PLAYERS:,} enter", flush=True)
        audience, players = await enter_all(server, port, keys)
        speakers = players[:SPEAKERS]
        for number in range(WARM_UP):
            await audience.say(speakers[number])
        print(f"players: {PACED} words", flush=True)
        waits: list[float] = []
        last: list[float] = []
        for number in range(PACED):
            heard = await audience.say(speakers[number % SPEAKERS])
            waits += [ns / 1e6 for ns in heard]
            last.append(max(heard) / 1e6)
            await asyncio.sleep(PAUSE_S)
        speed = await at_full_speed(audience, speakers, pid)
        lost = audience.lost
        for player in players:
            player.transport.abort()
    of = f"broadcast to {PLAYERS:,}"
    return [
        *speed,
        *(
            Figure(f"{of}, {name}", "ms", [percentile(found, share)])
            for name, found, share in (
                ("p50", waits, 0.5),
                ("p99", waits, 0.99),
                ("last, p50", last, 0.5),
                ("last, p99", last, 0.99),
            )
        ),
        Figure(f"{of}, cut", "players", [lost], most=0),
    ]


async def at_full_speed(audience: Audience, speakers: list[Player], pid: int) -> tuple[Case, Figure]:
    """Deliveries in a second, and what each takes of the server's processor."""
    rate, costs_us = Case(f"deliveries per second, {PLAYERS:,} players"), list[float]()
    words = 0
    for number in range(1, ROUNDS + 1):
        print(f"players: round {number} of {ROUNDS}", flush=True)
        started, used, before = time.monotonic(), cpu_seconds([pid]), words
        while time.monotonic() - started < ROUND_S:
            await audience.say(speakers[words % SPEAKERS])
            words += 1
        delivered = (words - before) * PLAYERS
        rate.add("ours", delivered / (time.monotonic() - started))
        costs_us.append((cpu_seconds([pid]) - used) / delivered * 1e6)
    return rate, Figure(f"one delivery, {PLAYERS:,} players", "µs of server", costs_us)
