"""The waiting room through a gateway."""

from __future__ import annotations

from urllib.parse import quote

from roost.api.queue import (
    ConsumeInput,
    ConsumeReply,
    ReleaseInput,
    ReleaseReply,
    ReportInput,
    ReportReply,
)
from roost.sdk.http.session import Session


class HttpAdmission:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def consume(self, given: ConsumeInput) -> ConsumeReply:
        return await self._session.ask(
            "POST", "/api/queue/tickets/consume", ConsumeReply, body=given, repeatable=True
        )

    async def release(self, world: str, server_id: str, given: ReleaseInput) -> ReleaseReply:
        path = f"{_server_path(world, server_id)}/release"
        return await self._session.ask("POST", path, ReleaseReply, body=given, repeatable=True)

    async def report(self, world: str, server_id: str, given: ReportInput) -> ReportReply:
        path = f"{_server_path(world, server_id)}/report"
        return await self._session.ask("POST", path, ReportReply, body=given, repeatable=True)


def _server_path(world: str, server_id: str) -> str:
    return f"/queue/v1/worlds/{quote(world, safe='')}/servers/{quote(server_id, safe='')}"
