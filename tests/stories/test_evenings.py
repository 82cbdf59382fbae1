"""Whole evenings on real processes, as golden transcripts: what happens where the capabilities meet.

After a change that is meant, `ROOST_REWRITE_STORIES=1 pytest tests/stories` puts them right; review the diff.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from roost.testing import RunningServer
from tests.acceptance.conftest import Home, home
from tests.stories.evening import Evening, open_evening
from tests.stories.test_stories import REWRITE

__all__ = ["home"]

EVENINGS = sorted((Path(__file__).parent / "evenings").glob("*.txt"))
SHORT = ("patch_night_with_an_out_of_service_order",)
"""Below ten seconds; the others wait for leases to end."""


def _marked(path: Path) -> ParameterSet:
    return pytest.param(path, id=path.stem, marks=() if path.stem in SHORT else pytest.mark.slow)


@pytest.fixture
async def evening(home: Home, valkey: RunningServer) -> AsyncIterator[Evening]:
    async with open_evening(home, valkey) as evening:
        yield evening


@pytest.mark.parametrize("path", [_marked(path) for path in EVENINGS])
async def test_an_evening_goes_as_it_is_told(evening: Evening, path: Path) -> None:
    await evening.runner().run(path, rewrite=REWRITE)


def test_there_are_evenings() -> None:
    assert len(EVENINGS) == 8
