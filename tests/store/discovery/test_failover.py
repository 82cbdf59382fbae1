"""Failover on a real store: one platform tells its holders, and the next one makes good what it missed."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from unittest.mock import patch

from roost.api.discovery import RegisterInput
from roost.app import Platform, open_platform
from roost.discovery.failover import Failover, ServerLife
from roost.discovery.service import Discovery
from roost.settings import Settings
from roost.store.store import Store
from roost.testing import RunningServer, eventually


class Book:
    """A holder that writes down which server ids it is told of."""

    def __init__(self) -> None:
        self.lives: list[set[str]] = []
        self.ended: list[tuple[str, bool]] = []

    @property
    def holds_for(self) -> set[str]:
        """Whom it would still hold something for."""
        return (self.lives[-1] if self.lives else set()) - {server_id for server_id, _ in self.ended}

    async def server_ended(self, server: ServerLife, died: bool) -> None:
        self.ended.append((server.server_id, died))

    async def only_these_live(self, servers: Collection[ServerLife], as_of_us: int) -> None:
        self.lives.append({server.server_id for server in servers})


@contextlib.asynccontextmanager
async def platform_with(book: Book, url: str, folder: Path) -> AsyncIterator[Platform]:
    settings = Settings(data=folder, api_token="a-token-for-the-tests", store=url)
    async with contextlib.AsyncExitStack() as stack:
        with patch("roost.app.Failover", lambda discovery, _, loops: Failover(discovery, (book,), loops)):
            platform = await stack.enter_async_context(open_platform(settings, roles=("gateway",)))
        yield platform


async def test_only_the_leaders_holders_are_told_and_the_next_leader_says_who_lives(
    store: Store, server: RunningServer, tmp_path: Path
) -> None:
    discovery = Discovery(store)
    ids = {
        name: (await discovery.register(RegisterInput("game", "eu", name, ttl_seconds=600.0))).instance_id
        for name in ("501", "502", "503")
    }
    first, second = Book(), Book()
    async with contextlib.AsyncExitStack() as second_runs:
        async with platform_with(first, server.url, tmp_path):
            await eventually(lambda: first.lives == [{"501", "502", "503"}], "the first leader")
            other = await second_runs.enter_async_context(platform_with(second, server.url, tmp_path))
            await discovery.remove(ids["501"])
            await eventually(lambda: first.ended == [("501", False)], "the end of 501")
            await eventually(lambda: _knows(other, {"502", "503"}), "the other platform to be at work")
            assert (second.lives, second.ended) == ([], [])
        await discovery.remove(ids["502"])
        await eventually(lambda: second.holds_for == {"503"}, "the next leader")
        assert len(second.lives) == 1
        assert (first.lives, first.ended) == ([{"501", "502", "503"}], [("501", False)])


def _knows(platform: Platform, names: set[str]) -> bool:
    return {server.server_id for server in platform.checker.servers()} == names
