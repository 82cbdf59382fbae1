"""The page on which players wait, in a real browser."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from roost.testing import eventually, free_port
from tests.acceptance.conftest import Home, Started, http
from tests.browser.chromium import BINARY, Page, chromium

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BINARY is None, reason="no Chromium here: `make deps-ci` installs it"),
]


def govern(home: Home, up: Started, **change: Any) -> None:
    answer = http(
        f"{up.url}/queue/v1/worlds/main",
        method="PATCH",
        token=home.token(),
        body=json.dumps(change).encode(),
    )
    assert answer.status == 200, answer.body


async def shows(page: Page, *parts: str) -> None:
    async def is_shown() -> bool:
        text = await page.text()
        return all(part in text for part in parts)

    await eventually(is_shown, f"the page to show {parts}")


def start_all(home: Home) -> Started:
    up = home.up()
    home.start("gameserver", "--port", str(free_port()), "--capacity", "5", "--url", up.url)
    return up


@asynccontextmanager
async def page_of_a_held_world(
    home: Home, fragment: str = "", **change: Any
) -> AsyncIterator[tuple[Started, Page]]:
    """The page of a world that admits nobody, with a game server that could."""
    up = start_all(home)
    await asyncio.to_thread(govern, home, up, mode="hold", **change)
    async with chromium() as page:
        await page.open(f"{up.url}/queue/main{fragment}")
        yield up, page


async def test_from_the_place_in_the_line_into_the_game_by_itself(home: Home) -> None:
    who = "#userId=ann&nickname=Ann&signature="
    async with page_of_a_held_world(home, who, message="patch night <b>1.4</b>") as (up, page):
        await shows(page, "your place in the line", "patch night <b>1.4</b>", "for 5 min", "Leave the line")
        assert await page.value("location.hash") == "", "who they are stays in no address"
        assert await page.value("document.getElementById('rank').textContent") == "1"
        await asyncio.to_thread(govern, home, up, mode="auto", message=None)
        await shows(page, "You are in.")
        await page.value("document.getElementById('text').value = 'hello'")
        await page.value("document.getElementById('say').requestSubmit()")
        await shows(page, "Ann hello")
        assert page.complaints == []


async def test_who_brings_no_name_is_asked_and_may_leave_again(home: Home) -> None:
    async with page_of_a_held_world(home) as (up, page):
        await shows(page, "Who are you?")
        await page.value("document.getElementById('user').value = 'bea'")
        await page.value("document.getElementById('ask').requestSubmit()")
        await shows(page, "your place in the line")
        await page.value("document.getElementById('leave').click()")
        await shows(page, "Who are you?")
        world = await asyncio.to_thread(http, f"{up.url}/queue/v1/worlds/main", token=home.token())
        assert world.json["waiting"] == 0


async def test_a_gateway_that_is_away_costs_nothing_but_patience(home: Home) -> None:
    async with page_of_a_held_world(home, "#userId=ann") as (up, page):
        await shows(page, "your place in the line")
        port = up.url.rpartition(":")[2]
        assert await asyncio.to_thread(up.interrupt) == 0
        await shows(page, "does not answer", "you lose nothing")
        await asyncio.to_thread(home.start, "up", "--port", port)
        await shows(page, "your place in the line")
        await eventually(lambda: _no_trouble(page), "the trouble to be over")


async def _no_trouble(page: Page) -> bool:
    return bool(await page.value("document.getElementById('trouble').hidden"))
