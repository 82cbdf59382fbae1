from __future__ import annotations

import pytest

from roost.store.store import Store
from tests.store.binding.town import Town


@pytest.fixture
async def town(store: Store) -> Town:
    """No server, nobody bound."""
    return Town(store)


@pytest.fixture
async def any_town(any_store: Store) -> Town:
    """The same test on one server and on a cluster."""
    return Town(any_store)
