"""Alerts from end to end: a platform on a real store, and somebody who receives its webhook."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from roost.alerts import verify_webhook
from roost.alerts.settings import AlertSettings
from roost.api.discovery import Beat, RegisterInput
from roost.app import open_platform
from roost.settings import Settings
from roost.testing import RunningServer, eventually

SECRET = "a-secret-that-signs-alerts"


class Pager:
    """Takes alerts, and believes only what is signed."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []
        self.port = 0

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        stamp, signature = request.headers["X-Roost-Timestamp"], request.headers["X-Roost-Signature"]
        assert verify_webhook(SECRET, stamp, body, signature, float(stamp))
        alert = json.loads(body)
        self.heard.append((alert["kind"], alert["subject"]))
        return web.Response()


@pytest.fixture
async def pager() -> AsyncIterator[Pager]:
    pager, app = Pager(), web.Application()
    app.router.add_post("/", pager.take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    pager.port = runner.addresses[0][1]
    yield pager
    await runner.cleanup()


def settings_of(folder: Path, url: str, pager: Pager) -> Settings:
    alerts = AlertSettings(webhooks=f"json=http://127.0.0.1:{pager.port}/", secret=SECRET)
    return Settings(data=folder, api_token="a-token-for-the-tests", store=url, alerts=alerts)


async def test_a_silent_server_is_told_and_so_is_its_recovery(
    server: RunningServer, tmp_path: Path, pager: Pager
) -> None:
    async with open_platform(settings_of(tmp_path, server.url, pager), roles=("gateway",)) as platform:
        discovery = platform.discovery
        mine = await discovery.register(RegisterInput("game", "eu", "501", ttl_seconds=6.0))
        await discovery.register(RegisterInput("game", "eu", "502", ttl_seconds=600.0))
        await discovery.register(RegisterInput("game", "eu", "503", ttl_seconds=600.0))
        await eventually(lambda: ("unhealthy", "501") in pager.heard, "the alert")
        await discovery.heartbeat(mine.instance_id, Beat(mine.life))
        await eventually(lambda: ("recovered", "501") in pager.heard, "the all-clear")
        assert pager.heard == [("unhealthy", "501"), ("recovered", "501")]


@pytest.mark.slow
async def test_a_store_that_is_away_is_told_as_is_the_leadership_lost_with_it(
    server: RunningServer, tmp_path: Path, pager: Pager
) -> None:
    async with contextlib.AsyncExitStack() as stack:
        settings = settings_of(tmp_path, server.url, pager)
        platform = await stack.enter_async_context(open_platform(settings, roles=("gateway",)))
        await eventually(lambda: platform.checker.tally.live == 1, "the platform to be at work")
        server.stop()
        await eventually(
            lambda: {kind for kind, _ in pager.heard} == {"store-away", "leader-lost"}, "both alerts"
        )
        server.start()
        await eventually(lambda: "store-back" in [kind for kind, _ in pager.heard], "the all-clear")
