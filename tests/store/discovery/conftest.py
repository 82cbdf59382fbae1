"""A fleet whose lease clock has begun to run, on one server and on a cluster."""

from __future__ import annotations

import pytest

from roost.store.store import Store
from tests.store.discovery.fleet import Fleet


@pytest.fixture
async def fleet(store: Store) -> Fleet:
    fleet = Fleet(store)
    await fleet.sweep()
    return fleet


@pytest.fixture
async def any_fleet(any_store: Store) -> Fleet:
    """The same test on one server and on a cluster."""
    fleet = Fleet(any_store)
    await fleet.sweep()
    return fleet
