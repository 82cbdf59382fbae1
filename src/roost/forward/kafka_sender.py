"""Kafka: an event is sent when all in-sync replicas have it; its key is the source, so order stays.

NB: no Kafka-compatible server can be had as a package here, so no test runs this against one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

import msgspec
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from roost.core.errors import Unavailable
from roost.forward.destination import Destination
from roost.forward.event import ForwardedEvent

ACK_S = 10.0

_encode = msgspec.json.Encoder().encode


class KafkaSender:
    def __init__(self, to: Destination) -> None:
        self._to = to
        self._producer: AIOKafkaProducer | None = None
        self._connecting = asyncio.Lock()

    async def send(self, events: Sequence[ForwardedEvent]) -> None:
        try:
            async with asyncio.timeout(ACK_S):
                producer = await self._started()
                acks = [
                    await producer.send(self._to.topic, _encode(event), key=event.source.encode())
                    for event in events
                ]
                await asyncio.gather(*acks)
        except (KafkaError, TimeoutError, OSError) as error:
            raise Unavailable(f"Kafka at {self._to.host}: {type(error).__name__}") from None

    async def _started(self) -> AIOKafkaProducer:
        async with self._connecting:
            if self._producer is None:
                producer = AIOKafkaProducer(
                    bootstrap_servers=self._to.url, acks="all", enable_idempotence=True
                )
                try:
                    await producer.start()
                except BaseException:
                    await producer.stop()
                    raise
                self._producer = producer
            return self._producer

    async def close(self) -> None:
        if self._producer is not None:
            await self._producer.stop()


@contextlib.asynccontextmanager
async def kafka_sender(to: Destination) -> AsyncIterator[KafkaSender]:
    sender = KafkaSender(to)
    try:
        yield sender
    finally:
        await sender.close()
