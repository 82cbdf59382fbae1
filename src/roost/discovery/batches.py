"""Calls that come together are one call of the store, each with an answer of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from roost.core.errors import StoreRefused
from roost.store.scripts import ScopedScript

Given = TypeVar("Given", bound=Iterable[Any])
Answer = TypeVar("Answer")


class Answers(Protocol):
    """The reply of a script that takes a batch."""

    @property
    def answers(self) -> list[str]: ...


class Batches(Generic[Given, Answer]):
    """Gathers calls of one script; `read` makes an answer of what the script answers to each.

    The first waits for others until the loop turns, or for `gather_s`; `enough` of them wait no longer, but
    for those that come in the same turn. The script must be idempotent: a batch that failed in the middle is
    repeated.
    """

    def __init__(
        self,
        script: ScopedScript[Any],
        read: Callable[[str], Answer],
        *,
        limit: int,
        gather_s: float = 0.0,
        enough: int = 1,
    ) -> None:
        self._script = script
        self._read = read
        self._limit = limit
        self._gather_s = gather_s
        self._enough = enough
        self._waiting: list[tuple[Given, asyncio.Future[Answer]]] = []
        self._due: asyncio.Handle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, given: Given) -> asyncio.Future[Answer]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()
        self._waiting.append((given, answer))
        if len(self._waiting) == self._enough:
            if self._due is not None:
                self._due.cancel()
            self._due = loop.call_soon(self._start)
        elif len(self._waiting) == 1:
            self._due = loop.call_later(self._gather_s, self._start)
        return answer

    def _start(self) -> None:
        waiting, self._waiting, self._due = self._waiting, [], None
        for first in range(0, len(waiting), self._limit):
            task = asyncio.create_task(self._send(waiting[first : first + self._limit]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _send(self, batch: Sequence[tuple[Given, asyncio.Future[Answer]]]) -> None:
        """A batch that the store refuses is sent one by one: only the bad one is refused then."""
        try:
            reply: Answers = await self._script(given=[value for given, _ in batch for value in given])
            answers = [self._read(packed) for packed in reply.answers]
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
