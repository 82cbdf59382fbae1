"""The health of servers over HTTP, as the checker of this gateway sees it; the votes are the store's."""

from __future__ import annotations

import contextlib

from roost.api import Message
from roost.api.discovery import HealthReport
from roost.api.limits import Name
from roost.core.errors import StoreError
from roost.gateway.context import Gateway
from roost.web.route import Request, Route


class HealthQuery(Message):
    type: Name = "*"
    group: Name = "*"


class HealthRoutes:
    def __init__(self, gateway: Gateway) -> None:
        self._checker = gateway.platform.checker
        self._discovery = gateway.platform.discovery

    async def get_health(self, request: Request) -> HealthReport:
        wanted: HealthQuery = request.query
        checker, votes = self._checker, {}
        with contextlib.suppress(StoreError):  # who is unhealthy is known without it
            votes = await self._discovery.votes()
        servers = [
            server
            for server in checker.servers(votes)
            if wanted.type in ("*", server.type) and wanted.group in ("*", server.group)
        ]
        return HealthReport(servers, checker.live, checker.turns.fell, checker.turns.rose)


def routes(gateway: Gateway) -> list[Route]:
    return [
        Route(
            "GET",
            "/sd/v1/health",
            HealthRoutes(gateway).get_health,
            "The health of every server, the unhealthy first, with the votes of the checkers",
            scope="read",
            query=HealthQuery,
            reply=HealthReport,
        )
    ]
