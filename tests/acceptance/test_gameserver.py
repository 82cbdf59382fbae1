"""`roost gameserver` behind a waiting room, as players, operators and a process manager see it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import signal
import socket
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import (
    ClientSession,
    ClientWebSocketResponse,
    TCPConnector,
    WSCloseCode,
    WSMsgType,
    WSServerHandshakeError,
)

from roost.testing import START_S, Answer, eventually, free_port, wait_until
from tests.acceptance.conftest import Home, Started, cpu_s, http, open_home

WORLDS = "main,half,flood,bad,two,eu,full,grace,reload,clean,idle,slow,dead,stop,drain,rules,direct"


@dataclass
class Game:
    """A running game server."""

    stage: Stage
    started: Started
    port: int
    world: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def count(self) -> int:
        return int(http(f"{self.url}/gameserver/clients").json["count"])

    def metric(self, name: str) -> float:
        page = http(f"http://127.0.0.1:{self.port + 1000}/metrics").body.decode()
        return float(next(line.split()[-1] for line in page.splitlines() if line.startswith(name)))

    def refuses(self, query: str = "") -> Answer:
        return http(f"{self.url}/gameserver{query}")


@dataclass
class Stage:
    """One Roost for all tests here; each plays in a world of its own."""

    home: Home
    up: Started
    tickets: list[str] = field(default_factory=list)
    games: list[Game] = field(default_factory=list)

    def game(self, world: str, *flags: str, **env: str) -> Game:
        port = free_port()
        env = {"ROOST_LOG_LEVEL": "debug", **env}
        started = self.home.start("gameserver", "--port", str(port), "--world", world, *flags, **env)
        game = Game(self, started, port, world)
        self.games.append(game)
        return game

    def enter(self, user: str, world: str) -> dict[str, Any]:
        body = json.dumps({"userId": user, "nickname": user.upper(), "world": world}).encode()
        answer = http(f"{self.up.url}/api/queue/entry", method="POST", body=body)
        assert answer.status == 200, answer.body
        reply: dict[str, Any] = answer.json
        if reply.get("ticketId"):
            self.tickets.append(reply["ticketId"])
        return reply

    def ticket(self, user: str, world: str) -> str:
        return str(self.promoted(user, world)["ticketId"])

    def promoted(self, user: str, world: str) -> dict[str, Any]:
        """The answer with a ticket, asked for until it is there."""
        replies: list[dict[str, Any]] = []

        def promoted() -> bool:
            replies.append(self.enter(user, world))
            return bool(replies[-1]["status"] == "PROMOTED")

        wait_until(promoted, f"a ticket for {user}", lambda: str(replies[-1]))
        return replies[-1]

    def view(self, world: str) -> Any:
        return http(f"{self.up.url}/queue/v1/worlds/{world}", token=self.home.token()).json

    def instances(self) -> list[Any]:
        found: list[Any] = http(f"{self.up.url}/sd/v1/instances", token=self.home.token()).json["instances"]
        return found

    def servers_of(self, world: str) -> list[str]:
        return [one["serverId"] for one in self.instances() if one["labels"].get("world") == world]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    limits = {
        "ROOST_QUEUE__TICK_MS": "100",
        "ROOST_QUEUE__USER_PER_SECOND": "100",
        "ROOST_QUEUE__USER_BURST": "100",
    }
    limits |= {"ROOST_QUEUE__IP_PER_SECOND": "1000", "ROOST_LOG_LEVEL": "debug"}
    with open_home(tmp_path_factory.mktemp("gameserver")) as home:
        yield Stage(home, home.up(ROOST_QUEUE__WORLDS=WORLDS, **limits))


@pytest.fixture(scope="module")
def game(stage: Stage) -> Game:
    """A server with room for all, in the world main."""
    game = stage.game("main", "--server-id", "501")

    def board_shows_it() -> bool:
        page = http(f"{stage.up.url}/metrics").body
        return b'queue_capacity{world="main"}' in page and b'queue_capacity{world="main"} 0.0' not in page

    wait_until(board_shows_it, "the gateway's board, which is read once a second")
    return game


@dataclass(eq=False)
class Player:
    session: ClientSession
    ws: ClientWebSocketResponse
    heard: int = 0

    async def hears(self) -> dict[str, Any]:
        async with asyncio.timeout(5):
            heard: dict[str, Any] = await self.ws.receive_json()
            return heard

    async def ends(self) -> tuple[int | None, str]:
        """Everything up to the close frame is read; its code and reason."""
        async with asyncio.timeout(10):
            while (message := await self.ws.receive()).type is WSMsgType.TEXT:
                pass
        return self.ws.close_code, message.extra or ""

    async def vanish(self) -> None:
        """The line breaks: no close frame."""
        assert self.session.connector is not None
        await self.session.connector.close()


@contextlib.asynccontextmanager
async def playing(game: Game, ticket: str, *, by: str = "query") -> AsyncIterator[Player]:
    async with ClientSession() as session:
        headers = {"X-Queue-Ticket": ticket} if by == "header" else {}
        query = {"query": f"?ticketId={ticket}", "header": "", "message": "?ticket=message"}[by]
        async with session.ws_connect(f"{game.url}/gameserver{query}", headers=headers) as ws:
            if by == "message":
                await ws.send_json({"ticketId": ticket})
            yield Player(session, ws)


async def refused(game: Game, ticket: str) -> int:
    async with ClientSession() as session:
        with pytest.raises(WSServerHandshakeError) as caught:
            await session.ws_connect(f"{game.url}/gameserver?ticketId={quote(ticket)}")
    return caught.value.status


async def test_from_the_entry_to_the_chat(stage: Stage, game: Game) -> None:
    entry = stage.promoted("ann", "main")
    assert entry["status"] == "PROMOTED"
    assert entry["serverUrl"] == f"ws://127.0.0.1:{game.port}/gameserver"
    bob = stage.ticket("bob", "main")
    async with playing(game, entry["ticketId"]) as ann_there, playing(game, bob, by="header") as bob_there:
        await ann_there.ws.send_str("hello 안녕")
        heard = await bob_there.hears()
        assert heard.keys() == {"timestamp", "nickname", "message"}
        assert (heard["nickname"], heard["message"]) == ("ANN", "hello 안녕")
        assert datetime.fromisoformat(heard["timestamp"]).utcoffset() is not None
        assert heard["timestamp"].endswith("Z")
        assert await ann_there.hears() == heard
        assert game.count() == 2
        assert game.metric("gameserver_client_count") == 2
        await eventually(lambda: stage.view("main")["inside"] == 2, "the ledger to count both")
    await eventually(lambda: game.count() == 0, "both to be gone")


async def test_a_ticket_may_come_as_the_first_message(stage: Stage, game: Game) -> None:
    async with playing(game, stage.ticket("cat", "main"), by="message") as cat:
        await cat.ws.send_str("hi")
        assert (await cat.hears())["nickname"] == "CAT"
    async with playing(game, "nonsense", by="message") as nobody:
        assert await nobody.ends() == (4401, "TICKET_REFUSED")


async def test_a_missing_or_bad_ticket_is_401(stage: Stage, game: Game) -> None:
    missing = game.refuses()
    assert missing.status == 401
    assert missing.json["error"].keys() == {"code", "message", "hint", "requestId"}
    assert missing.json["error"]["code"] == "TICKET_REFUSED"
    assert game.refuses("?ticketId=nonsense").status == 401

    good = stage.ticket("dan", "main")
    assert await refused(game, good[:-4] + "AAAA") == 401  # forged
    assert await refused(game, stage.enter("dan", "main")["receipt"]) == 401  # of another kind
    assert game.refuses(f"?ticketId={good}").status == 426  # no WebSocket: the ticket is not used
    async with playing(game, good):
        pass
    await eventually(lambda: game.count() == 0, "dan to be gone")
    assert await refused(game, good) == 401  # used


async def test_a_ticket_of_another_world_is_401(stage: Stage, game: Game) -> None:
    stage.game("eu")
    assert await refused(game, stage.ticket("eve", "eu")) == 401


async def test_a_second_connection_of_the_same_person_is_409(stage: Stage, game: Game) -> None:
    ticket = stage.ticket("fay", "main")
    async with playing(game, ticket) as fay:
        assert await refused(game, ticket) == 409
        await fay.ws.send_str("still here")
        assert (await fay.hears())["message"] == "still here"


async def test_a_full_server_is_409_and_the_ticket_stays_good_for_another(stage: Stage) -> None:
    first, second = (stage.game("full", "--capacity", "1") for _ in range(2))
    tickets = [stage.ticket(user, "full") for user in ("gus", "hal")]
    async with playing(first, tickets[0]):
        assert await refused(first, tickets[1]) == 409
        assert 'reason="SERVER_FULL"' in http(f"http://127.0.0.1:{first.port + 1000}/metrics").body.decode()
        async with playing(second, tickets[1]):
            assert stage.enter("ida", "full")["status"] == "WAITING"


async def test_after_a_lost_connection_one_is_back_in_without_waiting(stage: Stage) -> None:
    game = stage.game("grace", "--capacity", "1")
    async with playing(game, stage.ticket("ann", "grace")) as ann:
        assert stage.enter("bob", "grace")["status"] == "WAITING"
        await ann.vanish()
        await eventually(lambda: game.count() == 0, "the loss to be seen")
        await eventually(lambda: stage.view("grace")["held"] == 1, "the place to be held")
        back = stage.enter("ann", "grace")
        assert back["status"] == "PROMOTED"
        assert stage.enter("bob", "grace")["status"] == "WAITING"
    await eventually(lambda: stage.view("grace")["inside"] == 0, "the report of the empty server")
    async with playing(game, back["ticketId"]):
        assert stage.enter("bob", "grace")["status"] == "WAITING"


async def test_a_browser_that_reloads_the_page_keeps_its_place_inside(stage: Stage) -> None:
    game = stage.game("reload", "--capacity", "1")
    async with playing(game, stage.ticket("ann", "reload")) as ann:
        await ann.ws.close(code=WSCloseCode.GOING_AWAY)
    await eventually(lambda: stage.view("reload")["held"] == 1, "the place to be held")
    assert stage.enter("ann", "reload")["status"] == "PROMOTED"


async def test_after_a_clean_leave_the_place_is_given_up(stage: Stage) -> None:
    game = stage.game("clean", "--capacity", "1")
    entry = stage.promoted("ann", "clean")
    async with playing(game, entry["ticketId"]) as ann:
        await ann.ws.close()

    def status() -> str:
        url = f"{stage.up.url}/api/queue/status?userId=ann&world=clean"
        request = urllib.request.Request(url, headers={"X-Queue-Receipt": entry["receipt"]})
        with urllib.request.urlopen(request, timeout=5) as response:
            return str(json.loads(response.read())["status"])

    await eventually(lambda: status() == "NONE", "the leave to be told")
    assert stage.view("clean")["held"] == 0
    async with playing(game, stage.ticket("ann", "clean")):
        pass


async def test_silence_is_warned_of_and_then_ended(stage: Stage) -> None:
    idle = {"ROOST_GAMESERVER__IDLE_SECONDS": "2", "ROOST_GAMESERVER__IDLE_WARNING_SECONDS": "1"}
    game = stage.game("idle", **idle)
    async with playing(game, stage.ticket("ann", "idle")) as ann:
        warning = await ann.hears()
        assert (warning["nickname"], warning["warning"]) == ("server", "idle")
        assert await ann.ends() == (1000, "idle")
    assert game.metric("roost_gameserver_idle_disconnects_total") == 1
    await eventually(lambda: stage.view("idle")["inside"] == 0, "the place to be free")
    assert stage.view("idle")["held"] == 0


async def test_the_rules_of_talking(stage: Stage) -> None:
    game = stage.game("rules")
    async with playing(game, stage.ticket("ann", "rules")) as ann:
        await ann.ws.send_str("x" * 4096)
        assert len((await ann.hears())["message"]) == 4096
        await ann.ws.send_str("x" * 4097)
        assert (await ann.ends())[0] == 1009
    async with playing(game, stage.ticket("bob", "rules")) as bob:
        await bob.ws.send_bytes(b"binary")
        assert (await bob.ends())[0] == 1003
    async with playing(game, stage.ticket("cat", "rules")) as cat:
        for number in range(200):
            await cat.ws.send_str(str(number))
        heard = []
        async with asyncio.timeout(5):
            while (message := await cat.ws.receive()).type is WSMsgType.TEXT:
                heard.append(message.json())
        assert cat.ws.close_code == 1008
        assert [one["warning"] for one in heard if "warning" in one] == ["rate"]
        assert 40 <= len(heard) <= 60


@pytest.mark.slow
async def test_a_slow_reader_is_cut_and_nobody_else_notices(stage: Stage) -> None:
    game = stage.game("slow")
    talkers = [stage.ticket(f"talker-{number}", "slow") for number in range(12)]
    async with contextlib.AsyncExitStack() as stack:
        slow = await unread_connection(game, stage.ticket("slow", "slow"))
        stack.callback(slow.close)
        players = [await stack.enter_async_context(playing(game, ticket)) for ticket in talkers]
        reading = [asyncio.create_task(count_heard(player)) for player in players]
        for said in range(1, 41):
            for player in players:
                await player.ws.send_str("x" * 4000)
            await eventually(partial(all_heard, players, 12 * said), "all to hear all")
        await eventually(lambda: game.count() == len(players), "only the slow one to be cut")
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
    assert game.metric("roost_gameserver_slow_readers_total") == 1
    assert '"reason":"too slow to read"' in game.started.text


def all_heard(players: list[Player], count: int) -> bool:
    return all(player.heard == count for player in players)


async def count_heard(player: Player) -> None:
    async for message in player.ws:
        player.heard += message.type is WSMsgType.TEXT


async def unread_connection(game: Game, ticket: str) -> socket.socket:
    """A WebSocket that is opened and never read from."""
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(line, ("127.0.0.1", game.port))
    key = base64.b64encode(os.urandom(16)).decode()
    request = (
        f"GET /gameserver?ticketId={ticket} HTTP/1.1\r\nHost: game\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    await loop.sock_sendall(line, request.encode())
    assert (await loop.sock_recv(line, 12)) == b"HTTP/1.1 101"
    return line


@pytest.mark.slow
async def test_a_dead_server_takes_its_capacity_along_and_its_people_come_back(stage: Stage) -> None:
    game = stage.game("dead", "--ttl", "3", "--server-id", "dead-1")
    async with playing(game, stage.ticket("ann", "dead")):
        await eventually(lambda: stage.view("dead")["inside"] == 1, "the report")
        game.started.process.kill()
        game.started.process.wait()
        await eventually(lambda: stage.view("dead")["servers"] == [], "the death to be seen", timeout_s=30)
    assert stage.view("dead")["capacity"] == 0
    assert stage.enter("ann", "dead")["status"] == "WAITING"
    again = stage.game("dead", "--ttl", "3", "--server-id", "dead-1")
    async with playing(again, stage.ticket("ann", "dead")):
        assert again.count() == 1


async def test_sigterm_sends_everybody_away_and_leaves_nothing_behind(stage: Stage) -> None:
    game = stage.game("stop", "--server-id", "stop-1")
    assert stage.servers_of("stop") == ["stop-1"]
    async with playing(game, stage.ticket("ann", "stop")) as ann:
        game.started.process.send_signal(signal.SIGTERM)
        assert (await ann.ends())[0] == 1001
        await eventually(lambda: game.started.process.poll() is not None, "the end", timeout_s=5)
    assert game.started.process.returncode == 0
    assert "Traceback" not in game.started.text
    assert stage.servers_of("stop") == [], game.started.text[-2000:]
    await eventually(lambda: stage.view("stop")["servers"] == [], "the ledger to forget it")
    assert stage.enter("ann", "stop")["status"] == "PROMOTED"  # her place was held


async def test_a_drained_server_takes_nobody_new_until_the_order_is_lifted(stage: Stage) -> None:
    stage.game("drain", "--ttl", "6", "--server-id", "drain-1")
    await eventually(lambda: stage.view("drain")["capacity"] == 100, "the server to be known")
    assert stage.home.run("instances", "override", "drain-1", "--drain").returncode == 0
    await eventually(lambda: stage.view("drain")["capacity"] == 0, "the drain to arrive")
    assert stage.home.run("instances", "override", "drain-1", "--lift").returncode == 0
    await eventually(lambda: stage.view("drain")["capacity"] == 100, "the lift to arrive", START_S)


def test_a_direct_server_with_other_ticket_keys_than_the_gateways_says_so_at_start(stage: Stage) -> None:
    keys = "t9:" + base64.b64encode(b"another-ticket-key-of-32-bytes!!").decode()
    done = stage.home.run(
        *("gameserver", "--port", str(free_port()), "--world", "direct", "--url", "embedded:"),
        ROOST_QUEUE__WORLDS=WORLDS,
        ROOST_TICKET_KEYS=keys,
    )
    assert done.returncode != 0
    assert "ROOST_TICKET_KEYS" in done.stderr
    assert "Traceback" not in done.stderr


async def test_it_can_go_straight_to_the_store(stage: Stage) -> None:
    game = stage.game("direct", "--url", "embedded:", ROOST_QUEUE__WORLDS=WORLDS)
    async with playing(game, stage.ticket("ann", "direct")):
        assert game.count() == 1
    assert game.metric('redis_command_latency_count{capability="waitingroom",command="consume"}') >= 1
    await eventually(lambda: game.count() == 0, "ann to be gone")


def test_health_and_readiness_are_on_a_port_of_their_own(stage: Stage, game: Game) -> None:
    beside = f"http://127.0.0.1:{game.port + 1000}"
    assert http(f"{beside}/healthz").json == {"status": "ok"}
    assert http(f"{beside}/readyz").json == {"status": "ready"}
    found = next(i for i in stage.instances() if i["serverId"] == "501")
    assert found["ports"] == {"ws": game.port, "metrics": game.port + 1000}
    assert found["health"] == {"kind": "http", "port": "ws", "path": "/healthz"}
    assert found["capacity"] == 100


def test_a_taken_port_names_its_holder(stage: Stage, game: Game) -> None:
    result = stage.home.run("gameserver", "--port", str(game.port))
    assert result.returncode == 1
    assert f"port {game.port} is taken by" in result.stderr
    assert f"(pid {game.started.process.pid})" in result.stderr


def test_an_unknown_world_is_an_error_at_the_start(stage: Stage) -> None:
    result = stage.home.run("gameserver", "--port", str(free_port()), "--world", "atlantis")
    assert result.returncode == 1
    assert "atlantis" in result.stderr
    assert "Traceback" not in result.stderr


def test_beyond_loopback_the_profile_must_be_said(stage: Stage) -> None:
    result = stage.home.run("gameserver", "--host", "0.0.0.0")
    assert result.returncode == 1
    assert "gameserver.host 0.0.0.0 is reachable by others" in result.stderr


def test_g17_no_log_line_holds_a_ticket(stage: Stage) -> None:
    """Runs after the others of this file: every ticket that they used."""
    texts = [stage.up.text, *(game.started.text for game in stage.games)]
    assert stage.tickets
    for ticket in stage.tickets:
        secret_parts = (ticket, ticket.split(".")[2], ticket.split(".")[3])
        assert not [part for part in secret_parts for text in texts if part in text]


def test_up_runs_it_as_a_child_when_asked(home: Home) -> None:
    port = free_port()
    up = home.up("--with", "gameserver", ROOST_GAMESERVER__PORT=str(port))
    wait_until(lambda: "gameserver is up" in up.text, "the child", lambda: up.text, START_S)
    assert http(f"http://127.0.0.1:{port}/gameserver/clients").json == {"count": 0}
    assert up.interrupt(signal.SIGTERM, within_s=5) == 0
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", port))
    assert "Traceback" not in up.text


# -- clients that mean no good


@contextlib.asynccontextmanager
async def ticketless(game: Game, count: int) -> AsyncIterator[list[ClientWebSocketResponse]]:
    """So many connections that promise a ticket and send none."""
    async with (
        ClientSession(connector=TCPConnector(limit=0)) as session,
        contextlib.AsyncExitStack() as stack,
    ):
        opening = (session.ws_connect(f"{game.url}/gameserver?ticket=message") for _ in range(count))
        lines = await asyncio.gather(*opening, return_exceptions=True)
        there = [line for line in lines if isinstance(line, ClientWebSocketResponse)]
        for line in there:
            stack.push_async_callback(line.close)
        yield there


async def test_connections_without_a_ticket_keep_nobody_out(stage: Stage) -> None:
    game = stage.game("half")
    async with ticketless(game, 300):
        async with playing(game, stage.ticket("ann", "half"), by="message") as ann:
            await ann.ws.send_str("hi")
            assert (await ann.hears())["nickname"] == "ANN"


async def test_pings_do_not_put_the_first_message_off(stage: Stage, game: Game) -> None:
    async with ticketless(game, 1) as (line,):

        async def ping() -> None:
            while not line.closed:
                await line.ping()
                await asyncio.sleep(1.0)

        pinging = asyncio.create_task(ping())
        async with asyncio.timeout(5 + 4):
            assert (await line.receive()).type is WSMsgType.CLOSE
        assert line.close_code == 4401
        pinging.cancel()
        await asyncio.gather(pinging, return_exceptions=True)


PING = b"\x89\x80\0\0\0\0"
"""As a client sends it: masked, with nothing in it."""
UNFINISHED = b"\x00\x80\0\0\0\0"
"""A part of a message that never ends."""


@pytest.mark.parametrize("frame", [PING, UNFINISHED], ids=["pings", "parts without an end"])
async def test_a_flood_of_frames_ends_its_own_line_and_costs_no_core(
    stage: Stage, frame: bytes, request: pytest.FixtureRequest
) -> None:
    game = stage.game("flood")
    pid, user = game.started.process.pid, request.node.callspec.id.replace(" ", "-")
    async with playing(game, stage.ticket(f"{user}-good", "flood")) as good:
        async with playing(game, stage.ticket(f"{user}-bad", "flood")) as bad:
            line = bad.ws.get_extra_info("socket")
            assert line is not None
            before, began = cpu_s(pid), asyncio.get_running_loop().time()
            sending = asyncio.to_thread(_flood, line.dup(), frame)
            async with asyncio.timeout(10):
                assert await sending, "the line was cut"
            await good.ws.send_str("still here")
            assert (await good.hears())["message"] == "still here"
            used, lasted = cpu_s(pid) - before, asyncio.get_running_loop().time() - began
            assert used < 1.5, f"{used:.1f} s of a core in {lasted:.1f} s"


def _flood(line: Any, frame: bytes) -> bool:
    """Send as fast as it goes for some seconds; whether the other side hung up."""
    deadline = time.monotonic() + 8
    with contextlib.closing(line):
        line.setblocking(True)
        line.settimeout(1)
        first = b"\x01\x80\0\0\0\0" if frame is UNFINISHED else b""
        try:
            line.sendall(first)
            while time.monotonic() < deadline:
                with contextlib.suppress(TimeoutError):
                    line.sendall(frame * 1000)
        except OSError:
            return True
    return False


async def test_an_address_whose_tickets_are_bad_is_slowed_down(stage: Stage) -> None:
    game = stage.game("bad")
    statuses = [game.refuses("?ticketId=nonsense").status for _ in range(40)]
    assert statuses[:20] == [401] * 20
    assert 429 in statuses[20:]


@pytest.mark.parametrize("ticket", ["%ff%fe", "%ED%A0%80", "v1.t1.%C3%A4.%C3%B6", "%00"])
async def test_an_unreadable_ticket_is_refused(game: Game, ticket: str) -> None:
    answer = game.refuses(f"?ticketId={ticket}")
    assert answer.refusal in ((401, "TICKET_REFUSED"), (429, "TOO_MANY_REQUESTS"))
    assert "Traceback" not in game.started.text
