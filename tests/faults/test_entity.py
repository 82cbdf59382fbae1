"""Entity servers under a failover of the store that loses what it had acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from roost.testing import SentinelGroup, eventually, run_sentinel
from tests.acceptance.conftest import open_home
from tests.acceptance.test_entity import JOURNAL, Servers, homes_of, open_gate

USERS = [f"u{n}" for n in range(20)]
UNREPLICATED_S = 0.5


@pytest.fixture
def group() -> Iterator[SentinelGroup]:
    with run_sentinel() as group:
        yield group


@pytest.fixture
def servers(group: SentinelGroup, tmp_path: Path) -> Iterator[Servers]:
    with open_home(tmp_path) as home:
        servers = Servers(home, group.url)
        servers.up()
        yield servers


async def fails_over_and_forgets(group: SentinelGroup) -> None:
    """The primary acknowledges writes that reach no replica, and dies."""
    primary = await asyncio.to_thread(group.primary)
    replicas = [server for server in group.servers if server is not primary]
    for replica in replicas:
        replica.pause()
    primary.command_reply("CLIENT", "KILL", "TYPE", "replica")
    await asyncio.sleep(UNREPLICATED_S)
    primary.kill()
    for replica in replicas:
        replica.resume()
    await asyncio.to_thread(group.wait_for_new_primary, primary.port)


@pytest.mark.parametrize("entity", [(), ("--class", JOURNAL)], ids=["write-back", "journal"])
@pytest.mark.slow
async def test_g9_a_store_that_loses_writes_loses_no_message(
    servers: Servers, group: SentinelGroup, entity: tuple[str, ...]
) -> None:
    for server_id in ("501", "502"):
        servers.entity(server_id, *entity)
    results: dict[str, list[object]] = {user: [] for user in USERS}
    stopping = asyncio.Event()

    async with open_gate(servers) as gate:
        await homes_of(gate, USERS)

        async def play(user: str) -> None:
            while not stopping.is_set():
                results[user].append(await gate.ask(user, len(results[user]) + 1))

        playing = [asyncio.create_task(play(user)) for user in USERS]
        await eventually(lambda: min(map(len, results.values())) >= 50, "everybody plays")
        await fails_over_and_forgets(group)
        goal = {user: len(found) + 50 for user, found in results.items()}
        await eventually(
            lambda: all(len(results[user]) >= goal[user] for user in USERS), "everybody goes on", 60
        )
        stopping.set()
        await asyncio.gather(*playing)

    assert all(found == list(range(1, len(found) + 1)) for found in results.values())
