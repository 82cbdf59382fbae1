from __future__ import annotations

import pytest

from roost.store.store import Store
from tests.store.lanes.hall import Hall
from tests.store.lanes.town import ShardTown


@pytest.fixture
async def town(store: Store) -> ShardTown:
    """A shard that nobody owns."""
    return ShardTown(store)


@pytest.fixture
async def any_town(any_store: Store) -> ShardTown:
    """The same test on one server and on a cluster."""
    return ShardTown(any_store)


@pytest.fixture
async def hall(store: Store) -> Hall:
    return Hall(store)


@pytest.fixture
async def any_hall(any_store: Store) -> Hall:
    """The same test on one server and on a cluster."""
    return Hall(any_store)
