"""Every port over one HTTP session."""

from __future__ import annotations

from roost.sdk.http.admission import HttpAdmission
from roost.sdk.http.homes import HttpHomes
from roost.sdk.http.registry import HttpRegistry
from roost.sdk.http.session import Session


class HttpTransport:
    def __init__(self, url: str, token: str) -> None:
        self._session = Session(url, token)
        self.registry = HttpRegistry(self._session)
        self.admission = HttpAdmission(self._session)
        self.homes = HttpHomes(self._session)

    async def close(self) -> None:
        await self._session.close()
