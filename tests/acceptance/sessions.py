"""Browsers: a session at a gateway, by its cookie alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from aiohttp import ClientResponse

from roost.testing import Answer, Gateway
from tests.acceptance.queue import TOKEN

SESSION = "/auth/v1/session"
TIMEOUT_S = 20.0
"""For what a stream should bring; one that does never waits it out."""


async def make_token(gateway: Gateway, *scopes: str, name: str = "somebody") -> tuple[str, str]:
    """(id, token)"""
    given = {"name": name, "scopes": [*scopes]}
    answer = await gateway.ask("POST", "/auth/v1/tokens", given, token=TOKEN)
    assert answer.status == 201, answer.body
    return answer.json["id"], answer.json["token"]


def cookie_of(answer: Answer) -> str:
    return answer.headers["Set-Cookie"].partition(";")[0]


@dataclass(frozen=True)
class Browser:
    """Somebody who is logged in."""

    gateway: Gateway
    cookie: str
    csrf: str

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """With the CSRF header of our own page, unless it is given."""
        sent = {"Cookie": self.cookie, "X-CSRF-Token": self.csrf}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.gateway.ask(
            method, path, body, headers={name: value for name, value in sent.items() if value}
        )

    def at(self, other: Gateway) -> Browser:
        """The same cookie at another gateway."""
        return Browser(other, self.cookie, self.csrf)


async def log_in(gateway: Gateway, token: str) -> Browser:
    answer = await gateway.ask("POST", SESSION, {"token": token})
    assert answer.status == 200, answer.body
    return Browser(gateway, cookie_of(answer), answer.json["csrf"])


@dataclass
class Heard:
    """A stream of events, as far as it has been read."""

    response: ClientResponse
    events: list[tuple[str, str, Any]] = field(default_factory=list)
    """(id, name, data)"""
    _rest: bytes = b""

    async def read(self) -> bool:
        """Whatever comes next; False: it has ended."""
        chunk = await self.response.content.readany()
        *blocks, self._rest = (self._rest + chunk).split(b"\n\n")
        for block in blocks:
            fields = dict(line.split(": ", 1) for line in block.decode().split("\n") if ": " in line[1:])
            if "event" in fields:
                self.events.append((fields["id"], fields["event"], msgspec.json.decode(fields["data"])))
        return bool(chunk)

    async def until(self, event: str, **details: Any) -> Any:
        """The first event of this word that holds these fields, from the beginning of the stream."""
        return await self._until(
            lambda _, data: data.get("event") == event and details.items() <= data.items(), event
        )

    async def until_kind(self, kind: str) -> Any:
        return await self._until(lambda name, _: name == kind, kind)

    async def _until(self, fits: Callable[[str, Any], bool], what: str) -> Any:
        looked = 0
        async with asyncio.timeout(TIMEOUT_S):
            while True:
                for _, name, data in self.events[looked:]:
                    if fits(name, data):
                        return data
                looked = len(self.events)
                assert await self.read(), f"the stream ended before {what}: {self.events[-3:]}"

    async def until_it_ends(self) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            while await self.read():
                pass


@asynccontextmanager
async def listening(
    gateway: Gateway,
    query: str = "",
    *,
    path: str = "/events/v1",
    headers: Mapping[str, str] | None = None,
    after: str = "",
) -> AsyncIterator[Heard]:
    sent = {"X-API-Token": TOKEN} if headers is None else dict(headers)
    sent |= {"Last-Event-ID": after} if after else {}
    async with gateway.session.get(f"{path}{query}", headers=sent) as response:
        assert response.status == 200, await response.read()
        yield Heard(response)
