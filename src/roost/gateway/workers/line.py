"""Questions and answers between the supervisor and a worker, over a pair of connected sockets.

Nobody else can reach it, it needs no file and no port, and its end is seen at once: a worker whose supervisor
is gone hears it here.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Self

from roost.core.errors import RoostError, Unavailable

log = logging.getLogger("roost.workers")

ANSWER_S = 2.0
"""How long an answer is waited for."""
MAX_BYTES = 32 * 1024 * 1024
"""Of one message: more is not ours."""

_HEAD = struct.Struct(">BII")
_ASK, _ANSWER, _REFUSAL = range(3)

Answer = Callable[[str], Awaitable[bytes]]
"""Answers a question by its name; raises why it cannot."""


class Refused(Unavailable):
    """The other end lives, and said why it has no answer."""


class Line:
    """One end. Both ends may ask; answers come in any order."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer) -> None:
        self._reader = reader
        self._writer = writer
        self._answer = answer
        self.ended = False
        """Whether the other end is gone."""
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[bytes]] = {}
        self._answering: set[asyncio.Task[None]] = set()

    @classmethod
    async def open(cls, end: socket.socket, answer: Answer) -> Self:
        return cls(*await asyncio.open_connection(sock=end), answer)

    async def ask(self, what: str, timeout_s: float = ANSWER_S) -> bytes:
        """The answer; `Refused` where the other end has none, `Unavailable` where nothing comes in time."""
        if self.ended:
            raise Unavailable("the other end is gone")
        number = next(self._numbers) & 0xFFFFFFFF
        waiting: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._asked[number] = waiting
        self._send(_ASK, number, what.encode())
        try:
            async with asyncio.timeout(timeout_s):
                return await waiting
        except TimeoutError:
            raise Unavailable("no answer in time") from None
        finally:
            self._asked.pop(number, None)

    async def run(self) -> None:
        """Read until the other end is gone."""
        try:
            while (head := await self._read(_HEAD.size)) is not None:
                kind, number, size = _HEAD.unpack(head)
                body = await self._read(size) if size <= MAX_BYTES else None
                if body is None:
                    return
                self._take(kind, number, body)
        finally:
            self.ended = True
            for waiting in self._asked.values():
                if not waiting.done():
                    waiting.set_exception(Unavailable("the other end is gone"))
            self.close()

    def close(self) -> None:
        for task in self._answering:
            task.cancel()
        self._writer.close()

    def _take(self, kind: int, number: int, body: bytes) -> None:
        if kind == _ASK:
            task = asyncio.create_task(self._reply(number, body.decode()))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
            return
        waiting = self._asked.get(number)
        if waiting is not None and not waiting.done():
            if kind == _ANSWER:
                waiting.set_result(body)
            else:
                waiting.set_exception(Refused(body.decode()))

    async def _reply(self, number: int, what: str) -> None:
        try:
            self._send(_ANSWER, number, await self._answer(what))
        except RoostError as error:
            self._send(_REFUSAL, number, error.message.encode())
        except Exception as error:
            log.exception("a question was not answered", extra={"question": what})
            self._send(_REFUSAL, number, type(error).__name__.encode())

    def _send(self, kind: int, number: int, body: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(_HEAD.pack(kind, number, len(body)) + body)

    async def _read(self, size: int) -> bytes | None:
        try:
            return await self._reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
