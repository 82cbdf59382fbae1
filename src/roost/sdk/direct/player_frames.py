"""A player's end of a TCP connection to a gate, on the endpoint of the wire protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from roost.wire.codes import Code
from roost.wire.endpoint import Endpoint
from roost.wire.frame import AFTER_LENGTH, HEADER, VERSION, Frame
from roost.wire.limits import Limits
from roost.wire.machine import PING_BYTES, Machine

PLAYERS, MESSAGE = 2, 1
PING_S = 5.0
SILENT_S = 16.0
"""A gate that does not even answer pings for so long is gone."""


class PlayerFrames(Endpoint):
    """Hands each message to `take`, and None at the end."""

    def __init__(
        self, take: Callable[[bytes | None], None], max_bytes: int, loop: asyncio.AbstractEventLoop
    ) -> None:
        limits = Limits(max_frame_bytes=max_bytes)
        super().__init__(Machine(None, serves=False, max_frame_bytes=max_bytes), limits, loop)
        self._take = take
        self._request = 0
        self._ping: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._ping = self._loop.call_later(PING_S, self._say_something)

    def send(self, data: bytes) -> bool:
        """False: the gate is gone."""
        if not self.is_open:
            return False
        self._request += 1
        head = HEADER.pack(AFTER_LENGTH + len(data), VERSION, 0, PLAYERS, MESSAGE, 0, 0, self._request, 0)
        self.transmit(head, data)
        return True

    def leave(self) -> None:
        """Say farewell and end."""
        self.say_bye(Code.CLOSING, "the player leaves")

    def on_frames(self, frames: list[Frame]) -> None:
        for frame in frames:
            self._take(frame.payload)

    def on_lost(self, why: str) -> None:
        if self._ping is not None:
            self._ping.cancel()
        self._take(None)

    def _say_something(self) -> None:
        if self._loop.time() - self.heard_at > SILENT_S:
            self.cut("the gate says nothing any more")
            return
        self.transmit(PING_BYTES, b"")
        self._ping = self._loop.call_later(PING_S, self._say_something)
