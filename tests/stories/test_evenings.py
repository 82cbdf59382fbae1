"""Whole evenings on real processes, as golden transcripts: what happens where the capabilities meet.

After a change that is meant, `ROOST_REWRITE_STORIES=1 pytest tests/stories` puts them right; review the diff.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from roost.testing import RunningServer, run_valkey
from tests.acceptance.conftest import Home, home
from tests.acceptance.store_users import denials, write_users
from tests.stories.evening import Evening, open_evening
from tests.stories.test_stories import REWRITE

__all__ = ["home"]

EVENINGS = sorted((Path(__file__).parent / "evenings").glob("*.txt"))
SHORT = ("patch_night_with_an_out_of_service_order",)
"""Below ten seconds; the others wait for leases to end."""


def _marked(path: Path) -> ParameterSet:
    return pytest.param(path, id=path.stem, marks=() if path.stem in SHORT else pytest.mark.slow)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunningServer]:
    """A store that knows the roles' users, also after it was killed."""
    with run_valkey(options=("--aclfile", str(write_users(tmp_path)))) as server:
        yield server


@pytest.fixture
async def evening(home: Home, store: RunningServer) -> AsyncIterator[Evening]:
    """Every process under the user of its role; nothing that one of them asked for was refused."""
    async with open_evening(home, store) as evening:
        yield evening
    assert denials([store]) == []


@pytest.mark.parametrize("path", [_marked(path) for path in EVENINGS])
async def test_an_evening_goes_as_it_is_told(evening: Evening, path: Path) -> None:
    await evening.runner().run(path, rewrite=REWRITE)


def test_there_are_evenings() -> None:
    assert len(EVENINGS) == 9
