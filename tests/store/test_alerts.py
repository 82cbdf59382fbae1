"""Alerts from end to end: a platform on a real store, and somebody who receives its webhook."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from roost.alerts import Alert, verify_webhook
from roost.alerts.claims import Claimed, StoreClaims, Told
from roost.alerts.settings import AlertSettings
from roost.api.discovery import Beat, RegisterInput
from roost.app import open_platform
from roost.settings import Settings
from roost.store.store import Store
from roost.testing import RunningServer, eventually

SECRET = "a-secret-that-signs-alerts"


class Pager:
    """Takes alerts, and believes only what is signed."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []
        self.alerts: list[dict[str, Any]] = []
        self.port = 0

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        stamp, signature = request.headers["X-Roost-Timestamp"], request.headers["X-Roost-Signature"]
        assert verify_webhook(SECRET, stamp, body, signature, float(stamp))
        alert = json.loads(body)
        self.heard.append((alert["kind"], alert["subject"]))
        self.alerts.append(alert)
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
        trouble = pager.alerts[0]
        assert trouble["dedupKey"] == pager.alerts[1]["dedupKey"] == "roost/health/game/501"
        assert {"type": "game", "group": "eu"}.items() <= trouble["details"].items()
        assert "heartbeat" in trouble["details"]["reason"]


async def test_of_three_processes_that_see_it_one_tells(
    server: RunningServer, tmp_path: Path, pager: Pager
) -> None:
    async with contextlib.AsyncExitStack() as stack:
        platforms = [
            await stack.enter_async_context(
                open_platform(settings_of(tmp_path / str(n), server.url, pager), roles=("gateway",))
            )
            for n in range(3)
        ]
        await eventually(lambda: all(p.checker.live == 3 for p in platforms), "the checkers")
        discovery = platforms[0].discovery
        mine = await discovery.register(RegisterInput("game", "eu", "501", ttl_seconds=6.0))
        await discovery.register(RegisterInput("game", "eu", "502", ttl_seconds=600.0))
        await discovery.register(RegisterInput("match", "eu", "501", ttl_seconds=600.0))
        await eventually(lambda: all(p.checker.turns.fell for p in platforms), "all to see it")
        await discovery.heartbeat(mine.instance_id, Beat(mine.life))
        await eventually(lambda: all(p.checker.turns.rose for p in platforms), "all to see the recovery")
        await discovery.remove(mine.instance_id, cause="crashed")
        await eventually(lambda: all(p.checker.turns.fell == 2 for p in platforms), "all to see the crash")
        counts = [platform.notifier.counts for platform in platforms]
        await eventually(
            lambda: sum(c.sent["json"] for c in counts) == 3 and len(pager.heard) == 3, "three alerts"
        )
        await eventually(lambda: sum(c.elsewhere["json"] for c in counts) == 6, "the others to let go")
        assert pager.heard == [("unhealthy", "501"), ("recovered", "501"), ("unhealthy", "501")]


async def test_what_a_dead_process_had_claimed_is_told_by_the_next(
    server: RunningServer, store: Store, tmp_path: Path, pager: Pager
) -> None:
    settings = settings_of(tmp_path, server.url, pager)
    async with open_platform(settings, roles=("gateway",)) as platform:
        seen: list[Alert] = []
        tell = platform.notifier.tell

        def claimed_by_another(alert: Alert) -> None:
            seen.append(alert)

        platform.notifier.tell = claimed_by_another  # type: ignore[method-assign]
        await platform.discovery.register(RegisterInput("game", "eu", "501", ttl_seconds=3.0))
        await platform.discovery.register(RegisterInput("game", "eu", "502", ttl_seconds=600.0))
        await eventually(lambda: bool(seen), "the turn")
        dead = StoreClaims(store)
        (webhook,) = settings.alerts.targets()
        assert await dead.claim(webhook, seen[0], lease_s=2.0) == Claimed()
        tell(seen[0])
        await eventually(lambda: pager.heard == [("unhealthy", "501")], "the alert, after the claim ran out")

        async def is_told() -> bool:  # noted when the webhook has answered, so a moment after it heard
            return await dead.claim(webhook, seen[0], lease_s=2.0) == Told()

        await eventually(is_told, "the claim to be told")


@pytest.mark.slow
async def test_a_store_that_is_away_is_told_as_is_the_leadership_lost_with_it(
    server: RunningServer, tmp_path: Path, pager: Pager
) -> None:
    async with contextlib.AsyncExitStack() as stack:
        settings = settings_of(tmp_path, server.url, pager)
        platform = await stack.enter_async_context(open_platform(settings, roles=("gateway", "manager")))
        admitter = platform.worlds.of("main").admitter
        await eventually(
            lambda: platform.checker.live == 1 and admitter.leading, "the platform to be at work"
        )
        server.stop()
        await eventually(
            lambda: {kind for kind, _ in pager.heard} == {"store-away", "leader-lost"}, "both alerts"
        )
        server.start()
        await eventually(lambda: "store-back" in [kind for kind, _ in pager.heard], "the all-clear")
