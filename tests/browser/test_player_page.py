"""The page on which players wait, in a real browser."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from roost import parse_keys, sign_entry
from roost.testing import eventually, free_port, wait_until
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


def start_all(home: Home, **env: str) -> Started:
    up = home.up(**env)
    home.start("gameserver", "--port", str(free_port()), "--capacity", "5", "--url", up.url, **env)
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


async def test_who_leaves_is_not_brought_back_by_an_answer_that_was_under_way(home: Home) -> None:
    async with page_of_a_held_world(home, "#userId=ann&nickname=Ann&signature=") as (_, page):
        await shows(page, "your place in the line")
        await page.value("""
            const gateway = window.fetch;
            const waits = {status: 'WAITING', rank: 1, nextPollMs: 2000, receipt: 'r'};
            var asked = [], arrive = () => {}, left = [];
            window.fetch = (path, options) => {
                asked.push(options.method);
                if (options.method === 'DELETE') return gateway(path, options);
                return new Promise(resolve => left.push(() => resolve(Response.json(waits))));
            };
            comeBack(); enter(); $('leave').click();
        """)
        assert await page.value("asked") == ["GET", "POST"]
        await page.value("left[1]()")
        await shows(page, "Who are you?")
        await page.value("left[0]()")
        await shows(page, "Who are you?")
        assert await page.value("[asked, placed, stream.readyState]") == [["GET", "POST", "DELETE"], False, 2]


async def test_a_refused_return_to_a_held_place_is_not_hurried_by_the_stream(home: Home) -> None:
    async with page_of_a_held_world(home, "#userId=ann&nickname=Ann&signature=") as (_, page):
        await shows(page, "your place in the line")
        await page.value("""
            var asked = [], held = {status: 'ENTERED', expiresInMs: 9000, nextPollMs: 2000};
            window.fetch = (path, options) => {
                asked.push(options.method);
                return Promise.resolve(new Response('{}', {status: 429, headers: {'Retry-After': '60'}}));
            };
            var tell = () => stream.dispatchEvent(new MessageEvent('place', {data: JSON.stringify(held)}));
            stream.close();  // what the gateway itself says would take the trouble away
            tell();
        """)
        await shows(page, "60")
        assert await page.value("tell(), backAt - Date.now() > 40000")
        await shows(page, "60")
        assert await page.value("asked") == ["POST"]


async def test_a_game_server_that_hangs_is_given_up_and_the_next_answer_counts(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hung:  # the system takes the connection, nobody answers
        async with page_of_a_held_world(home, "#userId=ann&nickname=Ann&signature=") as (_, page):
            await shows(page, "your place in the line")
            await page.value(f"""
                const later = window.setTimeout, url = 'ws://127.0.0.1:{hung.getsockname()[1]}/';
                var waits = [];
                window.setTimeout = (run, ms) => {{ waits.push(ms); return later(run, ms / 20); }};
                place({{status: 'PROMOTED', serverUrl: url, ticketId: 't', expiresInMs: 60000}});
            """)
            assert await page.value("[socket.readyState, waits]") == [0, [5000]]
            await shows(page, "your place in the line")
            assert await page.value("socket") is None


async def test_a_gateway_that_is_away_costs_nothing_but_patience(home: Home) -> None:
    async with page_of_a_held_world(home, "#userId=ann") as (up, page):
        await shows(page, "your place in the line")
        port = up.url.rpartition(":")[2]
        assert await asyncio.to_thread(up.interrupt) == 0
        await shows(page, "does not answer", "you lose nothing")
        await asyncio.to_thread(home.start, "up", "--no-demo", "--port", port)
        await shows(page, "your place in the line")
        await eventually(lambda: _no_trouble(page), "the trouble to be over")


async def _no_trouble(page: Page) -> bool:
    return bool(await page.value("document.getElementById('trouble').hidden"))


KEYS = "k1:" + base64.b64encode(b"a-key-of-thirty-two-bytes-length").decode()


@asynccontextmanager
async def page_of_somebody_who_logged_in(home: Home) -> AsyncIterator[tuple[Started, Page]]:
    """In a world where entries need a signature, and ann's has ended."""
    up = start_all(home, ROOST_QUEUE_KEYS=KEYS, ROOST_TICKET_KEYS=KEYS)
    await asyncio.to_thread(govern, home, up, mode="hold")
    async with chromium() as page:
        signature = sign_entry(parse_keys(KEYS), user="ann", ttl_s=5)
        await page.open(f"{up.url}/queue/main#userId=ann&nickname=Ann&signature={signature}")
        await shows(page, "your place in the line")
        await asyncio.to_thread(wait_until, lambda: is_refused(up, signature), "the signature to end")
        yield up, page


def is_refused(up: Started, signature: str) -> bool:
    body = json.dumps({"userId": "ann", "signature": signature}).encode()
    return http(f"{up.url}/api/queue/entry", method="POST", body=body).status == 401


def enters(up: Started, body: bytes) -> bool:
    return http(f"{up.url}/api/queue/entry", method="POST", body=body).status == 200


async def waiting_in(home: Home, up: Started) -> int:
    world = await asyncio.to_thread(http, f"{up.url}/queue/v1/worlds/main", token=home.token())
    return int(world.json["waiting"])


async def test_a_reload_and_a_return_keep_the_place_by_the_cookie_alone(home: Home) -> None:
    async with page_of_somebody_who_logged_in(home) as (up, page):
        other = {"userId": "zoe", "signature": sign_entry(parse_keys(KEYS), user="zoe", ttl_s=60)}
        body = json.dumps(other).encode()
        # Not at once: whoever waits for the signature to end asks as often as an address may.
        await asyncio.to_thread(wait_until, lambda: enters(up, body), "zoe to enter")
        await page.reload()
        await shows(page, "your place in the line")
        assert await page.value("document.getElementById('rank').textContent") == "1"
        (proof,) = await page.cookies(f"{up.url}/api/queue/status")
        assert (proof["httpOnly"], proof["session"]) == (True, False), "no script reads it, and it stays"
        assert "roost_receipt" not in await page.value("document.cookie")

        await page.ask("Page.navigate", url="about:blank")
        await page.ask("Page.navigate", url=f"{up.url}/queue/main")
        await shows(page, "your place in the line")
        assert await page.value("document.getElementById('rank').textContent") == "1"
        assert await waiting_in(home, up) == 2
        await asyncio.to_thread(govern, home, up, mode="auto")
        await shows(page, "You are in.")
        await page.reload()
        await shows(page, "You are in.")


async def test_who_has_nothing_left_here_is_sent_to_the_login(home: Home) -> None:
    up = start_all(home, ROOST_QUEUE_KEYS=KEYS, ROOST_TICKET_KEYS=KEYS)
    async with chromium() as page:
        await page.open(f"{up.url}/queue/main#userId=ann&signature=old&login=https://game.example/login")
        await shows(page, "not known here", "Log in again")
        assert await page.value("document.getElementById('login').href") == "https://game.example/login"


WATCH_FIELDS = """
window.blanks = [];
const look = () => {
  const names = '#loading, #rank, #caption, #message, dd, dt, label, .note, h1, button';
  const fields = document.querySelectorAll(names);
  for (const one of fields) {
    if (!one.checkVisibility()) continue;
    const text = one.textContent.trim();
    if (!text || /^…$|\\{|undefined|NaN/.test(text)) window.blanks.push(one.outerHTML);
  }
  window.frames_seen = (window.frames_seen || 0) + 1;
  requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""


async def test_no_field_is_ever_blank_from_the_first_paint_on(home: Home) -> None:
    up = start_all(home)
    await asyncio.to_thread(govern, home, up, mode="hold", message="back soon")
    async with chromium() as page:
        await page.open(f"{up.url}/queue/main#userId=ann", on_start=WATCH_FIELDS)
        await shows(page, "your place in the line", "back soon")
        await page.reload()
        await shows(page, "your place in the line")
        await asyncio.to_thread(govern, home, up, mode="auto", message=None)
        await shows(page, "You are in.")
        assert await page.value("window.frames_seen") > 1
        assert await page.value("window.blanks") == []


async def test_it_speaks_the_language_of_the_browser_and_may_be_told_another(home: Home) -> None:
    up = start_all(home)
    await asyncio.to_thread(govern, home, up, mode="hold")
    async with chromium() as page:
        await page.open(f"{up.url}/queue/main#userId=ann", languages="ko-KR,ko", on_start=WATCH_FIELDS)
        await shows(page, "대기실", "나의 대기 순번", "5분 동안", "대기열에서 나가기")
        assert await page.value("document.documentElement.lang") == "ko"
        await page.screenshot(home.folder / "korean.png")
        await page.value("document.querySelector('[data-lang=en]').click()")
        await shows(page, "your place in the line", "for 5 min")
        await page.reload()
        await shows(page, "your place in the line", "Leave the line")
        await page.screenshot(home.folder / "english.png")
        assert await page.value("window.blanks") == []
        assert page.complaints == []
