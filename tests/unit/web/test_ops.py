"""Readiness: asked by everybody, worked out once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from roost.api.system import Ready
from roost.core.errors import RoostError, Unavailable
from roost.web import ops
from roost.web.metrics import MetricsPage
from roost.web.ops import Ops

ASKED: Any = None
"""Nothing of the request matters."""


class Role:
    def __init__(self) -> None:
        self.checks = 0
        self.fault: RoostError | None = None

    async def check(self) -> Ready:
        self.checks += 1
        await asyncio.sleep(0)
        if self.fault is not None:
            raise self.fault
        return Ready("ready")


async def test_a_crowd_that_asks_costs_one_check() -> None:
    role = Role()
    page = Ops(MetricsPage("dev", (), "gateway"), role.check)
    answers = await asyncio.gather(*(page.check_readiness(ASKED) for _ in range(100)))
    assert {answer.status for answer in answers} == {"ready"}
    assert role.checks == 1


async def test_all_of_them_hear_why_not_and_the_next_hears_what_is_true_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ops, "READY_S", 0.0)
    role = Role()
    page = Ops(MetricsPage("dev", (), "gateway"), role.check)
    role.fault = Unavailable("starting")
    answers = await asyncio.gather(*(page.check_readiness(ASKED) for _ in range(3)), return_exceptions=True)
    assert [str(answer) for answer in answers] == ["starting"] * 3
    role.fault = None
    assert (await page.check_readiness(ASKED)).status == "ready"
    assert role.checks == 2
