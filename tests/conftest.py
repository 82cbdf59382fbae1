"""The store fixtures of all tests: one server and one cluster for a whole run, emptied for each test.

A test that harms its server (kills it, changes its settings) takes `valkey`, a server of its own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import settings

from roost.store.store import Store
from roost.testing import RunningCluster, RunningServer, open_store, run_cluster, run_valkey

settings.register_profile("roost", deadline=None)  # a busy machine is slow, not wrong
settings.load_profile("roost")


@pytest.fixture(scope="session")
def shared_server() -> Iterator[RunningServer]:
    with run_valkey() as server:
        yield server


@pytest.fixture(scope="session")
def shared_cluster() -> Iterator[RunningCluster]:
    with run_cluster(primaries=3, replicas=0) as cluster:
        yield cluster


@pytest.fixture
def valkey() -> Iterator[RunningServer]:
    """A server of the test's own, which it may kill."""
    with run_valkey() as server:
        yield server


@pytest.fixture
def server(shared_server: RunningServer) -> RunningServer:
    """One server, empty."""
    shared_server.flush()
    return shared_server


@pytest.fixture
def cluster(shared_cluster: RunningCluster) -> RunningCluster:
    """Three primaries, empty."""
    shared_cluster.flush()
    return shared_cluster


@pytest.fixture
async def store(server: RunningServer) -> AsyncIterator[Store]:
    async with open_store(server.url) as store:
        yield store


@pytest.fixture(params=["standalone", "cluster"])
async def any_store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    """The same test on one server and on a cluster."""
    url = request.getfixturevalue("server" if request.param == "standalone" else "cluster").url
    async with open_store(url) as store:
        yield store
