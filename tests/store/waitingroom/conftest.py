"""A world whose lease clock has begun to run, on one server and on a cluster."""

from __future__ import annotations

import pytest

from roost.store.store import Store
from tests.store.waitingroom.world import BASE_AND_VIP, World


@pytest.fixture
async def world(store: Store) -> World:
    """Nobody waits, no server has reported."""
    world = World(store)
    await world.tick(0)
    return world


@pytest.fixture
async def two_lines(store: Store) -> World:
    """The base class with a weight of 3, vip with a weight of 1."""
    world = World(store, weights=BASE_AND_VIP)
    await world.tick(0)
    return world


@pytest.fixture
async def any_world(any_store: Store) -> World:
    """The same test on one server and on a cluster."""
    world = World(any_store)
    await world.tick(0)
    return world
