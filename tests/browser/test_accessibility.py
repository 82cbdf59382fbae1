"""axe-core on every page of the console: no finding that is serious or worse, in light and in dark."""

from __future__ import annotations

import pytest

from tests.browser.axe import findings
from tests.browser.chromium import BINARY
from tests.browser.console import Console
from tests.browser.scene import Scene

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BINARY is None, reason="no Chromium here: `make deps-ci` installs it"),
    pytest.mark.asyncio(loop_scope="module"),
]

PAGES = ("overview", "servers/601", "ring", "users", "update", "queue/main", "orders", "audit")


@pytest.fixture(scope="module", autouse=True)
def servers(scene: Scene) -> None:
    scene.register(["601", "602"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_no_page_has_a_serious_finding(console: Console, axe: str, scheme: str) -> None:
    await console.page.prefer(scheme)
    for name in PAGES:
        await console.go(name)
        await console.sees("document.querySelector('h1')")
        assert await findings(console, axe) == [], f"{name} in {scheme}"
    await console.go("queue/main")
    await console.press("Hold")
    assert await findings(console, axe) == [], "a question"
    await console.press("Cancel")


async def test_the_login_has_none_either(console: Console, axe: str) -> None:
    await console.press("Log out")
    await console.sees("document.querySelector('#token')")
    assert await findings(console, axe) == []


async def test_everything_is_reached_by_the_keyboard(console: Console) -> None:
    await console.page.reload()
    await console.is_live()
    reached = await console.page.value(
        "[...document.querySelectorAll('nav a, header button, header select, main a, main button')]"
        ".filter(one => one.checkVisibility() && one.tabIndex < 0).map(one => one.outerHTML)"
    )
    assert reached == []
    assert await console.page.value("document.querySelector('a.skip').getAttribute('href')") == "#main"
