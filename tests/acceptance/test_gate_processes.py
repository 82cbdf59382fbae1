"""`roost gate` and `roost entity` as real processes: players through kills, stops and moves."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

import roost
from roost.core.passes import Passes, Ticket
from roost.core.signing import parse_keys
from roost.sdk.play import Player
from roost.sdk.words import GateRefused
from roost.testing import START_S, eventually, free_port, wait_until
from tests.acceptance.conftest import Home, Started, http, open_home

KEYS = "k1:" + base64.b64encode(b"k" * 32).decode()
WORLDS = "main=gate,other"


@dataclass
class GateProcess:
    started: Started
    port: int
    tcp_port: int

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    @property
    def tcp_url(self) -> str:
        return f"tcp://127.0.0.1:{self.tcp_port}"

    def kill(self) -> None:
        self.started.process.kill()
        self.started.process.wait()

    def metric(self, name: str) -> float:
        return metric(self.port, name)


def metric(port: int, name: str) -> float:
    """A number on the metrics page of the process that serves this port; 0 if it is not there yet."""
    page = http(f"http://127.0.0.1:{port + 1000}/metrics").body.decode()
    return float(next((line.split()[-1] for line in page.splitlines() if line.startswith(name)), 0))


@dataclass
class Stage:
    """One Roost for all tests here; each has users of its own."""

    home: Home
    up: Started
    entities: dict[str, Started] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)

    def gate(self, *flags: str) -> GateProcess:
        port, tcp_port = free_port(), free_port()
        ports = ("--port", str(port), "--tcp-port", str(tcp_port))
        return GateProcess(self.home.start("gate", *ports, *flags, **ENVIRONMENT), port, tcp_port)

    def entity(self, server_id: str) -> Started:
        port = free_port()
        started = self.home.start("entity", "--id", server_id, "--port", str(port), **ENVIRONMENT)
        self.entities[server_id], self.ports[server_id] = started, port
        return started

    def unsaved_seconds(self, server_id: str) -> float:
        return metric(self.ports[server_id], "roost_entity_unsaved_seconds")


ENVIRONMENT = {
    "ROOST_QUEUE_KEYS": KEYS,
    "ROOST_TICKET_KEYS": KEYS,
    "ROOST_QUEUE__WORLDS": WORLDS,
    "ROOST_QUEUE__TICK_MS": "100",
    "ROOST_QUEUE__USER_PER_SECOND": "100",
    "ROOST_QUEUE__USER_BURST": "100",
    "ROOST_QUEUE__IP_PER_SECOND": "1000",
    "ROOST_LOG_LEVEL": "info",
}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with open_home(tmp_path_factory.mktemp("gates")) as home:
        stage = Stage(home, home.up(**ENVIRONMENT))
        stage.entity("501")
        yield stage


@pytest.fixture(scope="module")
def gates(stage: Stage) -> tuple[GateProcess, GateProcess]:
    return stage.gate(), stage.gate()


def token(user: str, **more: Any) -> str:
    return roost.sign_login(parse_keys(KEYS), user=user, **more)


async def counted(player: Player, how_many: int) -> list[int]:
    """Count up so many times, pipelined; what the answers say."""
    asked = [await player.send("count") for _ in range(how_many)]
    return [(await one).result for one in asked]


async def test_both_ways_in_lead_to_the_same_home(gates: tuple[GateProcess, GateProcess]) -> None:
    one, two = gates
    async with roost.play(one.url, token("ways")) as player:
        assert await counted(player, 20) == list(range(1, 21))
        assert player.types["entity"].reason == "new"
    async with roost.play(two.tcp_url, token("ways")) as player:
        assert player.types["entity"].last_seq == 20
        assert await counted(player, 5) == list(range(21, 26))
        assert (await player.ask("version")).result["serverId"] == "501"


async def test_pushes_of_the_home_arrive(gates: tuple[GateProcess, GateProcess]) -> None:
    async with roost.play(gates[0].url, token("push")) as player:
        await player.request({"op": "say", "text": "hello"})
        async for push in player.pushes():
            assert push.body == {"said": "hello"}
            break


async def test_a_second_login_at_the_other_gate_takes_over(gates: tuple[GateProcess, GateProcess]) -> None:
    async with roost.play(gates[0].url, token("twice")) as first:
        assert await counted(first, 3) == [1, 2, 3]
        async with roost.play(gates[1].url, token("twice")) as second:
            await eventually(lambda: first.ended is not None, "the first one is told")
            assert isinstance(first.ended, GateRefused)
            assert first.ended.reason == "TAKEN_OVER"
            assert await counted(second, 3) == [4, 5, 6]


async def test_after_kill_9_of_a_gate_players_resume_at_the_other_in_order_and_once(
    stage: Stage, gates: tuple[GateProcess, GateProcess]
) -> None:
    victim, other = stage.gate(), gates[1]
    urls = f"{victim.url},{other.url}"
    tcp_urls = f"{victim.tcp_url},{other.tcp_url}"
    players = [roost.play(urls if n % 2 else tcp_urls, token(f"killed-{n}")) for n in range(10)]

    async def play(player: Player) -> list[int]:
        async with player:
            results: list[int] = []
            while player.connects < 2 or len(results) < 200:
                results += await counted(player, 25)
            return results

    playing = [asyncio.create_task(play(player)) for player in players]
    await eventually(lambda: all(player.connects for player in players), "everybody plays")
    await eventually(lambda: victim.metric('roost_gate_messages_total{outcome="ok"}') > 500, "messages flow")
    victim.kill()

    for player, results in zip(players, await asyncio.gather(*playing), strict=True):
        assert results == list(range(1, len(results) + 1)), "each once, in order"
        assert player.connects == 2


async def test_a_gate_that_is_stopped_sends_its_players_to_the_other(
    stage: Stage, gates: tuple[GateProcess, GateProcess]
) -> None:
    stopped, other = stage.gate(), gates[0]
    async with roost.play(f"{stopped.url},{other.url}", token("drained")) as player:
        assert await counted(player, 10) == list(range(1, 11))
        stopping = asyncio.to_thread(stopped.started.interrupt, signal.SIGTERM)
        results, (code) = await asyncio.gather(counted(player, 100), stopping)
        assert code == 0
        results += await counted(player, 10)
    assert results == list(range(11, 121))
    assert player.connects == 2


async def test_users_of_a_server_that_stops_go_on_elsewhere_and_lose_nothing(
    stage: Stage, gates: tuple[GateProcess, GateProcess]
) -> None:
    stage.entity("502")
    async with roost.play(gates[0].url, token("rehomed")) as player:
        await counted(player, 10)
        home = (await player.ask("version")).result["serverId"]
        stopped = stage.entities.pop(home)
        stopping = asyncio.to_thread(stopped.interrupt, signal.SIGTERM, 20)
        results: list[int] = []
        done = asyncio.ensure_future(stopping)
        while not done.done() or len(results) < 100:
            results += await counted(player, 10)
        moved_to = (await player.ask("version")).result["serverId"]
    assert results == list(range(11, 11 + len(results)))
    assert moved_to != home


@pytest.mark.slow
async def test_the_home_of_one_is_killed_and_the_user_is_served_again(
    stage: Stage, gates: tuple[GateProcess, GateProcess]
) -> None:
    """What was acknowledged within the named window may be lost; nothing else is."""
    async with roost.play(gates[0].url, token("crash")) as player:
        await counted(player, 10)
        home = (await player.ask("version")).result["serverId"]
        await eventually(lambda: stage.unsaved_seconds(home) == 0, "what was counted is in the database")
        victim = stage.entities.pop(home)
        if not stage.entities:
            stage.entity("503")
        victim.process.kill()
        victim.process.wait()

        async def serves() -> bool:
            try:
                return bool(await player.request("version"))
            except roost.RoostError:
                return False

        await eventually(serves, "another home", timeout_s=30)
        assert await counted(player, 5) == list(range(11, 16))


@pytest.mark.parametrize(
    "login",
    ["rubbish", "dev:ann", token("late", ttl_s=-1), roost.sign_entry(parse_keys(KEYS), user="ann")],
    ids=["rubbish", "dev", "late", "an entry pass"],
)
async def test_whoever_has_no_good_token_stays_outside(
    gates: tuple[GateProcess, GateProcess], login: str
) -> None:
    for url in (gates[0].url, gates[0].tcp_url):
        with pytest.raises(GateRefused) as refused:
            async with roost.play(url, login):
                pass
        assert refused.value.reason == "TOKEN_REFUSED"


def ticket_of(stage: Stage, user: str, world: str, within_s: float = 10.0) -> str:
    """Enter again and again, until there is a ticket."""
    signature = roost.sign_entry(parse_keys(KEYS), user=user, world=world)
    body = json.dumps({"userId": user, "world": world, "signature": signature}).encode()
    replies: list[dict[str, Any]] = []

    def promoted() -> bool:
        replies.append(http(f"{stage.up.url}/api/queue/entry", method="POST", body=body).json)
        return bool(replies[-1].get("ticketId"))

    wait_until(promoted, f"a ticket for {user}", lambda: str(replies[-1]), within_s)
    return str(replies[-1]["ticketId"])


async def test_a_gate_of_a_world_asks_for_its_tickets(stage: Stage) -> None:
    gate = stage.gate("--world", "main", "--capacity", "50", "--server-id", "g-1")
    ticket = await asyncio.to_thread(ticket_of, stage, "guest", "main")
    async with roost.play(gate.url, ticket) as player:
        assert player.user == "guest"
        assert await counted(player, 3) == [1, 2, 3]
        keys = parse_keys(KEYS)
        elsewhere = Passes(keys, keys).sign_ticket(Ticket("other", "guest", "tid", 1))
        for bad in (elsewhere, token("guest"), "rubbish", ""):
            with pytest.raises(GateRefused) as refused:
                async with roost.play(gate.url, bad):
                    pass
            assert refused.value.reason == "TICKET_REFUSED", bad
        assert await counted(player, 1) == [4], "nobody was put out by them"
        player_left = player.resume
    with pytest.raises(GateRefused, match="TICKET"):
        async with roost.play(gate.url, ticket, resume=player_left):
            pass
    assert gate.started.interrupt(signal.SIGTERM) == 0


@pytest.mark.slow
async def test_after_kill_9_of_a_gate_of_a_world_a_fresh_ticket_resumes_at_the_other(stage: Stage) -> None:
    """The ticket comes when the dead gate is known to be dead: until then its player is inside."""
    victim, other = (
        stage.gate("--world", "main", "--capacity", "50", "--server-id", name) for name in ("g-2", "g-3")
    )

    async def fresh_ticket() -> str:
        return await asyncio.to_thread(ticket_of, stage, "moves-on", "main", 40.0)

    async with roost.play(f"{victim.url},{other.url}", fresh_ticket) as player:
        results = await counted(player, 100)
        asked = [await player.send("count") for _ in range(100)]
        victim.kill()
        results += [(await one).result for one in asked]
        results += await counted(player, 10)
        assert player.connects == 2
    assert results == list(range(1, 211)), "each once, in order"
    assert other.started.interrupt(signal.SIGTERM) == 0


def test_up_runs_entity_and_gate_and_stops_them(home: Home) -> None:
    ports = {
        "ROOST_GATE__PORT": free_port(),
        "ROOST_GATE__TCP_PORT": free_port(),
        "ROOST_ENTITY__PORT": free_port(),
    }
    started = home.up("--with", "entity,gate", **{name: str(port) for name, port in ports.items()})
    wait_until(lambda: "roost gate is up" in started.text, "the gate", lambda: started.text, START_S)

    async def play() -> None:
        async with roost.play(f"ws://127.0.0.1:{ports['ROOST_GATE__PORT']}", "dev:ann") as player:
            assert await counted(player, 3) == [1, 2, 3]

    asyncio.run(play())
    assert started.interrupt(signal.SIGINT, within_s=15) == 0
    wait_until(lambda: not _is_listening(ports["ROOST_GATE__PORT"]), "the gate is gone")


def _is_listening(port: int) -> bool:
    table = f":{port:04X} "
    with open("/proc/net/tcp", encoding="ascii") as file:
        return any(table in line and " 0A " in line for line in file)
