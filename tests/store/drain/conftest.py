from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from roost.store.store import Store
from tests.store.drain.town import Town, open_town


@pytest.fixture
async def town(store: Store) -> AsyncIterator[Town]:
    """No server yet; the leader of the partition runs, nobody leads the drains."""
    async with open_town(store) as town:
        yield town
