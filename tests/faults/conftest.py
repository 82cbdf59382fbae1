from __future__ import annotations

from collections.abc import Iterator

import pytest

from roost.testing import RunningServer, run_valkey


@pytest.fixture
def valkey() -> Iterator[RunningServer]:
    with run_valkey() as server:
        yield server
