"""What an instance costs the store: about 1 KB, and 570 bytes of feed for each change; see operations.md."""

from __future__ import annotations

import asyncio

from roost.api.discovery import HealthCheck, RegisterInput
from roost.discovery.service import Discovery
from roost.store import scopes
from roost.store.store import Store
from roost.testing import RunningServer
from tests.store.reading import used_memory

INSTANCES = 1000


def usual(n: int) -> RegisterInput:
    """What a game server says of itself."""
    return RegisterInput(
        "game",
        f"kr-{n % 10}",
        server_id=f"game-{n:05d}",
        hostname=f"host-{n:05d}.example",
        public_ip="203.0.113.10",
        private_ip="10.0.12.34",
        ports={"udp": 7777, "grpc": 50051},
        capacity=100,
        version="1.4.2",
        zone="kr-1a",
        health=HealthCheck("http", "grpc", "/healthz"),
        system_info={"os": "linux", "arch": "x86_64", "cpu": 16, "memoryMb": 32768},
    )


async def test_bytes_per_instance(store: Store, server: RunningServer) -> None:
    discovery, feed = Discovery(store), store.keys.feed(scopes.discovery())
    await discovery.register(usual(0))  # scripts are loaded, keys are there
    before = used_memory(server)
    for first in range(1, INSTANCES, 100):
        await asyncio.gather(*(discovery.register(usual(n)) for n in range(first, first + 100)))

    told = int(server.command_reply("MEMORY", "USAGE", feed, "SAMPLES", 0))
    kept = used_memory(server) - before - told

    assert 600 <= kept / INSTANCES <= 1300
    assert 300 <= told / INSTANCES <= 750
