"""Real servers for the tests of the store: one and a cluster, shared by all tests, emptied for each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from roost.store.store import Store
from roost.store.url import parse_store_url
from roost.testing import RunningCluster, RunningServer, run_cluster, run_valkey


@pytest.fixture(scope="session")
def shared_server() -> Iterator[RunningServer]:
    with run_valkey() as server:
        yield server


@pytest.fixture(scope="session")
def shared_cluster() -> Iterator[RunningCluster]:
    with run_cluster(primaries=3, replicas=0) as cluster:
        yield cluster


@pytest.fixture
def server(shared_server: RunningServer) -> RunningServer:
    """One server, empty."""
    shared_server.command_reply("FLUSHALL")
    return shared_server


@pytest.fixture
def cluster(shared_cluster: RunningCluster) -> RunningCluster:
    """Three primaries, empty."""
    for node in shared_cluster.servers:
        node.command_reply("FLUSHALL")
    return shared_cluster


@pytest.fixture
async def store(server: RunningServer) -> AsyncIterator[Store]:
    store = await Store.open(parse_store_url(server.url))
    yield store
    await store.close()


@pytest.fixture(params=["standalone", "cluster"])
async def any_store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    """The same test on one server and on a cluster."""
    url = request.getfixturevalue("server" if request.param == "standalone" else "cluster").url
    store = await Store.open(parse_store_url(url))
    yield store
    await store.close()
