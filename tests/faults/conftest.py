"""What fault tests of order servers share: a store that keeps its log, and servers on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from roost.testing import RunningServer, run_valkey
from tests.faults.trading import Exchange


@pytest.fixture
def durable() -> Iterator[RunningServer]:
    with run_valkey(persistent=True) as server:
        yield server


@pytest.fixture
async def exchange(durable: RunningServer, tmp_path: Path) -> AsyncIterator[Exchange]:
    found = Exchange(tmp_path, durable.url)
    try:
        yield found
    finally:
        durable.resume()
        found.close()
        await found.hang_up()
