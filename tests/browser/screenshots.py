"""Pictures of the console for the documents: `python -m tests.browser.screenshots [FOLDER] [--url URL]`.

Without a URL it makes a small Roost of its own, in which something happens on every page, and leaves nothing
of it behind. Each page is taken in light and dark, and as a phone shows it; what is seen now and then (a
plan, a certificate, the login, the tour, a lost connection, Korean) in light alone.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

from roost.testing import eventually
from tests.acceptance.conftest import open_home
from tests.browser.chromium import Page, chromium
from tests.browser.console import Console
from tests.browser.scene import NEW, OLD, Scene

IMAGES = Path(__file__).parents[2] / "docs" / "images"
DESKTOP, PHONE = (1360, 900), (390, 844)
TALLEST_PX = 1700
SETTLED_S = 2.5
WATCHED_S = 40.0
"""How long things happen before the pictures are taken: charts need something to show."""
PAGES = {
    "overview": "#/overview",
    "servers": "#/servers",
    "server": "#/servers/501",
    "ring": "#/ring/battle:kr-1",
    "users": "#/users/player-7",
    "update": "#/update",
    "queue": "#/queue/main",
    "orders": "#/orders/ACME",
    "audit": "#/audit",
}


async def take(url: str, folder: Path, pages: dict[str, str], watched_s: float) -> None:
    """The last of the pages is watched meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    async with chromium() as page:
        await page.resize(*DESKTOP)
        await page.open(f"{url}/{list(pages.values())[-1]}")
        await eventually(lambda: _is_live(page), "the console to be live", timeout_s=60)
        await asyncio.sleep(watched_s)
        for scheme in ("light", "dark"):
            await page.prefer(scheme)
            await page.resize(*DESKTOP)
            for name, path in pages.items():
                await _shoot(page, url + "/" + path, folder / f"{name}-{scheme}.png")
        await page.prefer("light")
        await page.resize(*PHONE, is_phone=True)
        for name, path in pages.items():
            await _shoot(page, url + "/" + path, folder / f"{name}-phone.png")
        for complaint in page.complaints:
            print("the browser complained:", complaint)


async def _shoot(page: Page, url: str, path: Path) -> None:
    await page.go(url)
    await asyncio.sleep(SETTLED_S)
    await _keep(page, path)


async def _keep(page: Page, path: Path) -> None:
    """On a desktop with what is below the fold."""
    height = DESKTOP[1]
    if not path.stem.endswith("-phone"):
        for _ in range(2):  # a taller window has taller tables
            wanted = int(await page.value("document.documentElement.scrollHeight"))
            height = min(TALLEST_PX, max(height, wanted))
            await page.resize(DESKTOP[0], height)
        await asyncio.sleep(0.5)
    await page.screenshot(path)
    print(path, flush=True)
    if height != DESKTOP[1]:
        await page.resize(*DESKTOP)


async def _is_live(page: Page) -> bool:
    return bool(await page.value("document.querySelector('.pulse[data-state=connected]') !== null"))


async def of_a_scene(folder: Path) -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as where, open_home(Path(where)) as home:
        scene = Scene(home, home.up())
        scene.start_homes(("503", "2.0"))
        scene.start_orders()
        scene.register([str(number) for number in range(601, 625)])
        scene.call(
            "PATCH", "/queue/v1/worlds/main", {"message": "Season 4 opens tonight. Thank you for waiting!"}
        )
        scene.start_evening(1200)
        async with scene.players(90, trade=True):
            pages = await with_a_job(scene)
            await take(scene.up.url, folder, pages, WATCHED_S)
            await now_and_then(scene, folder, pages["job"].rpartition("/")[2])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as where, open_home(Path(where)) as home:
        await of_the_demo(Scene(home, home.up_with_demo()), folder)


async def now_and_then(scene: Scene, folder: Path, job: str) -> None:
    url = scene.up.url
    await asyncio.to_thread(scene.call, "POST", f"/drain/v1/jobs/{job}/resume")
    async with chromium() as page:
        await page.resize(*DESKTOP)
        await page.prefer("light")
        console = Console(page, url)
        await console.open("servers")
        await console.press("Grid")
        await asyncio.sleep(SETTLED_S)
        await _keep(page, folder / "grid-light.png")
        await console.go("update")
        box = f"document.querySelector('input[aria-label=\"Empty {NEW}\"]')"
        await console.sees(box)
        await page.value(f"{box}.click()")
        await console.press("Plan")
        await console.shows("Takes about")
        await _keep(page, folder / "plan-light.png")
        await console.fill("header select", "ko")
        await _shoot(page, f"{url}/#/overview", folder / "korean-light.png")
        await console.fill("header select", "en")
        await page.go(f"{url}/docs")
        await asyncio.sleep(SETTLED_S)
        await page.screenshot(folder / "docs-light.png")
        await _shoot(page, f"{url}/queue/main#userId=ann&nickname=Ann", folder / "player-light.png")
        await page.go(f"{url}/#/update/{job}")
        await eventually(lambda: _shows(page, "It holds"), "the certificate", timeout_s=90)
        await _keep(page, folder / "certificate-light.png")
        await console.press("Log out")
        await asyncio.sleep(SETTLED_S)
        await page.screenshot(folder / "login-light.png")
        await page.reload()
        await console.go("servers")
        await console.is_live()
        await asyncio.to_thread(scene.up.interrupt)
        await eventually(lambda: _shows(page, "Disconnected"), "the bar", timeout_s=30)
        await page.screenshot(folder / "lost-light.png")


async def of_the_demo(scene: Scene, folder: Path) -> None:
    async with chromium() as page:
        await page.resize(*DESKTOP)
        await page.prefer("light")
        console = Console(page, scene.up.url)
        await console.open()
        await eventually(lambda: _shows(page, "demo-502"), "the demo", timeout_s=60)
        await asyncio.sleep(15)
        await _keep(page, folder / "tour-light.png")


async def _shows(page: Page, words: str) -> bool:
    return words in await page.text()


async def with_a_job(scene: Scene) -> dict[str, str]:
    """The pages, and one of a hot update that is on its way."""
    await eventually(lambda: _has_users(scene), "players to have their homes", timeout_s=60)
    reply = await asyncio.to_thread(
        scene.call,
        "POST",
        "/drain/v1/jobs",
        {"servers": [OLD], "rate": 1, "canary": 60, "by": "nightly patch"},
    )
    return PAGES | {"job": f"#/update/{reply['job']['id']}"}


async def _has_users(scene: Scene) -> bool:
    found = await asyncio.to_thread(scene.call, "GET", "/bind/v1/servers")
    return bool(sum(found["binders"].values()) >= 60)


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("folder", nargs="?", type=Path, default=IMAGES)
    given.add_argument("--url", help="of a Roost that runs already, profile dev")
    given.add_argument("--pages", default="", help="only these, a comma list")
    args = given.parse_args()
    if not args.url:
        return asyncio.run(of_a_scene(args.folder))
    wanted = {name: PAGES[name] for name in args.pages.split(",") if name} or PAGES
    asyncio.run(take(args.url, args.folder, wanted, 5.0))
    return None


if __name__ == "__main__":
    main()
