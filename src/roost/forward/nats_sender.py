"""NATS JetStream: an event is sent when the stream has acknowledged it, under its id.

The id goes along as `Nats-Msg-Id`, so a stream drops what comes again within its `duplicate_window`. A stream
over `<prefix>.>` must exist: to plain NATS nothing could be sent at least once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Sequence

import msgspec
import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js import JetStreamContext

from roost.core.errors import Unavailable
from roost.forward.destination import Destination
from roost.forward.event import ForwardedEvent

log = logging.getLogger("roost.forward")

ACK_S = 5.0
CONNECT_S = 3.0

_encode = msgspec.json.Encoder().encode


class NatsSender:
    """Connects when there is something to send, and again whenever the connection is gone."""

    def __init__(self, to: Destination) -> None:
        self._to = to
        self._client: Client | None = None
        self._connecting = asyncio.Lock()

    async def send(self, events: Sequence[ForwardedEvent]) -> None:
        try:
            stream = await self._stream()
            for event in events:
                await self._publish(stream, event)
        except nats.js.errors.NoStreamResponseError:
            raise Unavailable(
                f"no stream takes {self._to.topic}.*", hint="make a JetStream stream over it"
            ) from None
        except (nats.errors.Error, TimeoutError, OSError) as error:
            raise Unavailable(f"NATS at {self._to.host}: {type(error).__name__}") from None

    async def _publish(self, stream: JetStreamContext, event: ForwardedEvent) -> None:
        subject = f"{self._to.topic}.{event.scope}"
        await stream.publish(subject, _encode(event), timeout=ACK_S, headers={"Nats-Msg-Id": event.id})

    async def _stream(self) -> JetStreamContext:
        async with self._connecting:
            if self._client is None or not self._client.is_connected:
                await self.close()
                self._client = Client()
                async with asyncio.timeout(CONNECT_S):  # left alone it would try for minutes
                    await self._client.connect(
                        self._to.url, allow_reconnect=False, max_reconnect_attempts=0, error_cb=_noted
                    )
            return self._client.jetstream()

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(nats.errors.Error, OSError):
                await client.close()


async def _noted(error: Exception) -> None:
    log.debug("NATS", extra={"reason": str(error)})


@contextlib.asynccontextmanager
async def nats_sender(to: Destination) -> AsyncIterator[NatsSender]:
    sender = NatsSender(to)
    try:
        yield sender
    finally:
        await sender.close()
