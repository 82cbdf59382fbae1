"""What every role serves beside its work: /healthz, /readyz, /metrics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from aiohttp import web

from roost.api.system import Health, Ready
from roost.core.errors import Unavailable
from roost.core.loops import Loops
from roost.web.metrics import CONTENT_TYPE
from roost.web.route import Edge, Request, Route, RouteStats, build_app

OPS_PORT_ABOVE = 1000
"""How far above a role's own port these are, where it has a port of its own for them."""

READY_S = 0.2
"""How long a judgement of readiness holds."""

Check = Callable[[], Awaitable[Ready]]
"""Raises why the role cannot serve."""


class Page(Protocol):
    """What `/metrics` shows."""

    async def render(self) -> bytes: ...


def check_loops(loops: Loops, answering_since: float = float("-inf")) -> None:
    """Refuse to be ready while a loop fails or is stale that requests depend on; see `Loops.fault`."""
    if fault := loops.fault(answering_since):
        name = fault.partition(": ")[0]  # the reason may name addresses, and everybody may ask for this
        raise Unavailable(f"a background loop fails: {name}", hint="the log says more")


class Ops:
    def __init__(self, page: Page, check: Check) -> None:
        self._page = page
        self._check = check
        self._checking: asyncio.Task[Ready] | None = None
        self._stale_at = 0.0

    async def check_liveness(self, request: Request) -> Health:
        return Health()

    async def check_readiness(self, request: Request) -> Ready:
        """Everybody may ask: who asks at the same time gets the same answer, at the cost of one."""
        now = time.monotonic()
        if self._checking is None or (self._checking.done() and now > self._stale_at):
            self._checking = asyncio.create_task(self._readiness())
            self._stale_at = now + READY_S
        return await asyncio.shield(self._checking)

    async def _readiness(self) -> Ready:
        return await self._check()

    async def get_metrics(self, request: Request) -> web.Response:
        return web.Response(body=await self._page.render(), headers={"Content-Type": CONTENT_TYPE})

    def app(self, edge: Edge) -> web.Application:
        """An application of these routes alone, for a port of their own."""
        return build_app({route: RouteStats() for route in self.routes()}, edge)

    def liveness_route(self) -> Route:
        return Route(
            "GET",
            "/healthz",
            self.check_liveness,
            "The process is alive",
            reply=Health,
            touches_store=False,
        )

    def routes(self) -> list[Route]:
        return [
            self.liveness_route(),
            Route(
                "GET",
                "/readyz",
                self.check_readiness,
                "Requests can be served; 503 says why not",
                reply=Ready,
                errors=(Unavailable,),
            ),
            Route(
                "GET",
                "/metrics",
                self.get_metrics,
                "Prometheus metrics",
                scope="read",
                open_in_dev=True,
                content_type="text/plain",
            ),
        ]
