"""The session of a browser: what its cookie may do, and who may not have one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from roost.core.errors import NotAuthenticated
from roost.core.signing import Kind, MasterKey, Signer
from roost.settings import Settings
from roost.testing import Gateway, RunningServer, eventually
from roost.tokens.sessions import SESSION_S, Sessions
from tests.acceptance.queue import TOKEN, settings_for
from tests.acceptance.role_users import open_gateway_as_role
from tests.acceptance.sessions import SESSION, Browser, cookie_of, listening, log_in, make_token

UNAUTHENTICATED = (401, "UNAUTHENTICATED")
FORBIDDEN = (403, "FORBIDDEN")
WORLD = "/queue/v1/worlds/main"
FOREIGN = "https://elsewhere.example"


@pytest.fixture
async def lan(server: RunningServer, tmp_path: Path) -> AsyncIterator[Gateway]:
    """A gateway at which nobody is logged in by themselves."""
    async with open_gateway_as_role(server, lan_settings(tmp_path)) as gateway:
        yield gateway


@pytest.fixture
async def dev(server: RunningServer, tmp_path: Path) -> AsyncIterator[Gateway]:
    async with open_gateway_as_role(server, settings_for(tmp_path)) as gateway:
        yield gateway


def lan_settings(folder: Path) -> Settings:
    return replace(settings_for(folder), profile="lan")


async def test_a_token_is_shown_once_and_the_cookie_holds_nothing_of_it(lan: Gateway) -> None:
    token_id, token = await make_token(lan, "read", name="ann")
    answer = await lan.ask("POST", SESSION, {"token": token})
    assert answer.status == 200
    told, cookie = answer.json, answer.headers["Set-Cookie"]
    assert (told["name"], told["tokenId"], told["scopes"]) == ("ann", token_id, ["read"])
    assert told["profile"] == "lan"
    assert {"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"} <= set(cookie.split("; "))
    assert "Secure" not in cookie, "this came by plain HTTP: a browser would not keep it"
    assert token not in cookie
    assert token.split("_", 2)[2] not in str(answer.body)
    browser = Browser(lan, cookie_of(answer), told["csrf"])
    again = await browser.ask("GET", SESSION)
    assert again.json == told
    assert (await browser.ask("GET", "/sd/v1/instances")).status == 200


async def test_logging_out_ends_the_session_for_whoever_copied_the_cookie(
    lan: Gateway, server: RunningServer, tmp_path: Path
) -> None:
    browser, other = await log_in(lan, TOKEN), await log_in(lan, TOKEN)
    async with open_gateway_as_role(server, lan_settings(tmp_path)) as elsewhere:
        copy = Browser(elsewhere, browser.cookie, browser.csrf)
        assert (await copy.ask("GET", SESSION)).status == 200

        assert (await browser.ask("DELETE", SESSION)).status == 204

        assert (await browser.ask("GET", SESSION)).refusal == UNAUTHENTICATED

        async def is_void_elsewhere() -> bool:
            return (await copy.ask("GET", SESSION)).status == 401

        await eventually(is_void_elsewhere, "the other gateway heard of it")
    assert (await other.ask("GET", SESSION)).status == 200, "of the same token, and not ended"


async def test_over_https_the_cookie_is_secure(lan: Gateway) -> None:
    host = urlsplit(lan.url).netloc
    answer = await lan.ask("POST", SESSION, {"token": TOKEN}, headers={"Origin": f"https://{host}"})
    assert "Secure" in answer.headers["Set-Cookie"].split("; ")


async def test_nobody_is_logged_in_without_a_token(lan: Gateway) -> None:
    assert (await lan.ask("GET", SESSION)).refusal == UNAUTHENTICATED
    assert (await lan.ask("POST", SESSION, {"token": "a-guess"})).refusal == UNAUTHENTICATED
    assert (await lan.ask("POST", SESSION, {"token": ""})).refusal == UNAUTHENTICATED
    foreign = await lan.ask("POST", SESSION, {"token": TOKEN}, headers={"Origin": FOREIGN})
    assert foreign.refusal == FORBIDDEN, "nor logged in as somebody by another page"


async def test_logging_out_takes_the_cookie_away(lan: Gateway) -> None:
    browser = await log_in(lan, TOKEN)
    answer = await browser.ask("DELETE", SESSION)
    assert answer.status == 204
    assert "Max-Age=0" in answer.headers["Set-Cookie"]
    assert answer.headers["Set-Cookie"].startswith("roost_session=;")


async def test_g17_what_changes_something_needs_the_csrf_header(lan: Gateway) -> None:
    browser = await log_in(lan, TOKEN)
    hold = {"mode": "hold"}
    assert (await browser.ask("PATCH", WORLD, hold, X_CSRF_Token="")).refusal == FORBIDDEN
    assert (await browser.ask("PATCH", WORLD, hold, X_CSRF_Token="0" * 32)).refusal == FORBIDDEN
    other = await log_in(lan, TOKEN)
    assert (await browser.ask("PATCH", WORLD, hold, X_CSRF_Token=other.csrf)).refusal == FORBIDDEN
    assert (await lan.ask("GET", WORLD, token=TOKEN)).json["mode"] == "auto"
    assert (await browser.ask("PATCH", WORLD, hold)).status == 200


@pytest.mark.parametrize("origin", [FOREIGN, "null", "http://127.0.0.1", "http://127.0.0.1:1", "x"])
async def test_g17_a_page_of_another_origin_changes_nothing(lan: Gateway, origin: str) -> None:
    browser = await log_in(lan, TOKEN)
    assert (await browser.ask("PATCH", WORLD, {"mode": "hold"}, Origin=origin)).refusal == FORBIDDEN
    assert (await lan.ask("GET", WORLD, token=TOKEN)).json["mode"] == "auto"
    assert (await browser.ask("PATCH", WORLD, {"mode": "hold"}, Origin=lan.url)).status == 200


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_g17_the_hotfix_takes_no_cookie(lan: Gateway, method: str) -> None:
    browser = await log_in(lan, TOKEN)
    assert (await browser.ask(method, "/admin/v1/hotfix?nodes[]=501")).refusal == UNAUTHENTICATED


async def test_g17_a_reader_acts_on_nothing(lan: Gateway) -> None:
    _, token = await make_token(lan, "read")
    browser = await log_in(lan, token)
    assert (await browser.ask("GET", "/overview/v1")).status == 200
    for method, path, body in (
        ("PATCH", WORLD, {"mode": "hold"}),
        ("POST", "/drain/v1/jobs", {"servers": ["501"]}),
        ("POST", "/auth/v1/tokens", {"name": "more", "scopes": ["admin"]}),
        ("GET", "/auth/v1/tokens", None),
        ("POST", "/orders/v1/symbols/AAPL/halt", {}),
        ("DELETE", "/bind/v1/users/ann", None),
    ):
        assert (await browser.ask(method, path, body)).refusal == FORBIDDEN, path


async def test_g17_a_revoked_token_ends_its_session_and_its_stream(lan: Gateway) -> None:
    token_id, token = await make_token(lan, "read")
    browser = await log_in(lan, token)
    async with listening(lan, headers={"Cookie": browser.cookie}) as heard:
        assert (await lan.ask("DELETE", f"/auth/v1/tokens/{token_id}", token=TOKEN)).status == 204
        await heard.until_it_ends()
    assert (await browser.ask("GET", "/sd/v1/instances")).refusal == UNAUTHENTICATED
    assert (await browser.ask("GET", SESSION)).refusal == UNAUTHENTICATED


@pytest.mark.parametrize("path", ["/events/v1", "/sd/v1/watch"])
async def test_g17_a_revoked_token_ends_the_streams_that_it_began(lan: Gateway, path: str) -> None:
    token_id, token = await make_token(lan, "read")
    async with listening(lan, path=path, headers={"X-API-Token": token}) as heard:
        assert (await lan.ask("DELETE", f"/auth/v1/tokens/{token_id}", token=TOKEN)).status == 204
        await heard.until_it_ends()


@pytest.mark.parametrize("path", ["/events/v1", "/sd/v1/watch", "/audit/v1/export"])
async def test_head_on_a_stream_is_answered_and_over(lan: Gateway, path: str) -> None:
    """With a GET behind it on the same connection: nothing of a body stands between the two."""
    connector = aiohttp.TCPConnector(limit=1)
    async with aiohttp.ClientSession(headers={"X-API-Token": TOKEN}, connector=connector) as session:
        for _ in range(2):
            async with asyncio.timeout(5.0), session.head(f"{lan.url}{path}") as answer:
                assert answer.status == 200
            async with session.get(f"{lan.url}/sd/v1/instances") as answer:
                assert "instances" in await answer.json()


async def test_g17_a_token_that_another_gateway_revoked_ends_its_session(
    lan: Gateway, server: RunningServer, tmp_path: Path
) -> None:
    token_id, token = await make_token(lan, "read")
    browser = await log_in(lan, token)
    async with open_gateway_as_role(server, lan_settings(tmp_path)) as other:
        elsewhere = browser.at(other)
        assert (await elsewhere.ask("GET", "/sd/v1/instances")).status == 200, "it is one session for all"
        assert (await elsewhere.ask("POST", "/lb/v1/select", {"type": "game", "keys": []})).status == 200
        assert (await lan.ask("DELETE", f"/auth/v1/tokens/{token_id}", token=TOKEN)).status == 204

        async def refused() -> bool:
            return (await elsewhere.ask("GET", "/sd/v1/instances")).status == 401

        await eventually(refused, "the other gateway to hear of it")


async def test_g17_a_forged_cookie_is_nobodys(lan: Gateway) -> None:
    good = (await log_in(lan, TOKEN)).cookie
    other = await Sessions("another-root-token-entirely").begin("root")
    guess = Signer(Kind.CONSOLE, (MasterKey("console", TOKEN.encode()),)).sign(b"9999999999 root x")
    receipt = Signer(Kind.RECEIPT, (MasterKey("console", TOKEN.encode()),)).sign(b"9999999999 root x")
    head, _, mac = good.rpartition(".")
    for cookie in (
        f"roost_session={other.cookie}",
        f"roost_session={guess}",
        f"roost_session={receipt}",
        f"{head}.{'A' * len(mac)}",
        good[:-1],
        f"{good}x",
        "roost_session=",
        "roost_session=v1.console..",
        "roost_session=" + "a" * 5000,
        f"roost_session={TOKEN}",
    ):
        answer = await lan.ask("GET", "/sd/v1/instances", headers={"Cookie": cookie})
        assert answer.refusal == UNAUTHENTICATED, cookie


async def test_g17_a_session_ends_after_twelve_hours() -> None:
    now = [1_800_000_000.0]
    sessions = Sessions(TOKEN, lambda: now[0])
    session = await sessions.begin("root")
    now[0] += SESSION_S - 1
    assert (await sessions.read(session.cookie)).token_id == "root"
    now[0] += 1
    with pytest.raises(NotAuthenticated):
        await sessions.read(session.cookie)


async def test_a_header_counts_before_the_cookie(lan: Gateway) -> None:
    _, token = await make_token(lan, "read")
    browser = await log_in(lan, TOKEN)
    answer = await browser.ask("PATCH", WORLD, {"mode": "hold"}, X_API_Token=token)
    assert answer.refusal == FORBIDDEN, "who shows less, may less"
    assert (await browser.ask("GET", WORLD, X_API_Token="a-guess")).refusal == UNAUTHENTICATED


# -- profile dev


async def test_a_developer_is_logged_in_by_themselves(dev: Gateway) -> None:
    answer = await dev.ask("GET", SESSION)
    assert (answer.status, answer.json["name"]) == (200, "root")
    browser = Browser(dev, cookie_of(answer), answer.json["csrf"])
    assert (await browser.ask("PATCH", WORLD, {"mode": "hold"})).status == 200
    same = await dev.ask("GET", SESSION, headers={"Sec-Fetch-Site": "same-origin", "Origin": dev.url})
    assert same.status == 200
    typed = await dev.ask("GET", SESSION, headers={"Sec-Fetch-Site": "none"})
    assert typed.status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:8400"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "localhost.evil.example"},
        {"Host": "10.0.0.5:8400"},
        {"Host": "user@localhost"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": FOREIGN},
        {"Origin": "http://localhost:3000"},
        {"Origin": "null"},
        {"X-Forwarded-For": "203.0.113.9"},
        {"Forwarded": "for=203.0.113.9"},
    ],
)
async def test_g17_a_foreign_page_does_not_get_into_a_developers_machine(
    dev: Gateway, headers: dict[str, str]
) -> None:
    answer = await dev.ask("GET", SESSION, headers=headers)
    assert answer.status in (400, 401)
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "127.8.9.1", "[::1]"])
async def test_every_name_of_this_machine_is_one(dev: Gateway, name: str) -> None:
    assert (await dev.ask("GET", SESSION, headers={"Host": f"{name}:8400"})).status == 200


async def test_nobody_is_logged_in_by_themselves_elsewhere(lan: Gateway) -> None:
    assert (
        await lan.ask("GET", SESSION, headers={"Sec-Fetch-Site": "same-origin"})
    ).refusal == UNAUTHENTICATED
