"""The store hangs for longer than every lease: whoever plays goes on, by leases in the database."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import roost
from roost.core.signing import parse_keys
from roost.sdk.play import Player
from roost.testing import RunningServer, eventually, free_port
from tests.acceptance.conftest import Started, open_home
from tests.acceptance.test_entity import Servers, homes_of, metric, open_gate

LEASE_S = 3.0
AWAY_S = 3 * LEASE_S
KEYS = "k1:" + base64.b64encode(b"k" * 32).decode()
WRITE_THROUGH = "roost.servers.entity.reference:WriteThroughReference"


@pytest.fixture
def servers(valkey: RunningServer, tmp_path: Path) -> Iterator[Servers]:
    with open_home(tmp_path) as home:
        servers = Servers(home, valkey.url, settings={"ROOST_QUEUE_KEYS": KEYS, "ROOST_TICKET_KEYS": KEYS})
        servers.up()
        yield servers
        valkey.resume()


def gate_url(servers: Servers) -> str:
    port = free_port()
    flags = ("--port", str(port), "--tcp-port", str(free_port()))
    servers.home.start("gate", *flags, **servers.environment())
    return f"ws://127.0.0.1:{port}"


async def count_for(player: Player, seconds: float) -> list[int]:
    """Ask without pause; an answer that is none raises."""
    found: list[int] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found.append((await player.ask("count")).result)
    return found


def is_carrying(server: Started) -> bool:
    return metric(server, "roost_entity_database_lease ") == 1


@pytest.mark.slow
async def test_g7_players_go_on_while_the_store_hangs_for_longer_than_the_lease(
    servers: Servers, valkey: RunningServer
) -> None:
    entity = servers.entity("501")
    url = gate_url(servers)
    players = [roost.play(url, roost.sign_login(parse_keys(KEYS), user=f"u{n}")) for n in range(10)]

    async def play(player: Player) -> list[int]:
        async with player:
            started.append(player)
            found = await count_for(player, 1.0)
            await is_away.wait()
            found += await count_for(player, AWAY_S)
            assert is_carrying(entity)
            goes_on.append(len(found))
            await is_back.wait()
            return found + await count_for(player, 1.0)

    started: list[Player] = []
    goes_on: list[int] = []
    is_away, is_back = asyncio.Event(), asyncio.Event()
    playing = [asyncio.create_task(play(player)) for player in players]
    await eventually(lambda: len(started) == len(players), "everybody plays", 20)
    valkey.pause()
    is_away.set()
    await eventually(lambda: len(goes_on) == len(players) or any(t.done() for t in playing), "they go on", 60)
    valkey.resume()
    is_back.set()

    for found in await asyncio.gather(*playing):
        assert found == list(range(1, len(found) + 1)), "each once, in order"
        assert len(found) > 50
    assert [player.connects for player in players] == [1] * len(players)
    await eventually(lambda: not is_carrying(entity), "the lease in the database is dropped")
    assert metric(entity, 'roost_entity_users_turned_total{what="lost"}') == 0


@pytest.mark.slow
async def test_g9_a_server_that_is_killed_while_the_store_hangs_is_taken_over_when_its_lease_has_run_out(
    servers: Servers, valkey: RunningServer
) -> None:
    first = servers.entity("501", "--class", WRITE_THROUGH)
    users = [f"u{n}" for n in range(5)]
    async with open_gate(servers) as gate:
        await homes_of(gate, users)
        epochs = dict(gate.seen)
        assert [await gate.ask(user, 1) for user in users] == [1] * 5
        valkey.pause()
        await eventually(lambda: is_carrying(first), "it carries on", 20)
        for user in users:
            answer = await gate.send("501", user, 2, epochs[user], "count")
            assert not answer.code, answer.message
        first.process.kill()
        valkey.resume()
        servers.entity("502", "--class", WRITE_THROUGH)

        assert [await gate.ask(user, 3) for user in users] == [3] * 5
