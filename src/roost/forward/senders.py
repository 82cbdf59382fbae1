"""The ways out: a webhook, NATS JetStream, Kafka. Each returns when the receiver has what it was sent."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Sequence

import aiohttp
import msgspec

from roost.alerts.webhooks import signed_headers
from roost.core.errors import StartFailed, Unavailable
from roost.forward.destination import Destination
from roost.forward.event import Batch, ForwardedEvent
from roost.forward.forwarder import Sender

VERSION = 1
TIMEOUT_S = 10.0

_encode = msgspec.json.Encoder().encode


@contextlib.asynccontextmanager
async def open_sender(to: Destination, name: str, secret: str) -> AsyncIterator[Sender]:
    """`StartFailed` where the package is missing that this way needs."""
    openers = {"webhook": _webhook, "nats": _nats, "kafka": _kafka}
    try:
        opening = openers[to.kind](to, name, secret)
        async with opening as sender:
            yield sender
    except ModuleNotFoundError as error:
        raise StartFailed(
            f"forwarding to {to.kind} needs the package {error.name}", hint=f"install roost[{to.kind}]"
        ) from None


class WebhookSender:
    """One POST for a batch, signed as alerts are; any 2xx means that the receiver has it."""

    def __init__(self, session: aiohttp.ClientSession, to: Destination, name: str, secret: str) -> None:
        self._session = session
        self._to = to
        self._name = name
        self._secret = secret

    async def send(self, events: Sequence[ForwardedEvent]) -> None:
        body = _encode(Batch(VERSION, self._name, list(events)))
        headers = signed_headers(self._secret, body, time.time()) | {"Content-Type": "application/json"}
        try:
            async with self._session.post(
                self._to.url, data=body, headers=headers, allow_redirects=False
            ) as response:
                if not 200 <= response.status < 300:
                    raise Unavailable(f"the webhook at {self._to.host} answered {response.status}")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unavailable(f"the webhook at {self._to.host}: {type(error).__name__}") from None


@contextlib.asynccontextmanager
async def _webhook(to: Destination, name: str, secret: str) -> AsyncIterator[Sender]:
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        yield WebhookSender(session, to, name, secret)


@contextlib.asynccontextmanager
async def _nats(to: Destination, name: str, secret: str) -> AsyncIterator[Sender]:
    from roost.forward.nats_sender import nats_sender

    async with nats_sender(to) as sender:
        yield sender


@contextlib.asynccontextmanager
async def _kafka(to: Destination, name: str, secret: str) -> AsyncIterator[Sender]:
    from roost.forward.kafka_sender import kafka_sender

    async with kafka_sender(to) as sender:
        yield sender
