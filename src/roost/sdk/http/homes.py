"""Bindings through a gateway."""

from __future__ import annotations

from urllib.parse import quote

from roost.api.binding import Home
from roost.sdk.http.session import Session


class HttpHomes:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def home_of(self, type_: str, user: str) -> Home:
        path = f"/bind/v1/users/{quote(user, safe='')}"
        return await self._session.ask("GET", path, Home, query=[("type", type_)])
