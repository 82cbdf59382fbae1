"""The health of servers over HTTP, as the checker of this gateway sees it."""

from __future__ import annotations

from roost.api import Message
from roost.api.discovery import HealthReport
from roost.app import Platform
from roost.gateway.route import Request, Route


class HealthQuery(Message):
    type: str = "*"
    group: str = "*"


def health_routes(platform: Platform) -> list[Route]:
    checker = platform.checker

    async def report(request: Request) -> HealthReport:
        wanted: HealthQuery = request.query
        servers = [
            server
            for server in checker.servers()
            if wanted.type in ("*", server.type) and wanted.group in ("*", server.group)
        ]
        return HealthReport(servers, checker.tally.live, checker.fell, checker.rose)

    return [
        Route(
            "GET",
            "/sd/v1/health",
            report,
            "The health of every server, the unhealthy first, with the votes of the checkers",
            scope="read",
            query=HealthQuery,
            reply=HealthReport,
        )
    ]
