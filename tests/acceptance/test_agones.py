"""A real game server process beside a sidecar that speaks as Agones' does."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from roost.testing import eventually, free_port
from tests.acceptance.conftest import Home, home

__all__ = ["home"]


class Sidecar:
    """Notes what it is told; gives the address of a node and a port there."""

    def __init__(self, port: int) -> None:
        self.told: list[str] = []
        self._port = port

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/gameserver", self._gameserver)
        for path in ("/ready", "/allocate", "/health"):
            app.router.add_post(path, self._take)
        return app

    async def _take(self, request: web.Request) -> web.Response:
        self.told.append(request.path)
        return web.json_response({})

    async def _gameserver(self, request: web.Request) -> web.Response:
        ports = [{"name": "ws", "port": self._port}]
        return web.json_response({"status": {"address": "127.0.0.1", "ports": ports}})

    @property
    def states(self) -> list[str]:
        return [path for path in self.told if path != "/health"]


async def entered(session: ClientSession, url: str, user: str) -> dict[str, Any]:
    """Their place, once they have a ticket."""
    place: dict[str, Any] = {}

    async def has_ticket() -> bool:
        async with session.post(f"{url}/api/queue/entry", json={"userId": user}) as answer:
            place.update(await answer.json())
        await asyncio.sleep(0.3)
        return bool(place.get("serverUrl"))

    await eventually(has_ticket, "a ticket", 30, lambda: str(place))
    return place


async def test_a_server_is_allocated_while_somebody_is_inside_and_ready_again_after(home: Home) -> None:
    up, port = await asyncio.to_thread(home.up), free_port()
    sidecar = Sidecar(port)
    async with TestServer(sidecar.app()) as server, ClientSession() as session:
        env = {"ROOST_GAMESERVER__AGONES_URL": str(server.make_url(""))}
        flags = ("--port", str(port), "--url", up.url)
        await asyncio.to_thread(lambda: home.start("gameserver", *flags, **env))
        await eventually(lambda: sidecar.states == ["/ready"], "it to be ready", 30)
        assert "/health" in sidecar.told

        place = await entered(session, up.url, "ann")
        assert place["serverUrl"] == f"ws://127.0.0.1:{port}/gameserver"
        async with session.ws_connect(f"{place['serverUrl']}?ticketId={place['ticketId']}"):
            await eventually(lambda: sidecar.states[1:] == ["/allocate"], "it to be allocated", 30)
        await eventually(lambda: sidecar.states[2:] == ["/ready"], "it to be ready again", 30)
