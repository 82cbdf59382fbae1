"""The console while its gateway goes away and comes back, and with a fleet and a line of size."""

from __future__ import annotations

import asyncio

import pytest

from roost.testing import free_port
from tests.acceptance.conftest import Home
from tests.browser.chromium import BINARY, chromium
from tests.browser.console import Console
from tests.browser.scene import Scene

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BINARY is None, reason="no Chromium here: `make deps-ci` installs it"),
]

LOST = "Disconnected, retrying."


async def test_a_lost_gateway_is_told_and_found_again_without_a_reload(home: Home) -> None:
    port = str(free_port())
    up = home.start("up", "--no-demo", "--port", port)
    async with chromium() as page:
        console = Console(page, up.url)
        await console.open("servers")
        await console.shows("No server is registered.")
        await page.value("window.stayed = true")
        assert await asyncio.to_thread(up.interrupt) == 0
        await console.shows(LOST, "Retry now")
        await page.value(
            "window.tries = 0; window.EventSource = class extends EventSource {"
            " constructor(...given) { super(...given); window.tries += 1; } }"
        )
        await console.press("Retry now")
        assert await page.value("window.tries") > 0, "it tries at once"
        again = await asyncio.to_thread(home.start, "up", "--no-demo", "--port", port)
        await asyncio.to_thread(Scene(home, again).register, ["601"])
        await console.is_live()
        await console.shows("601", "accepting", "1 in all")
        assert LOST not in await page.text()
        assert await page.value("window.stayed") is True


async def test_a_thousand_servers_are_windowed_filtered_and_stay_quick(home: Home) -> None:
    scene = Scene(home, home.up())
    await asyncio.to_thread(scene.register, [f"s{number:04}" for number in range(1000)])
    async with chromium() as page:
        await page.resize(1280, 900)
        console = Console(page, scene.up.url)
        await console.open("servers")
        await console.shows("1000 in all", "s0000")
        assert await console.count("tbody tr") < 120, "only what is seen is drawn"
        await page.value("document.querySelector('.tabled').scrollTop = 30000")
        await console.sees("[...document.querySelectorAll('td a')].some(one => one.textContent > 's0750')")
        await console.fill("input[type=search]", "s0999")
        await console.shows("1 of 1000", "s0999")
        assert console.complaints() == []
