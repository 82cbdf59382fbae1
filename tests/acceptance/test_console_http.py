"""The files of the console over HTTP: open to everybody, never stale, nothing from outside its folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from roost.testing import Gateway, RunningServer, open_gateway
from tests.acceptance.queue import settings_for


@pytest.fixture
async def gateway(server: RunningServer, tmp_path: Path) -> AsyncIterator[Gateway]:
    async with open_gateway(server.url, settings_for(tmp_path)) as gateway:
        yield gateway


async def test_the_page_runs_nothing_but_its_own_modules(gateway: Gateway) -> None:
    page = await gateway.ask("GET", "/")
    assert (page.status, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert b'data-languages="en ko"' in page.body


@pytest.mark.parametrize(
    ("path", "type_"),
    [
        ("main.js", "text/javascript; charset=utf-8"),
        ("pages/servers.js", "text/javascript; charset=utf-8"),
        ("tokens.css", "text/css; charset=utf-8"),
        ("lang/ko.json", "application/json; charset=utf-8"),
        ("icon.svg", "image/svg+xml; charset=utf-8"),
    ],
)
async def test_a_file_has_its_type_and_is_sent_once(gateway: Gateway, path: str, type_: str) -> None:
    found = await gateway.ask("GET", f"/console/{path}")
    assert (found.status, found.headers["Content-Type"]) == (200, type_)
    assert found.headers["Cache-Control"] == "no-cache"
    again = await gateway.ask("GET", f"/console/{path}", headers={"If-None-Match": found.headers["ETag"]})
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize(
    "path",
    [
        "index.html",
        "nothing.js",
        "..%2fapp.py",
        "pages/..%2f..%2fapp.py",
        "%2e%2e/app.py",
        "pages",
        "__init__.py",
    ],
)
async def test_nothing_else_is_served(gateway: Gateway, path: str) -> None:
    assert (await gateway.ask("GET", f"/console/{path}")).status == 404
