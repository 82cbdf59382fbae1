from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from roost.store.store import Store
from tests.entity.town import Town, open_town


@pytest.fixture
async def town(store: Store, tmp_path: Path) -> AsyncIterator[Town]:
    async with open_town(store, tmp_path) as town:
        yield town
