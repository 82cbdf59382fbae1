"""The console while users play and trade: a whole hot update, a user followed, orders halted and moved."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
import pytest_asyncio

from roost.testing import eventually
from tests.browser.axe import findings
from tests.browser.chromium import BINARY
from tests.browser.conftest import DESKTOP
from tests.browser.console import PHONE, Console
from tests.browser.scene import NEW, OLD, SYMBOLS, Scene

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BINARY is None, reason="no Chromium here: `make deps-ci` installs it"),
    pytest.mark.asyncio(loop_scope="module"),
]

PLAYERS = 24


@pytest_asyncio.fixture(scope="module", loop_scope="module", autouse=True)
async def at_work(scene: Scene) -> AsyncIterator[None]:
    """Two versions of entity servers, an order server, and players who trade."""
    await asyncio.to_thread(scene.start_homes, ("503", "2.0"))
    await asyncio.to_thread(scene.start_orders)
    async with scene.players(PLAYERS, trade=True):
        await eventually(lambda: _users(scene, PLAYERS), "players at home", 40)
        yield


async def _users(scene: Scene, count: int) -> bool:
    return bool(sum((await holders(scene))["binders"].values()) >= count)


async def holders(scene: Scene) -> dict[str, Any]:
    return dict(await asyncio.to_thread(scene.call, "GET", "/bind/v1/servers"))


async def choose(console: Console, server: str) -> None:
    box = f"document.querySelector('input[aria-label=\"Empty {server}\"]')"
    await console.click(box)


def figure(label: str) -> str:
    """The number below this word."""
    return (
        "[...document.querySelectorAll('.figure')]"
        f".find(one => one.firstChild.textContent === {label!r}).querySelector('b')"
    )


async def test_a_user_is_found_with_home_epoch_and_timeline(scene: Scene, console: Console) -> None:
    await console.go("users")
    await console.shows("Servers that hold users", OLD)
    await console.fill("#user", "player-1")
    await console.press("Find")
    await console.shows(
        "held", "first placed here", "Epoch", "Timeline", "player-1 has no place in any line."
    )
    await console.go("users/nobody-here")
    await console.shows("No server holds nobody-here.")
    await console.go("users/player-1")
    await console.press("Release")
    await console.shows("Take player-1 away from their server?", "may be lost")
    await console.press("Release")
    await console.shows("player-1 is released.", "released by an operator")


async def test_orders_are_seen_halted_and_moved(scene: Scene, console: Console) -> None:
    await console.go("orders")
    await console.shows("16 / 16", "Hot symbols", "Placement advice")
    await console.sees("document.querySelectorAll('.cell.on').length > 0", "a lane at work")
    await console.sees(f"document.querySelectorAll('.cell').length === {16 * 64}")
    await console.go(f"orders/{SYMBOLS[0]}")
    await console.shows(SYMBOLS[0], "trading", "its hash")
    await console.press("Halt")
    await console.fill("dialog input", "news <i>pending</i>")
    await console.press("Halt")
    await console.shows(f"{SYMBOLS[0]} is halted.", "halted", "news <i>pending</i>")
    await console.press("Resume")
    await console.shows(f"{SYMBOLS[0]} trades again.", "trading")
    buttons = "[...document.querySelectorAll('button')]"
    await console.click(f"{buttons}.filter(one => one.textContent === 'Move').at(-1)")
    await console.fill("dialog input", "3")
    await console.press("Move")
    await console.shows(f"{SYMBOLS[0]} moves.")

    async def is_there() -> bool:
        await console.press("Look")
        return "an operator" in await console.page.text()

    await eventually(is_there, "the symbol to be pinned", 20)
    await console.page.reload()
    await console.shows(SYMBOLS[0], "an operator")
    await console.press("Back to its hash")
    await console.shows(f"Serve {SYMBOLS[0]} where its hash puts it?")
    await console.press("Back to its hash")
    await console.shows(f"{SYMBOLS[0]} goes where its hash puts it.")
    await eventually(lambda: _left(scene, SYMBOLS[0], 3), "it to be where its hash puts it", 20)


async def test_the_heat_map_shows_what_is_asked_for(console: Console) -> None:
    await console.go("orders")
    await console.sees("document.querySelector('.cell.on')", "a lane at work")
    over = (
        "document.querySelector('.cell.on').dispatchEvent(new PointerEvent('pointermove', {bubbles: true}))"
    )
    tip = "document.querySelector('.heat').closest('.plotted').querySelector('.tip').textContent"
    for measure, words in (
        ("depth", "Waiting"),
        ("wait", "Longest wait"),
        ("rejects", "Refused"),
        ("rate", "Commands a second"),
    ):
        await console.fill("select[aria-label='What the cells show']", measure)
        await console.page.value(f"{over.replace('.cell.on', '.cell')}")
        await console.sees(f"{tip}.includes({words!r})", words)
    await console.sees("document.querySelector('.cell.on')", "rates again")


async def test_a_symbol_is_moved_as_advised(scene: Scene, console: Console) -> None:
    for symbol in SYMBOLS[:4]:  # the busiest in one place
        await asyncio.to_thread(scene.call, "PUT", f"/orders/v1/placement/{symbol}", {"shard": 5})
        await eventually(partial(_is_at, scene, symbol, 5), f"{symbol} to be there", 20)
    await console.go("orders")
    await console.shows("The fullest shard has")
    advised = (
        "[...document.querySelectorAll('section.card')].find(one => one.textContent.startsWith('Placement'))"
    )
    await console.sees(f"{advised}.querySelector('.moves li button')")
    symbol = await console.page.value(f"{advised}.querySelector('.moves li b').textContent")
    await console.click(f"{advised}.querySelector('.moves li button')")
    await console.shows(f"Move {symbol} to shard")
    await console.press("Move")
    await console.shows(f"{symbol} moves.")
    await eventually(lambda: _left(scene, symbol, 5), f"{symbol} to be elsewhere", 20)


async def _is_at(scene: Scene, symbol: str, shard: int) -> bool:
    place = await asyncio.to_thread(scene.call, "GET", f"/orders/v1/placement/{symbol}")
    return bool(place["how"] == "pinned" and place["shard"] == shard)


async def _left(scene: Scene, symbol: str, shard: int) -> bool:
    place = await asyncio.to_thread(scene.call, "GET", f"/orders/v1/placement/{symbol}")
    return bool(place["how"] == "pinned" and place["shard"] != shard)


async def test_a_whole_hot_update_from_the_choice_to_the_certificate(scene: Scene, console: Console) -> None:
    await console.go("update")
    await console.shows("Choose the servers to empty.", OLD, NEW)
    await choose(console, OLD)
    await console.shows(f"Empty {OLD}:")
    await console.fill("#update-rate", "2")
    await console.fill("#update-version", "2.0")
    await console.press("Plan")
    await console.shows("The plan", "Takes about", "Free seats", NEW)
    await console.press("Entity hot update")
    await console.shows(f"Start the hot update of {OLD}?", "each held up for milliseconds")
    await console.press("Entity hot update")
    await console.shows(f"Hot update of {OLD}", "running")
    await console.press("Pause")
    await console.shows("paused", "Roll back")
    assert await console.page.value(f"{figure('Rate now')}.textContent") == "0/s"
    await console.press("Resume")
    await console.shows("running")
    await console.shows("done", "Certificate", "It holds", "How long users were held up")
    lost = "[...document.querySelectorAll('.certificate .figure b')].map(one => one.textContent).join()"
    assert await console.page.value(lost) == "0,0,0,0"
    assert await console.count(".bar") >= 10, "the histogram of pauses"
    await console.page.reload()
    await console.shows("Certificate", "It holds", f"Hot update of {OLD}")
    assert await console.page.value(lost) == "0,0,0,0"
    assert (await holders(scene))["binders"].get(OLD, 0) == 0
    await console.go("overview")
    await console.shows(f"the drain of {OLD} is done")


async def test_a_hot_update_is_cancelled_and_rolled_back(scene: Scene, console: Console) -> None:
    await console.go("update")
    await choose(console, NEW)
    await console.fill("#update-rate", "1")
    await console.press("Entity hot update")
    await console.press("Entity hot update")
    await console.shows(f"Hot update of {NEW}", "running")
    job = await console.page.value("location.hash.slice(2)")
    await console.go("overview")
    to_move = "[...document.querySelectorAll('.stage dt')].find(one => one.textContent === 'to move')"
    await console.sees(f"Number({to_move}?.nextSibling.textContent) > 0", "whom it has still to move")
    flows = "[...document.querySelectorAll('.flow')].map(one => one.innerText.trim())"
    await console.sees(f"{flows}.every(one => one.endsWith('/s'))", "every arrow to have its rate")
    await console.go(job)
    await console.press("Cancel the update")
    await console.shows("Cancel this hot update?", "stay where they are")
    await console.press("Cancel the update")
    await console.shows("Cancelled.", "cancelled")
    await console.press("Roll back")
    await console.press("Roll back")
    await console.shows("Rolling back.")


async def test_no_page_with_something_on_it_has_a_serious_finding(
    scene: Scene, console: Console, axe: str
) -> None:
    jobs = (await asyncio.to_thread(scene.call, "GET", "/drain/v1/jobs"))["jobs"]
    certified = next(job["id"] for job in jobs if job["certificate"])
    for scheme in ("light", "dark"):
        await console.page.prefer(scheme)
        for name, shown in (
            ("overview", "What happened"),
            ("users/player-1", "Timeline"),
            (f"update/{certified}", "It holds"),
            ("orders/ACME", "Open orders"),
            ("servers/901", "History"),
            ("ring", "Share of keys"),
        ):
            await console.go(name)
            await console.shows(shown)
            assert await findings(console, axe) == [], f"{name} in {scheme}"
        await console.go("update")
        await choose(console, NEW)
        await console.press("Plan")
        await console.shows("Takes about")
        assert await findings(console, axe) == [], f"a plan in {scheme}"
    await console.page.prefer("light")


async def test_no_table_is_cut_off_on_a_phone(console: Console) -> None:
    await console.page.resize(*PHONE, is_phone=True)
    try:
        for name, row in (("servers", "901"), ("ring", "%"), ("update", "cancelled"), ("orders", "16 / 16")):
            await console.go(name)
            await console.shows(row)
            assert await console.cut_off() == [], name
    finally:
        await console.page.resize(*DESKTOP)


async def test_the_browser_did_not_complain(console: Console) -> None:
    assert console.complaints() == []
