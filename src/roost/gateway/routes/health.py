"""The health of servers over HTTP, as the checker of this gateway sees it."""

from __future__ import annotations

from roost.api import Message
from roost.api.discovery import HealthReport
from roost.api.limits import Name
from roost.gateway.context import Gateway
from roost.web.route import Request, Route


class HealthQuery(Message):
    type: Name = "*"
    group: Name = "*"


class HealthRoutes:
    def __init__(self, gateway: Gateway) -> None:
        self._checker = gateway.platform.checker

    async def get_health(self, request: Request) -> HealthReport:
        wanted: HealthQuery = request.query
        checker = self._checker
        servers = [
            server
            for server in checker.servers()
            if wanted.type in ("*", server.type) and wanted.group in ("*", server.group)
        ]
        return HealthReport(servers, checker.tally.live, checker.turns.fell, checker.turns.rose)


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
