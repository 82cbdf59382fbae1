"""Golden transcripts of what a gateway answers.

After a change that is meant, `ROOST_REWRITE_STORIES=1 pytest tests/stories` puts them right; review the diff.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from roost.testing import RunningServer
from tests.acceptance.queue import TICKET_KEYS, open_gate, settings_for
from tests.stories.scene import Scene

STORIES = sorted(Path(__file__).parent.glob("*.txt"))
REWRITE = os.environ.get("ROOST_REWRITE_STORIES") == "1"


@pytest.fixture
async def scene(server: RunningServer, tmp_path: Path) -> AsyncIterator[Scene]:
    async with open_gate(server, settings_for(tmp_path, ticket_keys=TICKET_KEYS)) as gate:
        yield Scene(gate)


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
async def test_a_story_tells_what_happens(scene: Scene, path: Path) -> None:
    await scene.runner().run(path, rewrite=REWRITE)


def test_there_are_stories() -> None:
    assert STORIES


async def test_a_story_that_tells_something_else_fails_with_what_really_happens(
    scene: Scene, tmp_path: Path
) -> None:
    story = tmp_path / "wrong.txt"
    story.write_text("register 501 capacity=10\ndiscover\n----\nregistered as <instance-1>\nnobody\n")

    with pytest.raises(AssertionError) as caught:
        await scene.runner().run(story)

    assert str(caught.value).splitlines()[-2:] == ["-nobody", "+501 ready, accepting, 0 of 10"]
