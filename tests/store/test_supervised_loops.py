"""Every loop of a process comes back after an unexpected exception, and is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from roost.alerts.settings import AlertSettings
from roost.app import Platform, open_platform
from roost.core.loops import Loop, Step
from roost.settings import Settings
from roost.testing import RunningServer, eventually

LOOPS = {
    "sweep",
    "list cache",
    "health watch",
    "health probe",
    "health vote",
    "fleet main",
    "fleet entity b0",
    "bindings b0",
    "store watch",
    "presence main",
    "admit main",
    "status export main",
    "alerts json localhost",
    "doorbells",
    "drain jobs",
    "balancer game:* consistent_hash",
}


class Unexpected(Exception):
    """What nobody foresaw."""


@pytest.fixture
def every_first_turn_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    keep_running = Loop.keep_running

    async def with_a_fault(loop: Loop, step: Step, *args: object, **kwargs: object) -> None:
        turns = 0

        async def faulty() -> object:
            nonlocal turns
            turns += 1
            if turns == 1 and not loop.name.startswith("balancer"):
                raise Unexpected(loop.name)
            return await step()

        await keep_running(loop, faulty, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(Loop, "keep_running", with_a_fault)


def recovered(platform: Platform, name: str) -> bool:
    found = {loop.name: loop for loop in platform.store.loops.all()}
    return name in found and found[name].last_good_at is not None and found[name].failing_since is None


async def test_every_loop_of_a_gateway_and_manager_comes_back(
    server: RunningServer, every_first_turn_fails: None, tmp_path: Path
) -> None:
    settings = Settings(
        store=server.url, data=tmp_path, alerts=AlertSettings(webhooks="json=http://localhost:9")
    )
    async with open_platform(settings, roles=("gateway", "manager"), wait_s=5.0) as platform:
        await platform.balancers.of("game", "*", "consistent_hash")
        await eventually(lambda: all(recovered(platform, name) for name in LOOPS), "every loop", 15.0)
        loops = {loop.name: loop for loop in platform.store.loops.all()}
        for name in LOOPS - {"balancer game:* consistent_hash"}:
            assert loops[name].failures == 1, name
        assert {name.partition(" ")[0] for name in loops if name not in LOOPS} == {
            "link",
            "feed",
            "leader",
            "push",
            "audit",
        }
        assert platform.store.loops.fault() == ""
