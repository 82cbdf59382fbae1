"""After an outage of the store that ends in a gap every follower ends up with what the store holds.

The store dies, flaps, hangs and is emptied, or trims its feed while the followers are away. Each of them
must come to equal a fresh snapshot, every time.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from roost.api.discovery import RegisterInput
from roost.balancing.balancer import LoadBalancer
from roost.balancing.following import following
from roost.core.errors import StoreError
from roost.discovery.cache import ListCache
from roost.discovery.health import HealthChecker
from roost.discovery.probes import Prober
from roost.discovery.service import Discovery
from roost.store import scopes
from roost.store.store import Store
from roost.testing import RunningServer, eventually

from .harness import FAST, PATIENT, in_thread, opened

FOLLOWERS = 6
ROUNDS = 4


class Site:
    """What a gateway runs to know who is there."""

    def __init__(self, store: Store, balancer: LoadBalancer, checker: HealthChecker) -> None:
        self.store = store
        self.balancer = balancer
        self.checker = checker

    def known(self) -> list[set[str]]:
        return [
            {server.server_id for server in self.balancer.all_servers},
            {row.server_id for row in self.checker.servers()},
        ]


@pytest.fixture(autouse=True)
def _missing_for_a_moment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checker waits for servers to register again after a wipe; the test does not want to."""
    monkeypatch.setattr("roost.discovery.health.REGISTER_AGAIN_S", 1.0)


@contextlib.asynccontextmanager
async def site(url: str) -> AsyncIterator[Site]:
    async with opened(url, FAST) as store:
        discovery = Discovery(store)
        lists = asyncio.create_task(ListCache(discovery, store.loops).run())
        checker = HealthChecker(discovery, Prober(allow_local=True), loops=store.loops)
        checker.start()
        try:
            async with following(discovery, "game", loops=store.loops) as balancer:
                yield Site(store, balancer, checker)
        finally:
            lists.cancel()
            await asyncio.gather(lists, return_exceptions=True)
            await checker.stop()


async def register(discovery: Discovery, server_id: str) -> None:
    """Until it is done: the store may be away."""

    async def done() -> bool:
        try:
            await discovery.register(RegisterInput(type="game", group="kr", server_id=server_id))
        except StoreError:
            return False
        return True

    await eventually(done, f"{server_id} is registered")


Outage = Callable[[RunningServer, Store], Awaitable[None]]


async def dies(server: RunningServer, store: Store) -> None:
    server.kill()
    await in_thread(server.start)


async def flaps(server: RunningServer, store: Store) -> None:
    """Dies again while its clients are introducing themselves."""
    for _ in range(3):
        await dies(server, store)
        await asyncio.sleep(random.uniform(0.0, 0.1))


async def hangs_and_is_emptied(server: RunningServer, store: Store) -> None:
    server.pause()
    await asyncio.sleep(random.uniform(0.0, 1.2))
    server.resume()
    server.flush()


async def trims_its_feed(server: RunningServer, store: Store) -> None:
    """The servers stay; what was told of the last ones is gone from the feed."""
    feed = store.keys.feed(scopes.discovery())
    server.pause()
    calls = [register(Discovery(store), f"late-{random.random()}") for _ in range(5)]
    waiting = asyncio.gather(*calls)
    await asyncio.sleep(random.uniform(0.0, 0.7))
    server.resume()
    await waiting
    await store.call("XTRIM", feed, "MAXLEN", 1, key=feed, idempotent=True)


def differences(sites: list[Site], wanted: set[str]) -> list[set[str]]:
    return [known ^ wanted for one in sites for known in one.known() if known != wanted]


async def everybody_knows(sites: list[Site], discovery: Discovery) -> None:
    """What a fresh snapshot says."""
    wanted = {found.server_id for found in (await discovery.discover("game")).instances}
    await eventually(
        lambda: not differences(sites, wanted),
        "every follower equals a fresh snapshot",
        details=lambda: str(differences(sites, wanted)),
    )


@pytest.mark.parametrize("outage", [dies, flaps, hangs_and_is_emptied, trims_its_feed])
async def test_every_follower_equals_a_fresh_snapshot_after_an_outage(
    valkey: RunningServer, outage: Outage
) -> None:
    async with contextlib.AsyncExitStack() as stack:
        sites = [await stack.enter_async_context(site(valkey.url)) for _ in range(FOLLOWERS)]
        writer = await stack.enter_async_context(opened(valkey.url, PATIENT))
        discovery = Discovery(writer)
        for turn in range(ROUNDS):
            for n in range(4):
                await register(discovery, f"s{turn}-{n}")
            await everybody_knows(sites, discovery)

            await outage(valkey, writer)
            await register(discovery, f"after-{turn}")

            await everybody_knows(sites, discovery)
        for one in sites:
            since = one.store.answering_since()
            assert since is not None
            assert one.store.loops.fault(since) == ""
