"""SQLite: a file beside the process, one writer thread in each process that uses it."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from roost.core.errors import StartFailed
from roost.db import verbs
from roost.db.errors import DatabaseOverloaded, DatabaseUnavailable
from roost.db.model import Flush, FlushResult
from roost.db.options import DatabaseOptions
from roost.db.statements import statements
from roost.db.steps import upgrade
from roost.db.url import DatabaseUrl
from roost.db.verbs import Steps
from roost.db.writer import LEAST_SQLITE, Make, Writer

T = TypeVar("T")


class SqliteBackend:
    def __init__(self, url: DatabaseUrl, options: DatabaseOptions) -> None:
        self.known = statements("sqlite")
        self._url, self._options = url, options
        self._writer = Writer(url, options, partial(upgrade, "sqlite"))

    @classmethod
    async def open(cls, url: DatabaseUrl, options: DatabaseOptions) -> SqliteBackend:
        if sqlite3.sqlite_version_info < LEAST_SQLITE:
            least = ".".join(map(str, LEAST_SQLITE))
            raise StartFailed(
                f"SQLite here is {sqlite3.sqlite_version}, {least} is needed", hint="take a newer Python"
            )
        backend = cls(url, options)
        await backend._writer.open()
        return backend

    @property
    def healthy(self) -> bool:
        return self._writer.healthy

    async def perform(self, make: Callable[[], Steps[T]], *, writes: bool) -> T:
        self._check_room(1)
        done = self._writer.submit(make, writes)
        timer = done.get_loop().call_later(self._options.timeout_s, self._give_up, done)
        try:
            result: T = await done
            return result
        finally:
            timer.cancel()

    async def flush_many(self, flushes: Sequence[Flush]) -> list[FlushResult | Exception]:
        try:
            self._check_room(len(flushes))
        except DatabaseOverloaded as error:
            return [error] * len(flushes)
        if not flushes:
            return []
        written = self._writer.submit_together(list(self._groups(flushes)))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._options.timeout_s):
                await written.future
        return [self._late() if result is None else result for result in written.results]

    def _groups(self, flushes: Sequence[Flush]) -> Iterator[tuple[Make, list[Make]]]:
        size = max(self.known.flush_together)
        for first in range(0, len(flushes), size):
            some = flushes[first : first + size]
            if len({(one.type, one.user) for one in some}) == len(some):
                together = partial(verbs.flush_together, self.known, some)
                yield together, [partial(verbs.flush, self.known, one) for one in some]
            else:
                for one in some:
                    alone = partial(verbs.flush, self.known, one)
                    yield alone, [alone]

    async def close(self) -> None:
        await self._writer.close()

    def _give_up(self, done: asyncio.Future[Any]) -> None:
        """The thread leaves out what nobody waits for any more."""
        if not done.done():
            done.set_exception(self._late())

    def _check_room(self, more: int) -> None:
        if self._writer.waiting + more > self._options.max_waiting:
            raise DatabaseOverloaded(f"{self._writer.waiting} calls wait for {self._url}")

    def _late(self) -> DatabaseUnavailable:
        return DatabaseUnavailable(f"{self._url} did not answer within {self._options.timeout_s:g} s")
