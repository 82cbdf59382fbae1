"""Connections of one process to a database server: so many and no more, the last used first.

Whoever finds none free waits in line. A session that is not put back whole is discarded, and its place goes
to the next in line.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol

from roost.db.errors import DatabaseOverloaded
from roost.db.statements import Statement
from roost.db.verbs import Result


class Session(Protocol):
    """One connection: one statement at a time, each its own transaction unless one began a longer one."""

    @property
    def is_open(self) -> bool: ...

    async def run(self, statement: Statement, args: tuple[object, ...]) -> Result: ...

    def terminate(self) -> None:
        """Cut it, whatever it is doing."""

    async def close(self) -> None: ...


class Pool:
    def __init__(self, connect: Callable[[], Awaitable[Session]], size: int, max_waiting: int) -> None:
        self._connect, self._size, self._max_waiting = connect, size, max_waiting
        self._closed = False
        self._idle: list[Session] = []
        self._places = 0
        """Sessions that exist or are being made."""
        self._line: deque[asyncio.Future[Session | None]] = deque()

    async def take(self) -> Session:
        """A session of the caller's own, until `put_back` or `discard`."""
        while self._idle:
            session = self._idle.pop()
            if session.is_open:
                return session
            self._drop(session)
        if self._places < self._size:
            self._places += 1
            return await self._made()
        return await self._waited_for() or await self._made()

    def put_back(self, session: Session) -> None:
        if self._closed:
            self._drop(session)
        elif not self._hand_on(session):
            self._idle.append(session)

    def discard(self, session: Session) -> None:
        self._drop(session)
        self._pass_place_on()

    def discard_idle(self) -> None:
        """After one connection was lost the others are likely lost too, without knowing it yet."""
        while self._idle:
            self._drop(self._idle.pop())

    async def close(self) -> None:
        """Sessions in use end when they are put back."""
        self._closed = True
        idle, self._idle = self._idle, []
        for session in idle:
            await session.close()

    async def _made(self) -> Session:
        """Connect in a place that is the caller's."""
        try:
            return await self._connect()
        except BaseException:
            self._places -= 1
            self._pass_place_on()
            raise

    async def _waited_for(self) -> Session | None:
        """The next session that comes free; None for a place to make one in."""
        if len(self._line) >= self._max_waiting:
            raise DatabaseOverloaded(f"{len(self._line)} calls wait for a connection")
        turn: asyncio.Future[Session | None] = asyncio.get_running_loop().create_future()
        self._line.append(turn)
        try:
            return await turn
        except asyncio.CancelledError:
            self._give_up(turn)
            raise

    def _give_up(self, turn: asyncio.Future[Session | None]) -> None:
        """What came in the very moment of giving up goes to the next."""
        if turn.cancelled():
            return
        if not turn.done():
            turn.cancel()
            return
        session = turn.result()
        if session is not None:
            self.put_back(session)
        else:
            self._places -= 1
            self._pass_place_on()

    def _hand_on(self, session: Session | None) -> bool:
        while self._line:
            turn = self._line.popleft()
            if not turn.done():
                turn.set_result(session)
                return True
        return False

    def _pass_place_on(self) -> None:
        if self._line and self._places < self._size and self._hand_on(None):
            self._places += 1

    def _drop(self, session: Session) -> None:
        self._places -= 1
        session.terminate()
