"""A player whose line is cut: the server hears no goodbye, whichever event loop the drill runs on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import uvloop
from aiohttp import ClientSession, WSCloseCode, web
from aiohttp.test_utils import TestServer

from roost.drills.doors import SocketVisit


async def crash() -> int | None:
    """The close code that the server got to see."""
    ended: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()

    async def door(http: web.Request) -> web.WebSocketResponse:
        line = web.WebSocketResponse()
        await line.prepare(http)
        try:
            async for _ in line:
                pass
        finally:  # it may be cancelled
            ended.set_result(line.close_code)
        return line

    app = web.Application()
    app.router.add_get("/", door)
    async with TestServer(app) as server, ClientSession() as session:
        await SocketVisit(await session.ws_connect(server.make_url("/"))).crash()
        return await asyncio.wait_for(ended, 10)


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_cut_line_says_no_goodbye(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(crash()) in (None, WSCloseCode.ABNORMAL_CLOSURE)
