from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.acceptance.conftest import home, open_home
from tests.browser.axe import install
from tests.browser.chromium import chromium
from tests.browser.console import Console
from tests.browser.scene import Scene

__all__ = ["home"]

DESKTOP = (1280, 900)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """One Roost for all tests of a file; each starts what it needs in it."""
    with open_home(tmp_path_factory.mktemp("scene")) as home:
        yield Scene(home, home.up())


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    return install(tmp_path_factory.mktemp("axe"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def console(scene: Scene) -> AsyncIterator[Console]:
    """The console of that Roost, in one browser for the file."""
    async with contextlib.AsyncExitStack() as stack:
        page = await stack.enter_async_context(chromium())
        await page.resize(*DESKTOP)
        opened = Console(page, scene.up.url)
        await opened.open()
        yield opened
