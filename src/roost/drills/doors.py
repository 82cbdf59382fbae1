"""Two ways into a server: the WebSocket of a real one, or a door that the drill itself holds open."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import uuid
from collections.abc import AsyncIterator

from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType, WSServerHandshakeError

from roost.api.queue import TICKET_HEADER, WorldView
from roost.core.errors import RoostError
from roost.drills.player import TIMEOUTS, Refused, Visit
from roost.sdk.client import Client
from roost.sdk.door import Door
from roost.sdk.guests import Guest

OWN = "ws://drill.invalid/"
"""Where the servers that a drill brings along say that they are: nowhere."""


class SocketVisit:
    def __init__(self, ws: ClientWebSocketResponse) -> None:
        self._ws = ws

    async def stay(self, seconds: float) -> bool:
        """Chat a little; False if the server hung up."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                with contextlib.suppress(ConnectionError):
                    await self._ws.send_str("hello")
                async for message in self._ws:
                    if message.type is not WSMsgType.TEXT:
                        break
                return False
        return True

    async def leave(self) -> None:
        await self._ws.close()

    async def crash(self) -> None:
        """Cut the line without a word."""
        line = self._ws.get_extra_info("socket")
        if line is not None:
            with contextlib.suppress(OSError), socket.socket(fileno=os.dup(line.fileno())) as own:
                own.shutdown(socket.SHUT_RDWR)  # uvloop's own has no shutdown
        with contextlib.suppress(*TIMEOUTS):
            await self._ws.close()  # for our own side only: nothing goes out any more


class SocketDoors:
    def __init__(self, session: ClientSession) -> None:
        self._session = session

    async def go_in(self, url: str, ticket: str) -> Visit:
        try:
            ws = await self._session.ws_connect(url, headers={TICKET_HEADER: ticket}, autoping=True)
        except WSServerHandshakeError as error:
            raise Refused(error.status, "handshake") from None
        return SocketVisit(ws)


class OwnVisit:
    def __init__(self, door: Door, guest: Guest) -> None:
        self._door = door
        self._guest = guest

    async def stay(self, seconds: float) -> bool:
        await asyncio.sleep(seconds)
        return True

    async def leave(self) -> None:
        await self._door.leave(self._guest)

    async def crash(self) -> None:
        await self._door.leave(self._guest, "dropped")


class OwnDoors:
    """Servers of the drill's own, registered and reporting like any other."""

    def __init__(self) -> None:
        self.doors: dict[str, Door] = {}

    @contextlib.asynccontextmanager
    async def open(self, client: Client, count: int, capacity: int, world: WorldView) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for number in range(count):
                name = f"drill-{uuid.uuid4().hex[:6]}-{number}"
                me = await stack.enter_async_context(
                    client.registered(
                        type=world.server_type, group="drill", server_id=name, capacity=capacity
                    )
                )
                url = f"{OWN}{name}"
                self.doors[url] = await stack.enter_async_context(client.door(me, world=world.world, url=url))
            yield

    async def go_in(self, url: str, ticket: str) -> Visit:
        door = self.doors.get(url)
        if door is None:
            raise Refused(404, "another drill's server")
        try:
            return OwnVisit(door, await door.consume(ticket))
        except RoostError as error:
            raise Refused(409, type(error).__name__) from None


class AnyDoors:
    """By the URL: our own, or a socket."""

    def __init__(self, own: OwnDoors, sockets: SocketDoors) -> None:
        self._own = own
        self._sockets = sockets

    async def go_in(self, url: str, ticket: str) -> Visit:
        if not url:
            raise Refused(404, "no server is known")
        return await (self._own if url.startswith(OWN) else self._sockets).go_in(url, ticket)
