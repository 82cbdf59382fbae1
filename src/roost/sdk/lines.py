"""A player's connection to a gate: WebSocket or TCP, the same two verbs, one msgpack message at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from roost.core.errors import InvalidInput, StoreUnavailable

if TYPE_CHECKING:
    import aiohttp

CONNECT_S = 5.0
HEARTBEAT_S = 10.0
"""A gate that does not answer a ping within half of it is gone."""
MAX_BYTES = 4 * 1024 * 1024
"""Of one message of a gate."""


class Line(Protocol):
    """An open connection."""

    async def send(self, data: bytes) -> None:
        """Write a message; raises `OSError` where nobody is there any more."""

    async def receive(self) -> bytes | None:
        """The next message; None: the connection is over."""

    async def close(self) -> None: ...


def check_urls(text: str) -> list[str]:
    """The gates of a comma list; `InvalidInput` names a bad one."""
    urls = [url.strip() for url in text.split(",") if url.strip()]
    for url in urls:
        parts = urlsplit(url)
        if parts.scheme not in ("ws", "wss", "tcp") or not parts.hostname:
            raise InvalidInput(f"{url!r} is no gate", hint="ws://host:8410, wss://… or tcp://host:8411")
    if not urls:
        raise InvalidInput("no gate is named", hint="ws://127.0.0.1:8410")
    return urls


async def open_line(url: str) -> Line:
    """Connect to a gate; `StoreUnavailable` says why not."""
    try:
        async with asyncio.timeout(CONNECT_S):
            return await (_over_tcp(url) if url.startswith("tcp://") else _over_websocket(url))
    except TimeoutError:
        raise StoreUnavailable(f"{url} does not answer") from None
    except OSError as error:
        raise StoreUnavailable(f"{url} cannot be reached: {error}") from None


class WebSocketLine:
    def __init__(self, session: aiohttp.ClientSession, ws: aiohttp.ClientWebSocketResponse) -> None:
        self._session = session
        self._ws = ws

    async def send(self, data: bytes) -> None:
        await self._ws.send_bytes(data)

    async def receive(self) -> bytes | None:
        message = await self._ws.receive()
        return message.data if isinstance(message.data, bytes) else None

    async def close(self) -> None:
        await self._ws.close()
        await self._session.close()


async def _over_websocket(url: str) -> Line:
    import aiohttp

    session = aiohttp.ClientSession()
    try:
        ws = await session.ws_connect(url, max_msg_size=MAX_BYTES, heartbeat=HEARTBEAT_S, compress=0)
    except BaseException as error:
        await session.close()
        if isinstance(error, aiohttp.ClientError):
            raise OSError(str(error)) from None
        raise
    return WebSocketLine(session, ws)


class TcpLine:
    """Frames of the wire protocol; each carries one message."""

    def __init__(
        self, endpoint: Any, incoming: asyncio.Queue[bytes | None], send: Callable[[bytes], bool]
    ) -> None:
        self._endpoint = endpoint
        self._incoming = incoming
        self._send = send

    async def send(self, data: bytes) -> None:
        if not self._send(data):
            raise ConnectionResetError("the gate is gone")

    async def receive(self) -> bytes | None:
        return await self._incoming.get()

    async def close(self) -> None:
        self._endpoint.leave()
        await asyncio.wait((self._endpoint.gone,), timeout=1.0)
        self._endpoint.cut("closed")


async def _over_tcp(url: str) -> Line:
    from roost.sdk.direct.player_frames import PlayerFrames

    parts = urlsplit(url)
    loop, incoming = asyncio.get_running_loop(), asyncio.Queue[bytes | None]()
    _, endpoint = await loop.create_connection(
        lambda: PlayerFrames(incoming.put_nowait, MAX_BYTES, loop), parts.hostname or "", parts.port or 8411
    )
    return TcpLine(endpoint, incoming, endpoint.send)
