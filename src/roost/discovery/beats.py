"""Beats that come together are one call of the store, each with an answer of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from roost.core.errors import StoreRefused
from roost.discovery.scripts import BeatAnswer, Beaten, beat_answer
from roost.store.scripts import ScopedScript

BATCH_LIMIT = 100
GATHER_S = 0.02
"""How long a beat waits for others: a thousand a second wake the store fifty times."""
ENOUGH = 32
"""So many do not wait any longer, but for those that come in the same turn of the loop."""


class GivenBeat(NamedTuple):
    """The values that `heartbeat.lua` takes for one beat, checked."""

    instance_id: str
    life: str
    status: str
    load: int | str
    performance: bytes
    tick_age_ms: int


_Waiting = tuple[GivenBeat, asyncio.Future[BeatAnswer]]


class Beats:
    def __init__(self, script: ScopedScript[Beaten]) -> None:
        self._script = script
        self._waiting: list[_Waiting] = []
        self._due: asyncio.Handle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, given: GivenBeat) -> asyncio.Future[BeatAnswer]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[BeatAnswer] = loop.create_future()
        self._waiting.append((given, answer))
        if len(self._waiting) == 1:
            self._due = loop.call_later(GATHER_S, self._start)
        elif len(self._waiting) == ENOUGH and self._due is not None:
            self._due.cancel()
            self._due = loop.call_soon(self._start)
        return answer

    def _start(self) -> None:
        waiting, self._waiting = self._waiting, []
        for first in range(0, len(waiting), BATCH_LIMIT):
            task = asyncio.create_task(self._send(waiting[first : first + BATCH_LIMIT]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _send(self, batch: Sequence[_Waiting]) -> None:
        """A batch that the store refuses is sent one by one: only the bad one is refused then."""
        try:
            beaten = await self._script(given=[value for given, _ in batch for value in given])
            answers = [beat_answer(packed) for packed in beaten.answers]
        except Exception as error:
            if isinstance(error, StoreRefused) and len(batch) > 1:
                for one in batch:
                    await self._send([one])
                return
            for _, waiting in batch:
                if not waiting.done():
                    waiting.set_exception(error)
            return
        for (_, waiting), answer in zip(batch, answers, strict=True):
            if not waiting.done():
                waiting.set_result(answer)
