"""`/lb/v1` with thousands of servers: no request keeps the others waiting."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from roost.api.discovery import RegisterInput
from roost.api.limits import STRATEGIES
from roost.core.errors import UnknownInstance
from roost.settings import Settings
from roost.testing import Gateway, RunningServer, open_gateway, run_valkey

pytestmark = pytest.mark.slow

TOKEN = "a-token-for-the-tests"
SERVERS = 5000
MOST_S = 0.05


def game_server(n: int) -> RegisterInput:
    """With all that a server says of itself: more takes longer to read."""
    return RegisterInput(
        "game",
        "main",
        server_id=f"s{n:04}",
        hostname=f"s{n:04}.example.com",
        private_ip="10.0.0.1",
        ports={"tcp": 7000, "udp": 7001, "http": 8080},
        capacity=2000,
        version="1.4.2",
        zone=f"z{n % 3}",
        labels={"map": "ice", "mode": "ranked", "build": "release"},
        system_info={"os": "linux", "cpu": 16, "memory": 32768, "kernel": "6.1"},
        performance={"cpu": 41.5, "memory": 12000, "tick": 16.6},
    )


async def register_all(url: str, folder: Path) -> None:
    async with open_gateway(url, Settings(data=folder)) as gateway:
        register = gateway.platform.discovery.register
        for first in range(0, SERVERS, 500):
            await asyncio.gather(*(register(game_server(n)) for n in range(first, first + 500)))


@pytest.fixture(scope="module")
def full_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A store that knows all servers, and on which no time passes. A test leaves it as it was."""
    with run_valkey() as server:
        asyncio.run(register_all(server.url, tmp_path_factory.mktemp("gateway")))
        yield server


@pytest.fixture
async def gateway(full_store: RunningServer, tmp_path: Path) -> AsyncIterator[Gateway]:
    async with open_gateway(full_store.url, Settings(data=tmp_path, api_token=TOKEN)) as gateway:
        try:
            yield gateway
        finally:
            await gateway.platform.balancers.close()


async def nothing() -> None: ...


async def longest_turn_s(
    work: Callable[[], Awaitable[None]], before: Callable[[], Awaitable[None]] = nothing
) -> float:
    """The longest that the loop worked without letting others have a turn, the best of three; the first
    that is good enough decides. What comes `before` each is not measured: it makes them alike where the
    first time is what counts.

    Processor time of its thread: what other processes take from us does not count, nor what the collector
    spends on what the other tests left.
    """
    longest: list[float] = []
    for _ in range(3):
        await before()
        gc.collect()
        gc.disable()
        turns = Turns()
        watching = asyncio.create_task(turns.watch())
        await asyncio.sleep(0)
        try:
            await work()
        finally:
            watching.cancel()
            gc.enable()
        longest.append(turns.longest_s)
        if turns.longest_s < MOST_S:
            break
    return min(longest)


class Turns:
    def __init__(self) -> None:
        self.longest_s = 0.0

    async def watch(self) -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            self.longest_s = max(self.longest_s, now - before)
            before = now


async def ask(gateway: Gateway, method: str, path: str, body: Any = None) -> Any:
    answer = await gateway.ask(method, path, body, token=TOKEN)
    assert answer.status == 200, answer.body
    return answer.json


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_no_request_holds_the_loop(gateway: Gateway, strategy: str) -> None:
    where = f"type=game&group=main&strategy={strategy}"
    keys = [f"user-{n}" for n in range(200)]

    async def select_first() -> None:
        """It reads the whole list; from here on the balancer follows discovery."""
        assert (await ask(gateway, "GET", f"/lb/v1/select?{where}&key=first"))["serverId"]

    async def select() -> None:
        one = await ask(gateway, "GET", f"/lb/v1/select?{where}&key=a&n=10")
        assert len(set(one["candidates"])) == 10
        assert one["candidates"][0] == one["serverId"]
        many = {"type": "game", "group": "main", "strategy": strategy, "keys": keys}
        assert len((await ask(gateway, "POST", "/lb/v1/select", many))["selections"]) == len(keys)

    assert await longest_turn_s(select_first, before=gateway.platform.balancers.close) < MOST_S
    assert await longest_turn_s(select) < MOST_S


async def test_zones_and_a_slow_start_do_not_hold_it_either(gateway: Gateway) -> None:
    given = {"type": "game", "group": "main", "zone": "z1", "slowStartSeconds": 600, "strategy": "rendezvous"}
    await ask(gateway, "POST", "/lb/v1/select", {**given, "keys": ["first"]})

    async def select() -> None:
        found = await ask(gateway, "POST", "/lb/v1/select", {**given, "keys": [f"u{n}" for n in range(100)]})
        assert {one["zone"] for one in found["selections"]} == {"z1"}

    assert await longest_turn_s(select) < MOST_S


async def test_ring_and_explanation_do_not_hold_it(gateway: Gateway) -> None:
    async def look() -> None:
        ring = await ask(gateway, "GET", "/lb/v1/ring?type=game&group=main")
        assert len(ring["nodes"]) == SERVERS
        told = await ask(gateway, "GET", "/lb/v1/explain?type=game&group=main&key=a")
        assert len(told["considered"]) == SERVERS

    assert await longest_turn_s(look, before=gateway.platform.balancers.close) < MOST_S


async def test_a_preview_and_the_first_weight_do_not_hold_it(gateway: Gateway) -> None:
    discovery, balancers = gateway.platform.discovery, gateway.platform.balancers

    async def remove_the_heavy_one() -> None:
        with contextlib.suppress(UnknownInstance):
            await discovery.remove("heavy")

    async def all_weigh_the_same() -> None:
        await remove_the_heavy_one()
        await balancers.close()
        await ask(gateway, "GET", "/lb/v1/select?type=game&group=main&key=first")

    async def weigh_and_preview() -> None:
        balancer = await balancers.of("game", "main", "consistent_hash")
        await discovery.register(RegisterInput("game", "main", instance_id="heavy", weight=200))
        while len(balancer.all_servers) == SERVERS:
            await asyncio.sleep(0.01)
        change = {"add": [{"serverId": f"new-{n}"} for n in range(50)], "remove": ["s0001", "s0002"]}
        preview = await ask(gateway, "POST", "/lb/v1/preview", {"type": "game", "group": "main", **change})
        assert 0.005 < preview["moved"] < 0.03

    longest_s = await longest_turn_s(weigh_and_preview, before=all_weigh_the_same)
    await remove_the_heavy_one()
    assert longest_s < MOST_S
