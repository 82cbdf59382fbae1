"""The tour on the overview: every button of it is pressed on a real demo, which the last one ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from roost.testing import eventually
from tests.acceptance.conftest import Home
from tests.browser.chromium import BINARY, chromium
from tests.browser.conftest import DESKTOP
from tests.browser.console import Console
from tests.browser.scene import Scene

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BINARY is None, reason="no Chromium here: `make deps-ci` installs it"),
]

ACT_S = 60.0
STEP = "document.querySelector('.tour li:nth-child({}) {}')"


async def do(console: Console, step: int) -> None:
    button = STEP.format(step, "button")
    await console.click(button)


async def is_done(console: Console, step: int) -> None:
    await console.sees(
        f"document.querySelector('.tour li:nth-child({step}).done')", f"step {step} to be done"
    )


async def until(scene: Scene, path: str, wanted: Callable[[Any], bool], what: str) -> None:
    async def is_so() -> bool:
        return wanted(await asyncio.to_thread(scene.call, "GET", path))

    await eventually(is_so, what, ACT_S)


def both_at_work(found: Any) -> bool:
    """Two servers hold users, or can: neither of the acts is refused then."""
    return len(found["servers"]) == 2 and sum(one["users"] for one in found["servers"]) >= 10


async def test_every_step_of_the_tour_is_done_and_the_demo_ended(home: Home) -> None:
    scene = Scene(home, await asyncio.to_thread(home.up_with_demo))
    homes = "/bind/v1/servers?type=demo-entity"
    await until(scene, homes, both_at_work, "players at home")
    async with chromium() as page:
        await page.resize(*DESKTOP)
        console = Console(page, scene.up.url)
        await console.open()
        await console.shows("A tour of the demo", "Replace a server under its players")

        await do(console, 2)
        await console.shows("120 people enter world demo")
        await is_done(console, 2)
        await until(scene, "/queue/v1/worlds/demo", lambda world: world["waiting"] > 50, "a long line")

        await do(console, 1)
        await console.shows("moves the users of demo-501")
        await is_done(console, 1)
        await until(scene, "/drain/v1/jobs", lambda found: found["jobs"][0]["state"] == "done", "its end")

        await until(scene, homes, both_at_work, "the next version")
        await console.fill("header select", "ko")
        await console.shows("데모 둘러보기")
        await do(console, 3)
        await console.shows("강제 종료했습니다")
        await is_done(console, 3)
        await console.fill("header select", "en")
        await console.shows("A tour of the demo")

        await console.press("Hide")
        await console.sees("!document.querySelector('.tour').checkVisibility()")
        await page.reload()
        await console.is_live()
        await console.sees("document.querySelector('.tour')?.checkVisibility() === false", "it stays hidden")

        await page.value("sessionStorage.removeItem('roost:tour')")
        await page.reload()
        await console.press("Stop the demo")
        await console.shows("nothing of them stays")
        await console.press("Stop the demo")
        await console.shows("The demo has ended")
        await page.reload()
        await console.is_live()
        await console.shows("Nothing needs you.")
        assert "A tour of the demo" not in await page.text()
        assert console.complaints() == []
