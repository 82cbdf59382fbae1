"""A gateway in this process: real routes on a real port, without a process of its own.

async with open_gateway(server.url, Settings(data=folder, api_token="secret")) as gateway:
    answer = await gateway.ask("GET", "/sd/v1/instances", token="secret")
"""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientSession

from roost.app import Platform
from roost.gateway.context import connection_limits
from roost.gateway.server import build_app
from roost.settings import Settings
from roost.testing.stores import open_store
from roost.web.listen import bind, serve
from roost.web.route import Route


@dataclass(frozen=True)
class Answer:
    """What came back over HTTP, read whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def refusal(self) -> tuple[int, str]:
        """(status, error code) of an error; fails where the body is not an error as documented."""
        error = self.json["error"]
        assert error["message"]
        assert error["requestId"]
        return self.status, error["code"]


@dataclass(kw_only=True)
class Gateway:
    """A gateway that listens on a free port of this machine, and a session to it."""

    session: ClientSession
    platform: Platform
    address: tuple[str, int]

    @property
    def url(self) -> str:
        return f"http://{self.address[0]}:{self.address[1]}"

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str = "",
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    ) -> Answer:
        """One request. `body` is sent as JSON; headers may be given as pairs, so that one may stand twice."""
        sent = [*(headers.items() if isinstance(headers, Mapping) else headers)]
        sent += [("X-API-Token", token)] if token else []
        data = None if body is None else io.BytesIO(json.dumps(body).encode())
        async with self.session.request(method, path, data=data, headers=sent) as response:
            return Answer(response.status, response.headers, await response.read())


@asynccontextmanager
async def open_gateway(
    store_url: str, settings: Settings, *, more_routes: Iterable[Route] = (), loops: bool = False
) -> AsyncIterator[Gateway]:
    """A gateway on the store behind `store_url`, closed on the way out.

    Its background loops run only with `loops`: without them no time passes but what the test makes pass.
    """
    async with open_store(store_url) as store:
        platform = Platform(settings, store, ("gateway",))
        listener = bind("127.0.0.1", 0)
        host, port = listener.getsockname()
        runner = await serve(build_app(platform, more_routes), listener, connection_limits(settings))
        running = [asyncio.create_task(loop) for loop in (platform.loops() if loops else ())]
        try:
            async with ClientSession(f"http://{host}:{port}") as session:
                yield Gateway(session=session, platform=platform, address=(host, port))
        finally:
            for loop in running:
                loop.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            await runner.cleanup()
            await platform.audit.writer.close()
