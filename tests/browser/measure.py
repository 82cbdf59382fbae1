"""What the console costs with a fleet and a line of size: `python -m tests.browser.measure [SECONDS]`.

1 000 servers, many people waiting, 10 changes a second. Told for each page: how busy the browser's main
thread was, how many bytes came in a minute, and how much of a core the gateway used, with and without it.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import tempfile
from pathlib import Path
from typing import Any

from roost.app import open_platform
from roost.settings import Loaded
from tests.acceptance.conftest import cpu_s, open_home
from tests.browser.chromium import Page, chromium
from tests.browser.console import Console
from tests.browser.scene import Scene

SERVERS, WAITING, AT_ONCE = 1000, 100_000, 200
EVENTS_PER_S = 10


async def main(seconds: float) -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as where, open_home(Path(where)) as home:
        scene = Scene(home, home.up())
        scene.call("PATCH", "/queue/v1/worlds/main", {"mode": "hold"})
        await asyncio.to_thread(scene.register, [f"s{number:04}" for number in range(SERVERS)])
        await fill_line(home.data)
        changing = asyncio.create_task(change(scene))
        alone = await gateway_share(scene, seconds)
        async with chromium() as page:
            await page.resize(1280, 900)
            console = Console(page, scene.up.url)
            await console.open()
            for name in ("overview", "servers", "queue/main"):
                await console.go(name)
                await asyncio.sleep(3)
                print(await cost(page, scene, name, alone, seconds), flush=True)
        changing.cancel()


async def fill_line(data: Path) -> None:
    """People take their places straight at the store: over HTTP that would take its time."""
    settings = Loaded.load(environ={"ROOST_DATA": str(data)}).settings
    async with open_platform(settings, attach=True) as platform:
        room = platform.worlds.of("main").room
        for first in range(0, WAITING, AT_ONCE):
            await asyncio.gather(*(room.enter(f"p{number}") for number in range(first, first + AT_ONCE)))


async def change(scene: Scene) -> None:
    """Ten operators' orders a second, each an event."""
    ids: list[str] = [row["instanceId"] for row in scene.call("GET", "/sd/v1/instances")["instances"]]
    for number, one in enumerate(itertools.cycle(ids)):
        weight: dict[str, Any] = {"weight": 100 + number % 50}
        await asyncio.to_thread(scene.call, "PUT", f"/sd/v1/instances/{one}/override", weight)
        await asyncio.sleep(1 / EVENTS_PER_S)


async def gateway_share(scene: Scene, seconds: float) -> float:
    before = cpu_s(scene.up.process.pid)
    await asyncio.sleep(seconds)
    return (cpu_s(scene.up.process.pid) - before) / seconds


async def cost(page: Page, scene: Scene, name: str, alone: float, seconds: float) -> str:
    await page.ask("Performance.enable")
    before, received = await busy_s(page), page.bytes_received
    share = await gateway_share(scene, seconds)
    busy = (await busy_s(page) - before) / seconds
    kilobytes = (page.bytes_received - received) / 1024 * 60 / seconds
    return (
        f"{name:12} main thread {busy:.1%}  {kilobytes:,.0f} KB/min  "
        f"gateway {share:.1%} of a core, {alone:.1%} without a viewer"
    )


async def busy_s(page: Page) -> float:
    found = (await page.ask("Performance.getMetrics"))["metrics"]
    return float(next(one["value"] for one in found if one["name"] == "TaskDuration"))


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 30.0))
